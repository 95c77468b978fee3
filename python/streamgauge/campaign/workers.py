"""Trials in threads: common code for concurrent trials, in sim and in emu."""

from __future__ import annotations

import collections
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.campaign.plan import Job
from streamgauge.campaign.trial import Outcome

__all__ = ["Watcher", "run_all"]

_LOOK_S: Final = 0.2
"""How often Ctrl-C is looked for while there is no news."""


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """Receives the outcome of the jobs, always from the thread that called `run_all`."""

    started: Callable[[Job], None]
    said: Callable[[Job, str], None]
    finished: Callable[[Job, Outcome], None]


class _End:
    """A thread has nothing left to do."""


def run_all(
    jobs: Sequence[Job],
    count: int,
    do: Callable[[Job, Callable[[str], None]], Outcome],
    watcher: Watcher,
    *,
    cancel: Callable[[], None] = lambda: None,
    force: Callable[[], None] = lambda: None,
) -> None:
    """Does all jobs, at most `count` at the same time, each in a thread that outlives it.

    Args:
        jobs: in the order in which they are begun.
        count: number of threads.
        do: does a job; the second argument takes a line about its wait.
        watcher: called for each.
        cancel: ends jobs under way; they may raise any error. Without it they end by themselves.
        force: does so when Ctrl-C comes again while they end.

    Raises a job's error, or KeyboardInterrupt, after every thread has ended; the watcher has received all
    that finished meanwhile.

    Not by concurrent.futures: Ctrl-C within its `wait` leaves futures locked and the workers stuck for ever.
    """
    waiting = collections.deque(jobs)
    news: queue.SimpleQueue[tuple[Job, str | Outcome | BaseException | None] | _End] = queue.SimpleQueue()
    stop = threading.Event()
    # Besides the queue: an interruption may lose an item that has just left it.
    ended: dict[Job, Outcome] = {}
    told_of: set[Job] = set()

    def finished(job: Job, outcome: Outcome) -> None:
        watcher.finished(job, outcome)
        told_of.add(job)

    def work() -> None:
        try:
            while not stop.is_set():
                try:
                    job = waiting.popleft()
                except IndexError:
                    return
                news.put((job, None))
                try:
                    ended[job] = do(job, lambda words, job=job: news.put((job, words)))  # type: ignore[misc]
                    news.put((job, ended[job]))
                except BaseException as error:
                    stop.set()
                    news.put((job, error))
        finally:
            news.put(_End())

    threads = [threading.Thread(target=work, name=f"trial-{n}") for n in range(min(count, len(jobs)))]

    def wind_up() -> None:
        # Jobs under way end and are kept if they end well; the rest never start.
        stop.set()
        cancel()
        for thread in threads:
            while thread.is_alive():
                thread.join(timeout=_LOOK_S)

    try:
        for thread in threads:
            thread.start()
        running = len(threads)
        while running:
            try:
                # With a timeout: where signals restart the interrupted call, Ctrl-C would wait for news.
                told = news.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if isinstance(told, _End):
                running -= 1
                continue
            job, what = told
            if what is None:
                watcher.started(job)
            elif isinstance(what, str):
                watcher.said(job, what)
            elif isinstance(what, Outcome):
                finished(job, what)
            else:
                raise what
    except BaseException:
        # One Ctrl-C may be two signals, the terminal's and a launcher's, and the second may arrive when the
        # first has just begun this: then all is repeated, in a hurry. Not in a function, since signals are
        # looked for where one begins, before its first try.
        hurried = False
        while True:
            try:
                if hurried:
                    force()
                wind_up()
                break
            except KeyboardInterrupt:
                hurried = True
        for job, outcome in ended.items():
            if job not in told_of:
                finished(job, outcome)
        raise
