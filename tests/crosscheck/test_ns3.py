"""ns-3 as a third column: what it is asked to run, and that its packets add up."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamgauge.crosscheck import TCP, CrosscheckRequest, crosscheck, ns3
from streamgauge.crosscheck.cases import PAPERS, cases
from streamgauge.crosscheck.run import select
from streamgauge.crosscheck.trace import NEVER
from streamgauge.errors import CannotRunError
from streamgauge.scenario import lower

needs_ns3 = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("ns3", "cppyy")),
    reason=f"ns-3 is not installed, and CI does without it; get it by {ns3.REMEDY}",
)


def plan(case: str = "reno/10m-25kb", seconds: float = 3.0, seed: int = 1) -> dict[str, Any]:
    """A case's plan, cut short."""
    (found,) = select(TCP, [case])
    return {**lower(found.scenario, "sim", seed), "duration": round(seconds * 1e9)}


def test_without_ns3_it_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        CannotRunError, match=r"--with ns3: ns-3 is not installed; get it by .*pip install ns3"
    ):
        crosscheck(
            CrosscheckRequest(out=tmp_path / "out", patterns=["reno/1m-75kb"], ns3=True, reference="sim")
        )
    assert not (tmp_path / "out").exists()


@needs_ns3
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"congestion_control": "bic"}, "ns-3 has no bic, only reno, cubic, vegas, bbr"),
        ({"ecn": True}, "without ECN"),
        ({"without": ["tlp"]}, "all its mechanisms"),
        ({"hystart": "plus_plus"}, r"HyStart\+\+"),
    ],
)
def test_a_tcp_that_ns3_has_not_is_refused(change: dict[str, Any], expected: str) -> None:
    asked = plan()
    asked["flows"][0]["app"]["bulk"]["tcp"] |= change
    with pytest.raises(CannotRunError, match=expected):
        ns3.trial(asked)


def test_a_path_that_ns3_has_not_is_told() -> None:
    asked = plan()
    (bottleneck,) = [stage["kind"] for stage in asked["path"]["down"] if "bottleneck" in stage["kind"]]
    bottleneck["bottleneck"]["queue"] = {"droptail": {"packets": 10}}
    assert "drop-tail queue in bytes" in str(ns3._lacking(asked))
    asked["path"]["down"].reverse()
    assert "ns-3's link is" in str(ns3._lacking(asked))


def test_a_download_that_ns3_has_not_is_told() -> None:
    asked = plan()
    assert ns3._lacking(asked) is None
    asked["flows"][0]["app"]["bulk"]["control_connection"] = True
    assert "no control connection" in str(ns3._lacking(asked))


def test_ns3_runs_every_case_of_reno_and_cubic() -> None:
    told = {case.id: ns3._lacking(lower(case.scenario, "sim", 1)) for case in cases() if _asked(case.id)}
    assert told and set(told.values()) == {None}


def _asked(name: str) -> bool:
    who, _, link = name.partition("/")
    # The papers' links have token buckets, packets and no delay, of which ns-3's link here knows nothing.
    return not {"bic", "vegas", "bbr"} & set(who.split("-")) and link not in {path.name for path in PAPERS}


@needs_ns3
def test_one_flow_fills_the_link_and_every_packet_is_accounted_for() -> None:
    flow = ns3.trial(plan())["reno"]
    arrived, dropped = flow.arrived != NEVER, flow.dropped != NEVER
    assert not (arrived & dropped).any()
    # What is neither is in the queue or on the link at the end: 25 kB each.
    assert (~(arrived | dropped)).sum() <= 2 * 25_000 / 1514 + 1
    transit = (flow.arrived[arrived] - flow.sent[arrived]) / 1e9
    # 10 ms and one transmission at least; at most the 16 frames that 25 kB hold, itself the last.
    frame_s = 1514 * 8 / 10e6
    assert transit.min() == pytest.approx(0.010 + frame_s, abs=2e-6)
    assert 0.010 + 15 * frame_s < transit.max() <= 0.010 + 16 * frame_s + 2e-6
    # Back to back on a busy link, frames of 1514 B at 10 Mbit/s.
    gaps = np.diff(np.sort(flow.arrived[arrived]))
    assert np.median(gaps) == pytest.approx(1514 * 8 / 10e6 * 1e9, abs=2)
    assert flow.repeat.sum() >= dropped.sum() - 40
    assert 0.45 <= (flow.ack_sent > flow.arrived.min()).sum() / arrived.sum() <= 0.7
    assert (flow.cwnd[1] >= 1448).all() and 15 <= len(flow.cwnd[0]) <= 30


@needs_ns3
def test_random_loss_is_as_asked_and_seeded() -> None:
    first, again, other = (ns3.trial(plan("reno/100m-5pct", 4, seed))["reno"] for seed in (1, 1, 2))
    assert np.array_equal(first.sent, again.sent) and np.array_equal(first.dropped, again.dropped)
    assert len(first.sent) != len(other.sent)
    share = (first.dropped != NEVER).mean()
    assert abs(share - 0.05) < 4 * (0.05 * 0.95 / len(first.sent)) ** 0.5


@needs_ns3
def test_every_control_is_itself() -> None:
    def under(control: str, case: str) -> tuple[float, float]:
        """Median RTT in s and goodput in bit/s from 3 s to 6 s."""
        asked = plan(case, 6)
        asked["flows"][0]["app"]["bulk"]["tcp"]["congestion_control"] = control
        flow = ns3.trial(asked)["reno"]
        arrived = (flow.arrived > 3e9) & (flow.arrived < 6e9)
        answered = arrived & (flow.answered != NEVER)
        rtt = (flow.answered[answered] - flow.sent[answered]) / 1e9
        return float(np.median(rtt)), flow.payload[arrived].sum() * 8 / 3

    # Vegas keeps a few packets in the queue, where CUBIC fills it (Brakmo et al. 1995).
    assert under("vegas", "reno/10m-25kb")[0] < 0.025 < under("cubic", "reno/10m-25kb")[0]
    # BBR takes no loss for congestion (Cardwell et al. 2016), Reno every one.
    assert under("bbr", "reno/100m-1pct")[1] > 2 * under("reno", "reno/100m-1pct")[1]


@needs_ns3
def test_ns3s_failure_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = plan()
    asked["duration"] = -1
    with pytest.raises(
        CannotRunError, match=r"^--with ns3: ns-3 failed on crosscheck/reno/10m-25kb; .*said: \S"
    ):
        ns3.trial(asked)
    # The next one has a new process.
    assert ns3.trial(plan(seconds=0.7))["reno"].payload.sum() > 0


@needs_ns3
def test_the_third_column_stands_beside_the_others(tmp_path: Path) -> None:
    request = CrosscheckRequest(
        out=tmp_path, patterns=["reno-short/10m*"], quick=True, ns3=True, reference="sim"
    )
    rows = {row["metric"]: row for row in crosscheck(request)["rows"]}
    row = rows["reno_1mb.completion_s"]
    assert row["ns3"]["n"] == row["n_emu"]
    assert row["ns3"]["mean"] == pytest.approx(row["sim"], rel=0.3)
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "ns3").rglob("*.json")}
    assert len(times) == row["n_emu"]
    crosscheck(request)
    assert {file: file.stat().st_mtime_ns for file in times} == times
