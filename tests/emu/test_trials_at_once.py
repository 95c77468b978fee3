"""Several trials at the same time: each whole and judged for itself, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from driving import PARTS, Person, Watched, end, starved, tell_starved
from scenarios import FTP, scenario
from streamgauge.emu.concurrency import ConcurrentTrials, Lifelines
from streamgauge.emu.errors import TrialBrokenError

TEXT = scenario(FTP, until="3 s")
LONG = scenario(FTP, until="60 s")


def _provenance(trial: dict[str, Any]) -> dict[str, Any]:
    return json.loads((Path(trial["directory"]) / "provenance.json").read_text())


def test_each_is_whole_and_says_how_many_there_were(anyone: Person) -> None:
    """As anyone: slots and the lock are the launcher's own; `test_ctrl_c_ends_all_of_them` has two at once as
    both."""
    file = anyone.scenario(TEXT)
    arguments = ["run", file, "--mode", "emu", "--seed", "1", "--repeat", "3", "--jobs", "2", "--json"]
    done = anyone.run(*arguments, "--out", str(anyone.out))
    assert done.stdout, done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert [trial["seed"] for trial in trials] == [1, 2, 3]
    for trial in trials:
        # What a busy machine does is told, and anything else fails.
        if starved(trial):
            tell_starved(trial, f"{anyone.way}, two at once")
        else:
            assert trial["valid"], trial["why"]
        provenance = _provenance(trial)
        assert provenance["concurrent_trials"]["allowed"] == 2
        # The path is its own: its flow had more than half of the 300 kbit/s.
        assert 155e3 < trial["flows"]["ftp"]["throughput_bps"] <= 300e3
    assert [_provenance(trial)["concurrent_trials"]["most"] for trial in trials[:2]] == [2, 2]
    # The same command does only what was invalid again.
    before = {trial["seed"]: trial["digest"] for trial in trials if trial["valid"]}
    again = json.loads(anyone.run(*arguments, "--out", str(anyone.out)).stdout)["trials"]
    assert {trial["seed"]: trial["digest"] for trial in again if trial["seed"] in before} == before


def test_ctrl_c_ends_all_of_them(person: Person) -> None:
    file = person.scenario(LONG)
    arguments = ["run", file, "--mode", "emu", "--seed", "1", "--repeat", "4", "--jobs", "2"]
    watched = Watched(person.popen(*arguments, "--out", str(person.out)))
    try:
        until = time.monotonic() + 300
        while _players(watched) < 2:
            assert time.monotonic() < until and watched.popen.poll() is None, watched.seen
            time.sleep(0.05)
        time.sleep(0.5)
        began = time.monotonic()
        watched.popen.send_signal(signal.SIGINT)
        _, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert time.monotonic() - began < 20
    assert watched.popen.returncode == 130, said
    assert "Traceback" not in said and "0 of 4 trials are kept" in said
    assert not list(person.out.rglob(".seed=*.partial"))


def _players(watched: Watched) -> int:
    watched.look()
    return sum(
        PARTS["player"](pid, line) and Path(f"/proc/{pid}").exists() for pid, line in watched.seen.items()
    )


def test_lifelines_end_together_and_once() -> None:
    lifelines = Lifelines()
    first, *others = (lifelines.open() for _ in range(3))
    lifelines.close(first)
    assert os.read(first.reading, 1) == b"", "closed"
    # Another trial's has the number now: to end the first again, as its own trial does, harms nobody.
    os.close(first.reading)
    again = lifelines.open()
    assert again.writing in (first.reading, first.writing)
    lifelines.close(first)
    os.write(again.writing, b"x")
    assert os.read(again.reading, 1) == b"x"
    others.append(again)
    lifelines.stop()
    assert [os.read(one.reading, 1) for one in others] == [b"", b"", b""]
    with pytest.raises(TrialBrokenError, match="again"):
        lifelines.open()
    for one in others:
        os.close(one.reading)


def test_a_trial_knows_how_many_ran_beside_it() -> None:
    concurrent = ConcurrentTrials(lock=0, allowed=3)
    with concurrent.slot() as first:
        with concurrent.slot() as second, concurrent.slot() as third:
            assert (first.most, second.most, third.most) == (3, 3, 3)
        with concurrent.slot() as fourth:
            pass
    assert (first.most, fourth.most, fourth.allowed) == (3, 2, 3)
    with ConcurrentTrials(lock=0).slot() as alone:
        assert (alone.most, alone.allowed) == (1, 1)
