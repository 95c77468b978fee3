"""Trials in threads: as many at once as asked, told in one thread, ended together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamgauge.campaign import Job, Outcome, jobs_for
from streamgauge.campaign.workers import Watcher, run_all
from streamgauge.scenario import load

Say = Callable[[str], None]


class Seen:
    """What a watcher was told, and by whom."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.threads: set[int] = set()
        self.watcher = Watcher(
            started=lambda job: self._add(f"started {job.seed}"),
            said=lambda job, words: self._add(f"{job.seed} {words}"),
            finished=lambda job, _: self._add(f"finished {job.seed}"),
        )

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self.threads.add(threading.get_ident())


def _done(job: Job) -> Outcome:
    return Outcome(job=job, valid=True, why=(), digest=None, wall_s=0.0)


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    scenario = load("hessler/ftp-no")[0]
    return jobs_for(scenario, "sim", tmp_path, first_seed=1, repeat=6)


def test_as_many_at_once_as_asked_and_no_more(jobs: list[Job]) -> None:
    together = threading.Barrier(3)
    lock, now, most = threading.Lock(), 0, 0

    def do(job: Job, say: Say) -> Outcome:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(timeout=20)  # three of them meet here, twice
        say("met")
        with lock:
            now -= 1
        return _done(job)

    seen = Seen()
    run_all(jobs, 3, do, seen.watcher)
    assert most == 3
    assert seen.threads == {threading.get_ident()}
    for job in jobs:
        mine = [line for line in seen.lines if str(job.seed) in line]
        assert mine == [f"started {job.seed}", f"{job.seed} met", f"finished {job.seed}"]


def test_a_failure_cancels_those_under_way_keeps_what_ends_well_and_starts_no_other(jobs: list[Job]) -> None:
    cancelled = threading.Event()
    begun: list[int] = []

    def do(job: Job, _say: Say) -> Outcome:
        begun.append(job.seed)
        if job.seed == 1:
            while len(begun) < 3:
                time.sleep(0.001)
            raise ValueError("no such program")
        assert cancelled.wait(timeout=20)
        if job.seed == 2:
            raise RuntimeError("ended")
        return _done(job)

    seen = Seen()
    with pytest.raises(ValueError, match="no such program"):
        run_all(jobs, 3, do, seen.watcher, cancel=cancelled.set)
    assert sorted(begun) == [1, 2, 3]
    assert [line for line in seen.lines if line.startswith("finished")] == ["finished 3"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("trial-")]


def test_nothing_to_do_is_done_at_once() -> None:
    run_all([], 4, lambda job, _: _done(job), Seen().watcher)


def test_ctrl_c_that_comes_twice_ends_what_is_under_way_all_the_same(jobs: list[Job]) -> None:
    cancelled, begun = threading.Event(), []
    asked: list[str] = []

    def do(job: Job, _say: Say) -> Outcome:
        begun.append(job.seed)
        assert cancelled.wait(timeout=20)
        return _done(job)

    def cancel() -> None:
        asked.append("cancel")
        if len(asked) == 1:
            raise KeyboardInterrupt  # before anything has been ended
        cancelled.set()

    def interrupted(job: Job) -> None:
        while len(begun) < 2:
            time.sleep(0.001)
        raise KeyboardInterrupt

    seen = Seen()
    watcher = replace(seen.watcher, started=interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_all(jobs, 2, do, watcher, cancel=cancel, force=lambda: asked.append("force"))
    assert asked == ["cancel", "force", "cancel"]
    assert sorted(begun) == [1, 2], "no other began"
    assert sorted(seen.lines) == ["finished 1", "finished 2"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("trial-")]
