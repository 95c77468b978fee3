"""The links of the papers as cases of the crosscheck of TCP, and what explains how they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from streamgauge.campaign import EmuSettings
from streamgauge.crosscheck import TCP
from streamgauge.crosscheck.cases import CONTROL, Case, cases
from streamgauge.crosscheck.explain import explain
from streamgauge.crosscheck.filling import MeasuredPage
from streamgauge.crosscheck.page import PAGE
from streamgauge.crosscheck.rows import rows_of
from streamgauge.crosscheck.run import select
from streamgauge.crosscheck.tcp import SWITCHES, varied
from streamgauge.crosscheck.trials import Bench, CaseRuns
from streamgauge.errors import ScenarioError
from streamgauge.scenario import lower

DOCS = Path(__file__).parent.parent.parent / "docs" / "fidelity-papers.md"
PAIRS = "without tso_by_rtt"
LINKS = ("1m-100p", "480k-0ms", "480k-tbf", "725k-80p", "150k-tbf", "700k-20kb")


def by_id(pattern: str) -> Case:
    (found,) = select(TCP, [pattern])
    assert isinstance(found, Case)
    return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(TCP, tmp_path, EmuSettings(), reference="sim")


def simulated(bench: Bench, label: str, case: Case, trials: int = 4) -> CaseRuns:
    return bench.simulate(label, [replace(case, sim=trials)])[case.id]


def average(runs: CaseRuns, metric: str) -> float:
    return mean(value for value in runs.values(metric) if value is not None)


def test_each_link_has_each_controller_and_a_small_window() -> None:
    found = {case.id for case in cases()}
    for link in LINKS:
        assert {f"{who}/{link}" for who in ("reno", "cubic", "vegas", "bbr", "reno-17520")} <= found
    bare = [link for link in LINKS if not by_id(f"reno/{link}").scenario.path.down.delay]
    assert bare == ["1m-100p", "480k-0ms", "480k-tbf", "150k-tbf"]
    (tcp,) = lower(by_id("reno-17520/480k-tbf").scenario, "sim", 1)["flows"]
    assert tcp["app"]["bulk"]["tcp"]["receive_window"] == 17_520


def test_how_many_segments_leave_as_one_doubles_what_reno_loses_behind_a_token_bucket(bench: Bench) -> None:
    """Either state lasts. The guest's kernel has 3.22 %."""
    case = by_id("reno/480k-tbf")
    alone = simulated(bench, "alone", case)
    pairs = simulated(bench, "pairs", varied(case, SWITCHES[PAIRS]))
    assert average(alone, "loss_percent") == pytest.approx(3.22, abs=0.05)
    assert average(pairs, "loss_percent") > 5.5


def test_what_a_control_connection_sends_is_on_the_link_and_not_compared(bench: Bench) -> None:
    case = by_id("reno/480k-tbf")
    alone = simulated(bench, "alone", case)
    beside = simulated(bench, "beside", varied(case, SWITCHES["control connection"]))
    assert set(alone.metrics) == set(beside.metrics)
    # Its packets take places in the queue: fewer of the flow's first segments are lost, as in the guest.
    assert average(alone, "start_losses") > average(beside, "start_losses") == pytest.approx(24, abs=1)


@pytest.mark.long
def test_that_is_what_explains_it(bench: Bench) -> None:
    case = by_id("reno/480k-tbf")
    real = simulated(bench, "real", varied(case, SWITCHES[PAIRS]), trials=3)
    found = {case.id: (simulated(bench, "sim", case), real)}
    rows = {row.metric: row for row in explain(bench, [case], found, rows_of(TCP, case, *found[case.id]))}
    row = rows["loss_percent"]
    assert row.verdict == "explained" and row.explained is not None
    assert row.explained["switch"] == PAIRS


def test_a_control_connection_is_of_a_flow_alone() -> None:
    with pytest.raises(ScenarioError, match="several flows"):
        varied(by_id("cubic-before-bbr/10m-0ms"), SWITCHES["control connection"])
    with_it = varied(by_id("reno/480k-tbf"), SWITCHES["control connection"]).scenario
    assert set(with_it.flows) == {"reno", CONTROL}


def test_who_sees_the_empty_link_decides_between_bbr_and_cubic(bench: Bench) -> None:
    """BBR that begins first knows a round trip of a packet's time, and sends in bursts of up to 11 segments;
    one that begins second in pairs."""
    second = average(simulated(bench, "second", by_id("cubic-before-bbr/10m-0ms")), "cubic.share")
    first = average(simulated(bench, "first", by_id("bbr-before-cubic/10m-0ms")), "bbr.share")
    assert second < 0.25 and 1 - first > 0.35


def test_the_page_has_blocks_of_the_page_of_tcp() -> None:
    assert isinstance(PAGE, MeasuredPage)
    PAGE.check(DOCS)
    text = DOCS.read_text(encoding="utf-8")
    for name in ("summary", "mutants", "singles", "others", "differences"):
        assert f"<!-- measured: {name} -->" in text
    assert "<!-- measured: figures -->" not in text, "they are those of fidelity.md"
