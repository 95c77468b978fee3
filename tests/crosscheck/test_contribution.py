"""The crosscheck of contribution, sim against sim: a machine is equivalent to itself, wrong ones are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamgauge.crosscheck import CrosscheckRequest, crosscheck
from streamgauge.crosscheck.contribution import contribution_matter
from streamgauge.crosscheck.contribution.cases import SUBJECTS, cases
from streamgauge.crosscheck.contribution.matter import MUTANTS, varied
from streamgauge.crosscheck.contribution.page import PAGE
from streamgauge.errors import ScenarioError

DOCS = Path(__file__).parents[2] / "docs" / "fidelity-contribution.md"
SHOWN = ("02", "08", "12", "17")
"""Conditions by which every mutant is rejected."""


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return crosscheck(
        CrosscheckRequest(
            out=tmp_path_factory.mktemp("contribution"),
            matter=contribution_matter(),
            patterns=[f"srt-libsrt/{number}" for number in SHOWN],
            reference="sim",
        )
    )


@pytest.mark.long
def test_a_machine_is_equivalent_to_itself_and_no_mutant_is(document: dict[str, Any]) -> None:
    verdicts = [row["verdict"] for row in document["rows"]]
    assert len(verdicts) == 8 * len(SHOWN)
    assert verdicts.count("equivalent") >= 0.9 * len(verdicts) and "unexplained" not in verdicts
    rejected = {one["name"]: one["rejected"] for one in document["mutants"]}
    assert rejected == {one.name: True for one in MUTANTS if one.name.startswith("srt-libsrt")}


@pytest.mark.long
def test_the_page_has_a_place_for_each_block(document: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(DOCS.read_text(encoding="utf-8"), encoding="utf-8")
    PAGE.check(page)
    PAGE.write({**document, "reference": "emu"}, page)
    text = page.read_text(encoding="utf-8")
    assert "| `srt-libsrt/17` | 14 ms | 6.3 % | 46 ms |" in text and "**srt-libsrt** (sim / emu)" in text
    assert "Not measured yet" not in text


def test_draws_stay_as_they_were_measured() -> None:
    told = {case.id: dict(case.conditions) for case in cases()}
    assert len(told) == 20 * len(SUBJECTS)
    assert told["srt-libsrt/17"] == {"rtt": "14 ms", "loss": "6.3 %", "latency": "46 ms"}
    assert told["srt-libsrt/05"]["loss"] == "none"
    assert cases(conditions=21)[19].conditions == told["srt-libsrt/20"]


def test_a_change_reaches_the_machine_in_sim_alone() -> None:
    case = cases()[0]
    flow = varied(case, {"retransmission": "off"}).scenario.flows["media"]
    assert flow.in_mode("sim").parameters["retransmission"] == "off"
    assert "retransmission" not in flow.in_mode("emu").parameters
    with pytest.raises(ScenarioError, match="srt-libsrt/01"):
        varied(case, {"colour": "red"})
