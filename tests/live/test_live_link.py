"""A real command behind a link that is watched and steered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from live_client import shown
from streamgauge.scenario import load, lower

pytestmark = [pytest.mark.emu, pytest.mark.xdist_group("machine")]

SERVER = "exec python3 -m http.server 8000 --bind $STREAMGAUGE_SERVER"


@pytest.fixture(scope="module")
def steered(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What a client saw and asked, and the record."""
    home = tmp_path_factory.mktemp("link")
    (home / "file").write_bytes(bytes(400_000))
    fetch = "for n in 1 2; do curl -so /dev/null http://$STREAMGAUGE_SERVER:8000/file; done"
    arguments = ["link", "--no-preflight", "--live", "--log", str(home / "log")]
    arguments += ["--down", "rate 2 Mbit/s, queue 30 kB, delay 5 ms", "--up", "delay 5 ms"]
    arguments += ["--server", SERVER, "--", "sh", "-c", fetch]
    answers: dict[str, Any] = {}
    samples: list[dict[str, Any]] = []
    with shown(arguments, cwd=home) as live:
        for name, data in live.events():
            if name == "over":
                answers["yaml"] = data["yaml"]
            if name != "message":
                continue
            samples.append(data)
            if not answers and data["total"]["down"]["delivered_packets"] > 20:
                answers["rate"] = live.change(down_rate="3 Mbit/s")
                answers["queue"] = live.change(down_queue="15 kB")
                answers["loss"] = live.change(down_loss="2 %")
                answers["delay"] = live.change(up_delay="15 ms", down_jitter="2 ms")
                answers["mark"] = live.change(mark="7")
                answers["wrong"] = live.change(down_ecn="on")
        assert live.wait() == 0, live.said
    return {"answers": answers, "samples": samples, "said": live.said}, home / "log"


def test_each_change_is_in_force_at_the_time_that_was_answered(steered: Any) -> None:
    found, record = steered
    events = pl.read_parquet(record / "events.parquet")
    for asked, name, value in (
        ("rate", "rate", 3e6),
        ("queue", "queue_limit", 15_000.0),
        ("loss", "loss_ratio", 0.02),
        ("delay", "jitter", 0.002),
    ):
        status, answer = found["answers"][asked]
        assert status == 200, answer
        rows = events.filter((pl.col("name") == name) & (pl.col("value") == value))
        assert abs(int(rows["time"][0]) - round(1e9 * answer["t_s"])) <= 1, asked
    status, answer = found["answers"]["wrong"]
    assert status == 400 and "never marks" in answer["error"]
    assert events.filter(pl.col("name") == "mark")["reason"].to_list() == [" 7"]


def test_the_record_is_of_the_path_as_it_was_steered(steered: Any) -> None:
    """What packets met is what the plan with the changes says, and a fresh path of it does the same."""
    _, record = steered
    trial = json.loads((record / "trial.json").read_text())
    assert trial["validity"]["measured"]["conditions"] == []
    assert len(trial["scenario"]["path"]["changes"]) == 5
    command = [sys.executable, "-m", "streamgauge", "verify", str(record), "--replay"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_saved_scenario_asks_emu_for_the_same_changes(steered: Any, tmp_path: Path) -> None:
    """Run again, each stage has the settings at the times at which they were changed by hand."""
    found, record = steered
    plan = json.loads((record / "trial.json").read_text())["plan"]
    file = tmp_path / "steered.yaml"
    file.write_text(found["answers"]["yaml"])
    (scenario,) = load(str(file))
    again = lower(scenario, "emu", plan["seed"])
    assert json.loads(json.dumps(again["path"])) == plan["path"]
    assert sum(len(stage.get("changes") or []) for stage in plan["path"]["down"]) == 3


def test_the_last_totals_are_those_of_the_record(steered: Any) -> None:
    found, record = steered
    packets = pl.read_parquet(record / "packets.parquet")
    path = json.loads((record / "trial.json").read_text())["plan"]["path"]
    last = found["samples"][-1]
    assert last["ended"] and last["verdict"].startswith(("valid", "INVALID"))
    for code, way in enumerate(("down", "up")):
        rows = packets.filter(pl.col("dir") == code)
        end = len(path["down"]) - 1 + (len(path["up"]) if way == "up" else 0)
        out = rows.filter((pl.col("stage") == end) & (pl.col("fate") == 0))
        assert last["total"][way]["offered_packets"] == rows["pkt"].n_unique()
        assert last["total"][way]["delivered_packets"] == len(out)
        assert last["total"][way]["delivered_bytes"] == out["wire_bytes"].sum()
        assert last["total"][way]["lost"] == len(rows.filter(pl.col("fate") == 1))
