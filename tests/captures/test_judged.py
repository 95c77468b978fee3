"""`analyze` against records: trials whose every packet's fate is known (benches/captures_judge.py)."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from streamgauge import _native
from streamgauge.captures.analysis import AnalysisRequest, analyse

ROOT = Path(__file__).resolve().parents[2]
FEW = ("ccn/tcp-narrow-reno", "darwin/2qt2tcp-const", "today/call-claims-gcc-cubic")
QUICK = (
    "gap test",
    "acknowledgements",
    "skew",
    "least delay",
    "base delay",
    "balance",
    "sides without skew",
    "median rate",
    "feedback",
)
LONGEST_REPORT = 120
"""Bytes of a sender report with its description."""
LONG = ("placement", "queue model", "refusals")
"""Their trials take ten seconds and more."""


@pytest.fixture(scope="module")
def judging() -> ModuleType:
    spec = importlib.util.spec_from_file_location("captures_judge", ROOT / "benches" / "captures_judge.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Trials:
    """Trials that are run when they are first asked for."""

    def __init__(self, judging: ModuleType, out: Path) -> None:
        self.judging, self.out = judging, out
        self.known: dict[str, Path] = {}

    def __getitem__(self, trial: str) -> Path:
        if trial not in self.known:
            self.known[trial] = self.judging.run(trial, "sim", self.out)
        return self.known[trial]


@pytest.fixture(scope="module")
def trials(judging: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Trials:
    return Trials(judging, tmp_path_factory.mktemp("judged"))


@pytest.mark.parametrize("trial", FEW)
def test_a_trial_meets_every_aim(judging: ModuleType, trials: Trials, trial: str) -> None:
    found = judging.judge(trials[trial], trial, "sim")
    assert found.failed == []
    assert found.losses > 40 and found.gaps > 0


@pytest.mark.parametrize(
    "mutant",
    [
        *QUICK,
        *(pytest.param(one, marks=pytest.mark.long) for one in LONG),
    ],
)
def test_each_mechanism_is_needed(judging: ModuleType, trials: Trials, mutant: str) -> None:
    trial = judging.MUTANTS[mutant]
    assert judging.judge(trials[trial], trial, "sim", mutant).failed
    if trial not in FEW:
        assert judging.judge(trials[trial], trial, "sim").failed == []


def test_every_mutant_is_tested(judging: ModuleType) -> None:
    assert {*QUICK, *LONG} == judging.MUTANTS.keys()


@pytest.mark.long
def test_all_trials_meet_every_aim(judging: ModuleType, tmp_path: Path) -> None:
    modes = {trial: judging.mode_of(trial) if os.geteuid() == 0 else "sim" for trial in judging.TRIALS}
    judged = [judging.judge(judging.run(trial, mode, tmp_path), trial, mode) for trial, mode in modes.items()]
    missed = {one.trial: one.failed for one in judged if one.failed}
    assert len(judged) == 42 and missed == {}
    # A machine that was busy makes trials of emu invalid, and no other.
    assert all(one.mode == "emu" for one in judged if one.invalid is not None)
    assert sum(one.gaps_told for one in judged) >= 0.99 * sum(one.gaps for one in judged)


def records_flows(folder: Path) -> dict[str, dict[str, Any]]:
    """By flow: what the record has of its way down, and of its queue."""
    trial = json.loads((folder / "trial.json").read_text())
    stages = trial["plan"]["path"]["down"]
    rows = pl.read_parquet(folder / "packets.parquet", hive_partitioning=False).filter(pl.col("dir") == 0)
    found = {}
    for code, flow in enumerate(trial["plan"]["flows"]):
        addresses = _native.addresses(code, flow.get("entry") == "router")
        own = rows.filter(pl.col("flow") == code)
        sent = own.filter(pl.col("stage") == 0).select("pkt", "t_in", "ip_bytes")
        left = own.filter((pl.col("stage") == len(stages) - 1) & (pl.col("fate") == 0)).select("pkt", "t_out")
        delays = sent.join(left, on="pkt").select(pl.col("t_out") - pl.col("t_in")).to_series() / 1e9
        found[flow["name"]] = {
            "addresses": addresses,
            "packets": len(sent),
            "bytes": int(sent["ip_bytes"].sum()),
            "lost": int(own.filter(pl.col("fate") == 1)["pkt"].n_unique()),
            "delay_p50_s": delays.median(),
            "delay_p95_s": delays.quantile(0.95),
        }
    return found


@pytest.mark.parametrize("trial", ["darwin/2qt2tcp-const", "windows-media/loss-sbr-3"])
def test_captures_alone_give_the_records_metrics(judging: ModuleType, trials: Trials, trial: str) -> None:
    folder = trials[trial]
    rows = pl.read_parquet(folder / "packets.parquet", hive_partitioning=False).filter(pl.col("dir") == 0)
    ends = rows.group_by("pkt").agg(pl.col("t_in").min(), pl.col("t_out").max(), pl.col("fate").max())
    least_s = (
        float((ends.filter(pl.col("fate") == 0).select(pl.col("t_out") - pl.col("t_in"))).min().item()) / 1e9
    )
    found = analyse(AnalysisRequest((folder / "capture.pcapng",), base_delay_s=least_s))
    assert found["path"]["open"] == 0 and found["path"]["lost_by_capture"] == 0
    for name, flow in records_flows(folder).items():
        server, player, *_ = flow["addresses"]
        own = [
            row
            for row in found["flows"]
            if {row["from"].split(":")[0], row["to"].split(":")[0]} == {server, player}
        ]
        down = [row for row in own if row["from"].startswith(f"{server}:")]
        up = [row for row in own if row not in down]
        packets = sum(row["packets"] for row in down) + sum(row["back_packets"] for row in up)
        size = sum(row["bytes"] for row in down) + sum(row["back_bytes"] for row in up)
        # The smaller direction of a flow is counted where it arrives, without a lost report of the server.
        assert 0 <= flow["packets"] - packets <= 2, name
        assert 0 <= flow["bytes"] - size <= 2 * LONGEST_REPORT, name
        lost = sum(row["lost"] or 0 for row in down)
        # Nor is a loss of the last moments, when its match could come after the end of the other capture.
        assert 0 <= flow["lost"] - lost <= 2 + flow["packets"] - packets, name
        largest = max(down, key=lambda row: row["bytes"])
        if largest["bytes"] > 0.95 * flow["bytes"]:
            for key in ("delay_p50_s", "delay_p95_s"):
                # A quantile of 512 delays that are evenly chosen.
                assert abs(largest[key] / flow[key] - 1) < 0.03, (name, key)
