"""A folder that several machines share: what each may sweep away of another's."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest
from streamgauge.campaign.layout import place, remove_leftovers, trial_directory

A_DAY_S = 86_400
NOBODY = 4_194_304  # above the kernel's largest pid


def _left(out: Path, name: str, *, age_s: float = 0.0) -> Path:
    partial = out / "scenario=a" / "mode=sim" / name
    (partial / "logs").mkdir(parents=True)
    (partial / "logs" / "player.log").write_text("half a line")
    for path in (partial / "logs" / "player.log", partial / "logs", partial):
        then = path.stat().st_mtime - age_s
        os.utime(path, (then, then))
    return partial


def test_a_trial_that_grows_says_which_machines_process_writes_it(tmp_path: Path) -> None:
    with place(trial_directory(tmp_path, "a", "sim", 7)) as partial:
        assert partial.name.startswith(f".seed=7.{platform.node()}.{os.getpid()}-")
        assert remove_leftovers(tmp_path) == 0
    assert trial_directory(tmp_path, "a", "sim", 7).is_dir()


def test_of_another_machine_its_number_says_nothing_here(tmp_path: Path) -> None:
    theirs = _left(tmp_path, f".seed=1.node-17.example.org.{NOBODY}-00000000.partial")
    assert remove_leftovers(tmp_path) == 0
    assert (theirs / "logs" / "player.log").exists()


def test_what_another_machine_left_a_day_ago_goes(tmp_path: Path) -> None:
    dead = _left(tmp_path, ".seed=1.node-17.1-00000000.partial", age_s=A_DAY_S + 60)
    alive = _left(tmp_path, ".seed=2.node-17.1-00000000.partial", age_s=A_DAY_S - 60)
    busy = _left(tmp_path, ".seed=3.node-17.1-00000000.partial", age_s=A_DAY_S + 60)
    (busy / "logs" / "player.log").write_text("one more line")
    assert remove_leftovers(tmp_path) == 1
    assert (dead.exists(), alive.exists(), busy.exists()) == (False, True, True)


@pytest.mark.parametrize("host", ["", f"{platform.node()}."], ids=["an earlier version's name", "ours"])
def test_of_this_machine_the_process_says_whether_it_is_gone(tmp_path: Path, host: str) -> None:
    gone = _left(tmp_path, f".seed=1.{host}{NOBODY}-00000000.partial")
    here = _left(tmp_path, f".seed=2.{host}{os.getpid()}-00000000.partial", age_s=2 * A_DAY_S)
    assert remove_leftovers(tmp_path) == 1
    assert (gone.exists(), here.exists()) == (False, True)
