"""The traces that ship: made by their script, read by the reader, and of the size that their models say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from streamgauge import _native
from streamgauge.errors import ScenarioError

ROOT = Path(__file__).parent.parent.parent
TRACES = ROOT / "python" / "streamgauge" / "traces"


def test_the_script_makes_what_ships(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "make-traces.py", tmp_path], check=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in TRACES.iterdir()}


@pytest.mark.parametrize(
    ("name", "duration_s", "least_bps", "most_bps"),
    [
        ("lte-driving.csv", 600, 5e6, 25e6),
        ("wifi-lossy.csv", 600, 4e6, 24e6),
        ("hsdpa-bus.csv", 600, 0.7e6, 3e6),
        ("lte-walking.pps", 60, 1.5e6, 8e6),
    ],
)
def test_each_reads_as_a_link(name: str, duration_s: float, least_bps: float, most_bps: float) -> None:
    trace = json.loads(_native.parse_trace((TRACES / name).read_text()))
    assert trace["format"] == ("mahimahi" if name.endswith(".pps") else "csv")
    assert trace["duration_ns"] == pytest.approx(duration_s * 1e9, rel=0.01)
    assert least_bps < trace["mean_bps"] < most_bps
    assert trace["samples"] > 500


def test_steps_are_repeated_for_as_long_as_asked() -> None:
    trace = json.loads(_native.parse_trace("time_s,rate_kbps\n0,1\n1,2\n", lasts_ns=3 * 10**9))
    assert trace["rate"] == {"steps": [[0, 1000], [10**9, 2000], [2 * 10**9, 1000], [3 * 10**9, 2000]]}
    forced = json.loads(_native.parse_trace("0 9\n1 2\n", "pensieve"))
    assert (forced["rate"], forced["mean_bps"]) == ({"steps": [[0, 2_000_000]]}, 2_000_000)


def test_a_refusal_is_a_scenario_error_of_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"^line 2: its time is not later") as caught:
        _native.parse_trace("5\n4\n")
    assert "\n" not in str(caught.value)
    with pytest.raises(ScenarioError, match="no trace format is called"):
        _native.parse_trace("5\n", "nonsense")
