"""How far a campaign is said to be: while everything waits for somebody else no time left is told, and what
was waited is no trial's time."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from streamgauge.campaign import board
from streamgauge.campaign.board import Board, Progress
from streamgauge.campaign.plan import Job
from streamgauge.emu.holder import Waiting

WAIT = Waiting("waiting for another emu trial on this machine (process 42, 'streamgauge run b'), 0 s so far")


@dataclass(frozen=True)
class Emulated:
    """As much of a job as a board asks for."""

    seed: int
    seconds: float = 40.0
    mode: str = "emu"

    @property
    def scenario(self) -> Any:
        return SimpleNamespace(id="test/x")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(board.time, "monotonic", lambda: now[0])
    return now


def jobs(count: int) -> list[Job]:
    return [cast(Job, Emulated(seed)) for seed in range(1, count + 1)]


def test_while_it_waits_no_time_left_is_told_and_who_waits_for_whom(clock: list[float]) -> None:
    told: list[Progress] = []
    todo = jobs(2)
    one = Board(todo, told.append)
    one.started(todo[0])
    before = told[-1].left_s
    assert before is not None and not told[-1].waits
    for _ in range(6):
        one.said(todo[0], WAIT)
        clock[0] += 10
    assert told[-1].left_s is None and told[-1].waits
    assert told[-1].now == f"test/x emu seed 1 is {WAIT}"
    one.said(todo[0], "setting up namespaces")
    assert told[-1].left_s == pytest.approx(before) and not told[-1].waits, "the minute's wait is nobody's"


def test_a_wait_does_not_slow_what_is_yet_to_come(clock: list[float]) -> None:
    todo = jobs(3)
    told: dict[bool, list[Progress]] = {True: [], False: []}
    for waits in (True, False):
        one = Board(todo, told[waits].append)
        for job in todo[:2]:
            one.started(job)
            if waits:
                one.said(job, WAIT)
                clock[0] += 500
                one.said(job, "setting up namespaces")
            clock[0] += 50
            one.finished(job, valid=True)
    waited, did_not = told[True][-1], told[False][-1]
    assert waited.left_s == pytest.approx(did_not.left_s)
    assert waited.rate == pytest.approx(did_not.rate)


def test_a_run_of_several_at_once_waits_before_its_first_trial(clock: list[float]) -> None:
    told: list[Progress] = []
    todo = jobs(4)
    one = Board(todo, told.append)
    one.at_once = 2
    one.say(WAIT)
    assert told[-1].waits and told[-1].left_s is None
    clock[0] += 100
    one.started(todo[0])
    assert not told[-1].waits and told[-1].left_s is not None


def test_one_of_several_that_waits_stops_no_clock(clock: list[float]) -> None:
    told: list[Progress] = []
    todo = jobs(2)
    one = Board(todo, told.append)
    for job in todo:
        one.started(job)
    one.said(todo[0], WAIT)
    assert not told[-1].waits and told[-1].left_s is not None


def test_a_trial_that_takes_longer_than_it_was_to_has_no_time_left_to_tell(clock: list[float]) -> None:
    told: list[Progress] = []
    todo = jobs(1)
    one = Board(todo, told.append)
    one.started(todo[0])
    clock[0] += 9 * 60
    one.said(todo[0], "40 of 40 s")
    assert told[-1].left_s is None and not told[-1].waits
    one.finished(todo[0], valid=True)
    assert told[-1].left_s == 0
