"""A control that another program simulates: here a program that runs our simulator with CUBIC."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from streamgauge.evaluate.judging import judge
from streamgauge.evaluate.network import CENTRE
from streamgauge.evaluate.question import CriterionQuestion, SameAs
from streamgauge.evaluate.running import run_trials, trials_of
from streamgauge.evaluate.rust_crate import STAND_IN, CrateControl, is_crate
from streamgauge.evaluate.trials import ControlBed

PROGRAM = """#!{python}
import sys
from pathlib import Path
from streamgauge import _native

_, command, plan, directory = sys.argv
if "{fails}":
    sys.exit("error: {fails}")
print(_native.simulate(Path(plan).read_text(), directory))
"""
NETWORK = replace(CENTRE, rate_bps=5e6, seconds=8.0)


def program(folder: Path, *, fails: str = "") -> CrateControl:
    """A program whose control is called cubic."""
    file = folder / "program"
    file.write_text(PROGRAM.format(python=sys.executable, fails=fails))
    file.chmod(0o755)
    return CrateControl(file, "cubic")


def question() -> CriterionQuestion:
    """Its goodput beside CUBIC, less CUBIC's in its place."""
    bed = ControlBed(STAND_IN)
    rival = {"rival1": bed.place("cubic")["mine1"]}
    trials = (bed.trial(NETWORK, bed.mine() | rival), bed.trial(NETWORK, bed.place("cubic") | rival))
    return CriterionQuestion(
        "c", "s", "x", SameAs(1.0, "more"), trials, lambda r: r[0]("goodput.mine1") - r[1]("goodput.mine1")
    )


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script by its first line")
def test_its_control_takes_the_stand_in_s_place_and_no_other(tmp_path: Path) -> None:
    asked = [question()]
    ran = run_trials(trials_of(asked), "sim", tmp_path / "out", seeds=2, crate=program(tmp_path))
    assert not ran.faults, [fault.words for fault in ran.faults.values()]
    (row,) = judge(asked, ran, 2)
    assert row.verdict == "equal" and set(row.values) == {0.0}
    again = run_trials(trials_of(asked), "sim", tmp_path / "out", seeds=2, crate=program(tmp_path))
    assert again.reused == 4


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script by its first line")
def test_one_that_fails_is_a_fault_of_the_control(tmp_path: Path) -> None:
    asked = [question()]
    broken = program(tmp_path, fails="window below 1")
    ran = run_trials(trials_of(asked), "sim", tmp_path / "out", seeds=1, crate=broken)
    (row,) = judge(asked, ran, 1)
    assert row.verdict == "fail" and "window below 1" in row.why


def test_a_folder_with_a_manifest_is_a_crate(tmp_path: Path) -> None:
    assert not is_crate(f"{tmp_path}:mine")
    (tmp_path / "Cargo.toml").touch()
    assert is_crate(f"{tmp_path}:mine") and is_crate(str(tmp_path))
    assert not is_crate("cubic") and not is_crate("mine.py:Mine")
