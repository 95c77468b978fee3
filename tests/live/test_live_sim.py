"""A trial of sim that is watched and steered over the page's own interface."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from live_client import Shown, left, shown
from streamgauge.campaign import run
from streamgauge.scenario import load

SCENARIO = "today/demo-rtsp-udp-medium"
KEYS = {"offered_bps", "delivered_bps", "lost", "queue_bytes", "delay_p95_s"}


def steer(live: Shown) -> dict[str, Any]:
    """Changes this and that once samples come; what was answered, and the last sample."""
    answers: dict[str, Any] = {}
    found: dict[str, Any] = {"answers": answers, "samples": []}
    for name, data in live.events():
        if name == "message":
            found["samples"].append(data)
            if "rate" not in answers and data["t_s"] > 2:
                answers["rate"] = live.change(down_rate="500 kbit/s")
                answers["several"] = live.change(down_loss="5 %", down_jitter="3 ms", up_delay="20 ms")
                answers["queue"] = live.change(down_queue="20 packets")
                answers["mark"] = live.change(mark="tight")
        elif name != "message":
            found[name] = data
    return found


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path, list[str]]:
    out = tmp_path_factory.mktemp("steered")
    with shown(["run", SCENARIO, "--mode", "sim", "--live", "--pace", "8", "--out", str(out)]) as live:
        found = steer(live)
        assert live.wait() == 0, live.said
        return found, out, live.said


def test_the_stream_has_what_scripts_rely_on(steered: Any) -> None:
    found, _, _ = steered
    for sample in found["samples"]:
        assert {"t_s", "down", "up", "flows", "verdict"} <= sample.keys()
        assert sample["down"].keys() >= KEYS and sample["up"].keys() >= KEYS
        assert sample["flows"].keys() >= {"video", "cross"}
    times = [sample["t_s"] for sample in found["samples"]]
    assert times == sorted(times) and found["samples"][-1]["ended"]
    assert found["hello"]["flows"] == ["video", "cross"]


def test_a_change_is_answered_by_its_time_and_is_a_row_of_the_record(steered: Any) -> None:
    found, out, _ = steered
    record, _ = left(out)
    events = pl.read_parquet(record / "events.parquet")
    wanted = {"rate": ("rate", 500_000.0), "several": ("loss_ratio", 0.05), "queue": ("queue_limit", 20.0)}
    for asked, (name, value) in wanted.items():
        status, answer = found["answers"][asked]
        assert status == 200, answer
        at_ns = round(1e9 * answer["t_s"])
        rows = events.filter((pl.col("name") == name) & (pl.col("value") == value))
        assert abs(int(rows["time"][0]) - at_ns) <= 1, (asked, rows)
    marks = events.filter(pl.col("name") == "mark")
    assert marks["reason"].to_list() == [" tight"]


def test_the_last_totals_are_those_of_the_record(steered: Any) -> None:
    found, out, _ = steered
    record, _ = left(out)
    packets = pl.read_parquet(record / "packets.parquet")
    path = json.loads((record / "trial.json").read_text())["plan"]["path"]
    total = found["samples"][-1]["total"]
    for code, way in enumerate(("down", "up")):
        rows = packets.filter(pl.col("dir") == code)
        end = len(path["down"]) - 1 + (len(path["up"]) if way == "up" else 0)
        last = rows.filter(pl.col("stage") == end)
        left_it = last.filter(pl.col("fate") == 0)
        assert total[way]["offered_packets"] == rows["pkt"].n_unique()
        assert total[way]["delivered_packets"] == len(left_it)
        assert total[way]["delivered_bytes"] == left_it["wire_bytes"].sum()
        assert total[way]["lost"] == len(rows.filter(pl.col("fate") == 1))
    assert total["down"]["lost"] > 0


def test_what_was_steered_replays_to_the_same_digest(steered: Any, tmp_path: Path) -> None:
    _, out, _ = steered
    record, file = left(out)
    (scenario,) = load(str(file))
    assert len(scenario.path.changes or ()) == 4
    again = run([scenario], {scenario.id: ["sim"]}, tmp_path, first_seed=1, repeat=1)
    assert again.outcomes[0].digest == json.loads((record / "trial.json").read_text())["digest"]


def test_checks_are_printed_and_count_for_nothing_once_the_path_was_changed(
    steered: Any, tmp_path: Path
) -> None:
    """The checks of `SCENARIO` ask for losses that its own path alone brings."""
    _, _, said = steered
    text = "\n".join(said)
    assert "3 changes by hand" in text and "do not count" in text
    command = [sys.executable, "-m", "streamgauge", "run", SCENARIO, "--mode", "sim"]
    command += ["--live=terminal", "--pace", "40", "--out", str(tmp_path)]
    # Left alone, it is a trial as any other, and its checks decide.
    for more, status in (([], 0), (["--set", "checks.loses.that=mean(loss.video) >= 90 %"], 1)):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        words = done.stdout.split()
        assert "steady" in words and "loses" in words
        assert "do not count" not in done.stderr


def test_the_scenario_that_a_page_saves_is_the_one_that_was_kept(steered: Any) -> None:
    found, out, _ = steered
    _, file = left(out)
    assert found["over"]["yaml"] == file.read_text()
