"""Pages of many trials: each read once, few in memory, the page the same as of trials held there."""

from __future__ import annotations

import gc
import re
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamgauge.campaign import loaded as module
from streamgauge.campaign.stored import load_metrics, save_metrics
from streamgauge.errors import RecordError
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.report import LoadedTrial, answer, build, gather, load
from streamgauge.report.model import Group
from streamgauge.report.phases import phases
from synthetic import CROSS, SyntheticRecord, constant, record

PER_SCENARIO = 8
SCENARIOS = ("test/one", "test/two")


def made(id_: str, seed: int, mode: str) -> SyntheticRecord:
    """A video joined by cross traffic, later in each trial."""
    begin = 8 + seed / 4
    sent = constant(0, 40 + seed, 0, 30) + constant(1, 100, begin, 20 + seed / 97, kind=CROSS, router=True)
    built = record(sent, flows=["video", "cross"], duration_s=30.0, seed=seed, mode=mode, scenario=id_)
    built.trial |= {"schema": "streamgauge.trial/2", "kept": []}
    built.trial["flows"][1]["role"] = "rival"
    other = SCENARIOS[id_ == SCENARIOS[0]]
    built.trial["scenario"] |= {
        "question": "Does it back off?",
        "checks": {
            "high": {"that": "max(throughput.video) >= 1 bit/s", "origin": "predicted"},
            "alike": {
                "that": f"throughput.video == throughput.video of {other} +- 1 %",
                "origin": "predicted",
            },
        },
        "figures": [{"draw": "bars", "of": ["loss"], "by": "flow"}],
    }  # fmt: skip
    return built


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("many")
    for id_ in SCENARIOS:
        for seed in range(1, PER_SCENARIO + 1):
            built = made(id_, seed, "sim" if seed > 2 else "emu")
            place = built.write(out / id_.replace("/", "%2F") / f"seed={seed:02}")
            save_metrics(place, compute(built), {})
            (place / "packets.parquet").unlink()
            (place / "events.parquet").unlink()
    return out


class Reading:
    """Which trials' metrics were read, and how many were alive at most."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.alive: list[weakref.ref[TrialMetrics]] = []
        self.most = 0

    def load(self, directory: Path, measure: Mapping[str, Any]) -> TrialMetrics | None:
        found = load_metrics(directory, measure)
        if found is not None:
            self.read[str(directory)] += 1
            self.alive = [one for one in self.alive if one() is not None]
            self.alive.append(weakref.ref(found))
            self.most = max(self.most, len(self.alive))
        return found


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    gc.collect()
    found = Reading()
    monkeypatch.setattr(module, "load_metrics", found.load)
    monkeypatch.setattr(module, "_metrics", module._Metrics())
    yield found


def test_few_trials_are_in_memory_at_a_time(
    folder: Path, tmp_path: Path, reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT_BYTES", 0)
    build(folder, tmp_path / "r.html")
    assert len(reading.read) == 2 * PER_SCENARIO
    # The one kept, the one being read, and those that are drawn: one a mode.
    assert reading.most <= 4


def test_each_trial_is_read_once_while_a_scenario_fits(
    folder: Path, tmp_path: Path, reading: Reading
) -> None:
    build(folder, tmp_path / "r.html")
    assert set(reading.read.values()) == {1} and len(reading.read) == 2 * PER_SCENARIO


def page(source: Path | list[LoadedTrial], out: Path) -> str:
    return re.sub(
        r"made [\d-]+ [\d:]+ UTC", "made", build(source, out, left_out={}).read_text(encoding="utf-8")
    )


def test_the_page_is_that_of_trials_held_in_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [
        LoadedTrial(built.trial, {}, compute(built))
        for id_ in SCENARIOS
        for seed in range(1, PER_SCENARIO + 1)
        for built in [made(id_, seed, "sim" if seed > 2 else "emu")]
    ]
    assert page(folder, tmp_path / "a.html") == page(held, tmp_path / "b.html")
    monkeypatch.setattr(module, "_KEPT_BYTES", 0)
    assert page(folder, tmp_path / "c.html") == page(held, tmp_path / "b.html")
    said = answer(held)
    assert answer(folder) == said and "beside cross sending" in said


def test_numbers_are_the_metrics_own(folder: Path) -> None:
    for entry in gather(load(folder)):
        for group in entry.groups:
            trials = list(group.each())
            for name, flow in trials[0].flows.items():
                for metric in {**flow.series, **flow.scalars}:
                    theirs = [trial.value(metric, name) for trial in trials]
                    assert np.array_equal(group.values(metric, name), theirs, equal_nan=True), metric
                    theirs = [
                        trial.value(metric, name, 3.0, 9.0) for trial in trials if metric in flow.series
                    ]
                    found = group.values(metric, name, 3.0, 9.0)
                    assert np.array_equal(found[: len(theirs)], theirs, equal_nan=True), metric
            assert np.array_equal(group.values("jain"), [trial.jain for trial in trials])
            wait = group.values("queue_delay", "down.bottleneck")
            assert np.array_equal(wait, [trial.value("queue_delay", "bottleneck") for trial in trials])
            assert np.isnan(group.values("throughput", "nobody")).all()


def test_the_time_alone_ends_with_the_first_packet_of_another_in_any_trial(folder: Path) -> None:
    group = gather(load(folder))[0].group("sim")
    assert isinstance(group, Group)
    trials = list(group.each())

    def first(flow: str, begin_s: float) -> list[float]:
        found = []
        for trial in trials:
            seconds = trial.flows[flow].series["sending_time"].numerator
            at = np.flatnonzero((seconds > 0) & (trial.grid.starts_s >= begin_s))
            found.append(float(trial.grid.starts_s[at[0]]))
        return found

    assert group.numbers.first_sent("cross", 0.0) == first("cross", 0.0)
    assert group.phases("video") == phases(trials[0], "video", first)
    beside = group.phases("video")
    assert beside is not None and beside.before == (0.0, 8.5), "that of seed 3 begins at 8.75 s"


def test_metrics_that_cannot_be_read_leave_their_trial_out(folder: Path, reading: Reading) -> None:
    trials = load(folder)
    lost = trials[-1]
    assert lost.directory is not None and lost.valid, "files alone are looked at"
    places = [file for file in lost.directory.iterdir() if file.name.startswith("metrics.")]
    kept = [(file, file.read_bytes()) for file in places]
    for file in places:
        file.write_bytes(b"PAR1")
    try:
        entries = gather(trials)
        with pytest.raises(RecordError, match=r"metrics\.parquet: damaged.* run it again"):
            _ = lost.metrics
    finally:
        for file, bytes_ in kept:
            file.write_bytes(bytes_)
    (spoilt,) = [one for entry in entries for group in entry.groups for one in group.trials if one.damage]
    assert spoilt.seed == lost.seed and not spoilt.valid and "metrics.parquet: damaged" in spoilt.why[-1]
    (group,) = [one for one in entries[1].groups if one.mode == lost.mode]
    assert len(group.valid) == len(group.numbers) == PER_SCENARIO - 3
    assert [check.invalid for check in entries[1].checks if check.mode == lost.mode] == [1, 1]


def test_trials_that_say_the_same_share_it(folder: Path) -> None:
    mine = [trial for trial in load(folder) if trial.scenario == SCENARIOS[0]]
    assert len({id(trial.header["scenario"]) for trial in mine}) == 1
    assert all("plan" not in trial.header for trial in mine) and mine[0].plan["flows"]


def test_trials_of_a_virtual_machine_are_not_averaged_with_the_hosts() -> None:
    trials = []
    for seed in range(1, 7):
        built = made("test/one", seed, "emu")
        machine = {"virtual_machine": {"instructions_per_s": 10**9 * (1 + seed // 6)}} if seed > 2 else {}
        trials.append(LoadedTrial(built.trial, machine, compute(built)))
    entries = gather(trials)
    found = {entry.settings: [len(group.trials) for group in entry.groups] for entry in entries}
    assert found == {(): [2], ("machine=virtual:1",): [3], ("machine=virtual:2",): [1]}
    assert all(entry.checks for entry in entries), "it is no setting that a check would have to be made with"
