"""With --keep metrics sim writes neither packets nor events; what is measured, and every digest, is that of a
trial that wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamgauge import _native
from streamgauge.campaign import run
from streamgauge.record import Record, RecordInMemory
from streamgauge.scenario import Scenario, load, lower

Make = Callable[..., Scenario]

# TCP's samples, drops and what enters at the router; RTP and its reports; several clips; names and a relay.
SCENARIOS = ("hessler/ftp-medium", "darwin/lossy-2qt2tcp", "realvideo/eight-150", "ccn/loss-2-cubic")


def both(plan: dict[str, Any], folder: Path) -> tuple[Record, RecordInMemory, dict[str, Any], dict[str, Any]]:
    written = json.loads(_native.simulate(json.dumps(plan), folder))
    text, packets, events = _native.simulate_in_memory(json.dumps(plan))
    record = Record(folder, {"kept": ["packets.parquet", "events.parquet"]})
    return record, RecordInMemory.of(folder, {}, packets, events), written, json.loads(text)


def assert_same(record: Record, held: RecordInMemory) -> None:
    assert list(held.columns) == list(record.columns)
    for name, values in record.columns.items():
        assert held.columns[name].dtype == values.dtype, name
        assert held.columns[name].tobytes() == values.tobytes(), name
        assert not held.columns[name].flags.writeable, name
        assert not values.flags.writeable, name
    assert list(held.told) == list(record.told)
    for key, (times, values) in record.told.items():
        assert held.told[key][0].tobytes() == times.tobytes(), key
        assert not any(array.flags.writeable for array in (*held.told[key], times, values)), key
        assert held.told[key][1].tobytes() == values.tobytes(), key
    assert held.units == record.units


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_held_is_what_would_be_read(name: str, tmp_path: Path) -> None:
    (scenario,) = load(name, mutants=False)
    record, held, written, summary = both(lower(scenario, "sim", 1), tmp_path)
    assert summary == written
    assert len(held.columns["pkt"]) == written["rows"] > 1000
    assert_same(record, held)


def test_rows_of_several_batches(make: Make, tmp_path: Path) -> None:
    scenario = make("path.down.rate=60Mbit/s", "path.down.queue=200 packets", "until.time=20 s",
                    "flows.ftp.parameters.receive_window=1MiB")  # fmt: skip
    record, held, written, summary = both(lower(scenario, "sim", 1), tmp_path)
    assert written["rows"] > 2 * 65_536
    assert summary == written
    assert_same(record, held)


def test_units_of_who_changed_his_mind(tmp_path: Path, make: Make) -> None:
    plan = lower(make(), "sim", 1)
    legend = _native.legend(json.dumps(plan))
    events = [
        {"t_ns": 1, "flow": "ftp", "name": "a", "value": 1.0, "unit": "s"},
        {"t_ns": 2, "flow": "ftp", "name": "a", "value": 2.0, "unit": "ms"},
        {"t_ns": 3, "flow": "ftp", "name": "a", "value": 3.0, "unit": "bit"},
        {"t_ns": 4, "flow": "ftp", "name": "a", "value": 4.0, "unit": "ms"},
        {"t_ns": 5, "flow": "ftp", "name": "b", "unit": "s"},
        {"t_ns": 6, "name": "c", "value": 1.0},
    ]
    _native.write_events(tmp_path, json.dumps(events), legend)
    units = Record(tmp_path, {"kept": ["events.parquet"]}).units
    # In alphabetical order of what was said, and ms are told in s.
    assert units == {("a", "ftp"): ("bit", "s"), ("c", None): ("",)}


def test_a_trial_is_the_same_whatever_is_kept(make: Make, tmp_path: Path) -> None:
    scenario = make()
    left: dict[str, tuple[dict[str, Any], bytes]] = {}
    for keep in ("metrics", "packets"):
        done = run([scenario], {scenario.id: ["sim"]}, tmp_path / keep, repeat=1, keep=keep)
        folder = done.outcomes[0].job.directory
        trial = json.loads((folder / "trial.json").read_text())
        assert trial.pop("kept") == ([] if keep == "metrics" else ["packets.parquet", "events.parquet"])
        # Digests of where it was made, and of what is kept.
        assert trial.pop("files") and trial.pop("seal")
        left[keep] = trial, (folder / "metrics.parquet").read_bytes()
    assert left["metrics"] == left["packets"]
