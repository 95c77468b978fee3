"""The worked example of docs/player-events.md: a player of one's own is measured by what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from driving import CHECKOUT, Person, the_valid_one
from streamgauge.campaign.stored import long_form

EXAMPLES = CHECKOUT / "examples"


def test_a_player_of_ones_own_is_measured_by_what_it_says(anyone: Person) -> None:
    """In 12 s of its 25, with metrics kept alone."""
    shutil.copy(EXAMPLES / "own_player.py", anyone.home)
    (anyone.home / "own_player.py").chmod(0o644)
    text = (EXAMPLES / "own-player.yaml").read_text(encoding="utf-8")
    short = text.replace("time: 25 s", "time: 12 s").replace("start: 6 s, stop: 16 s", "start: 3 s")
    assert short.count("time: 12 s") == short.count("start: 3 s") == 1
    trial = the_valid_one(anyone.trials(short, "--keep", "metrics"))
    found = trial["flows"]["video"]
    assert 1 <= found["stall_count"] == found["events"]["my_rebuffer"]["count"]
    assert 0 < found["stall_time_s"] < 9 and 0 < found["startup_delay_s"] < 5
    assert found["rebuffer_percent"] == pytest.approx(
        100 * found["stall_time_s"] / (12 - found["startup_delay_s"]), rel=0.1
    )
    assert found["transfers"] == found["events"]["my_decode_time"]["count"] >= 3
    assert 0 < found["events"]["my_decode_time"]["mean"] < 0.05 and found["frames_shown"] is None
    directory = Path(trial["directory"])
    assert not (directory / "events.parquet").exists()
    rows = long_form([directory]).filter(flow="video").collect()
    units = dict(rows.select("metric", "unit").iter_rows())
    assert units["event.my_decode_time"] == "s" and units["event_count.my_rebuffer"] == "1"
    file = str(anyone.home / "scenario.yaml")
    done = anyone.run(
        "run", file, "--mode", "emu", "--seed", str(trial["seed"]), "--keep", "metrics",
        "--out", str(anyone.out), "--json",
    )  # fmt: skip
    again = json.loads(done.stdout)
    assert [one["digest"] for one in again["trials"]] == [trial["digest"]], "it has not run again"
    assert {check["id"]: check["verdict"] for check in again["checks"]} == {
        "stalls": "pass",
        "rebuffers": "pass",
        "decodes": "pass",
    }
