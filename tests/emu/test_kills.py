"""Whatever dies, the machine is empty afterwards and the person is told."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from driving import Person, Watched, end
from scenarios import FTP, scenario

TEXT = scenario(FTP, until="3 s")
# Much longer than anybody takes to notice: who waits for its end shows.
LONG = scenario(FTP, until="60 s")


def _started(person: Person, *arguments: str, text: str = LONG) -> Watched:
    file = person.scenario(text)
    return Watched(
        person.popen("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.out), *arguments)
    )


@pytest.mark.parametrize("victim", ["sandbox", "init", "worker", "emulator"])
def test_a_part_of_ours_is_killed(person: Person, victim: str) -> None:
    watched = _started(person, "--json")
    try:
        watched.find("player")
        time.sleep(0.5)
        os.kill(watched.find(victim), signal.SIGKILL)
        answer, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert watched.popen.returncode == 2, said
    (trial,) = json.loads(answer)["trials"]
    assert not trial["valid"] and trial["digest"] is None
    assert "again" in trial["why"][0], trial["why"]
    assert not list(person.out.rglob(".seed=*.partial"))


def test_the_launcher_is_killed(person: Person) -> None:
    watched = _started(person)
    try:
        watched.find("player")
        time.sleep(0.5)
        watched.popen.send_signal(signal.SIGKILL)
        watched.popen.communicate(timeout=60)
        watched.assert_gone()
    finally:
        end(watched.popen)
    partial = list(person.out.rglob(".seed=*.partial"))
    assert len(partial) == 1, "the one folder that may stay, by its name"
    # The next run cleans it and is itself unharmed.
    trials = person.trials(TEXT)
    assert not list(person.out.rglob(".seed=*.partial"))
    assert trials


def test_ctrl_c(person: Person) -> None:
    watched = _started(person)
    try:
        watched.find("player")
        time.sleep(0.5)
        began = time.monotonic()
        watched.popen.send_signal(signal.SIGINT)
        _, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert time.monotonic() - began < 20
    assert watched.popen.returncode not in (0, 1), said
    assert "Traceback" not in said
    assert not list(person.out.rglob(".seed=*.partial"))


@pytest.mark.parametrize("victim", ["player", "server"])
def test_a_program_of_the_flow_is_killed(anyone: Person, victim: str) -> None:
    """As anyone: how a program ended its parent in the sandbox is told, whoever runs that."""
    watched = _started(anyone, "--json", text=scenario(FTP, until="4 s"))
    try:
        watched.find("player")
        time.sleep(0.5)
        os.kill(watched.find(victim), signal.SIGKILL)
        answer, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert watched.popen.returncode == 2, said
    (trial,) = json.loads(answer)["trials"]
    assert not trial["valid"]
    assert any(f"{victim} of flow ftp was killed by SIGKILL" in why for why in trial["why"]), trial["why"]
