"""Trials in batches, from the campaign to the workers, and their rows back.

Trials are sent in batches of about a second's work, which gives the scheduler no more to do than with long
tasks, and only few batches at a time, one waiting for every worker: a million trials do not lie in the
scheduler at once. Records go straight from the workers to where they are to lie.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamgauge.campaign.cluster.on_worker import EMU, Batch, BatchResult, run_batch, version
from streamgauge.campaign.cluster.workers import Workers, cannot_answer
from streamgauge.campaign.plan import Job
from streamgauge.campaign.remote import Remote
from streamgauge.campaign.trial import EmuSettings
from streamgauge.campaign.work import Task
from streamgauge.campaign.workers import Watcher
from streamgauge.errors import CannotRunError
from streamgauge.record.schema import TRIAL
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from distributed import Future

__all__ = ["Batches"]

_BATCH_S: Final = 1.0
"""Least work in a batch for a worker, by the time of the scenario's trials so far."""
_BATCHES_PER_S: Final = 200.0
"""How many batches the scheduler is given at most: those of a large cluster are longer."""
_LARGEST: Final = 1024
"""Trials of a batch."""
_WAITING: Final = 2
"""Batches that wait on each thread of the cluster beside the one that runs."""
_LOOK_S: Final = 1.0
"""Interval of the checks for new and lost workers."""
_REFUSALS: Final = 3
"""How often a batch may be refused, by workers of another version, before the campaign ends."""


@dataclass(eq=False)
class _Sent:
    """A batch under way."""

    future: Future
    jobs: list[Job]
    refusals: int = 0


class Batches:
    """One use of a cluster: `run`."""

    def __init__(
        self,
        workers: Workers,
        root: Path,
        remote: Remote | None,
        pace: dict[tuple[str, Mode], float],
        task: Callable[[Job], Task],
        emu: EmuSettings,
        watcher: Watcher,
    ) -> None:
        self._workers = workers
        self._root = root
        self._remote = remote
        self._pace = pace
        self._task = task
        self._emu = emu
        self._watcher = watcher
        self._names = (f"streamgauge-{uuid.uuid4().hex[:8]}-{number}" for number in itertools.count())
        self._waiting: deque[Job] = deque()
        #: Trials of batches under which workers died: each runs at the end, alone, which keeps the blame off
        #: others.
        self._suspects: deque[Job] = deque()
        #: Trials that existed before the first batch with them, and must run all the same.
        self._anew: set[Job] = set()
        self._sent: dict[str, _Sent] = {}
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self, jobs: Sequence[Job]) -> None:
        """Runs all jobs, of one mode.

        A worker that dies loses its batch: that is given to another, as often as Dask's
        ``distributed.scheduler.allowed-failures`` allows (3 times, unless configured). Trials that were on as
        many workers that died run again at the end, one by one; one under which as many die again is to
        blame.

        Raises what a trial raised, CannotRunError if the cluster died or a trial killed its workers,
        KeyboardInterrupt; batches that have not begun are then withdrawn, and those under way end without a
        wait.
        """
        self._waiting.extend(jobs)
        looked = time.monotonic() - 2 * _LOOK_S
        deadly: list[str] = []
        try:
            while self._waiting or self._sent or self._suspects:
                if time.monotonic() - looked > _LOOK_S:
                    self._workers.see_who_is_there()
                    looked = time.monotonic()
                self._fill()
                ended = [self._sent.pop(name) for name in self._drained() if name in self._sent]
                for one, found in zip(ended, self._results([one.future for one in ended]), strict=True):
                    if isinstance(found, BatchResult):
                        self._take(one, found)
                    elif (died := self._failed(one, found)) is not None:
                        deadly.append(died)
        except BaseException:
            with contextlib.suppress(Exception):
                self._workers.client.cancel([one.future for one in self._sent.values()], force=True)
            raise
        if deadly:
            raise CannotRunError("\n".join(deadly))

    def _fill(self) -> None:
        """Sends as many batches as the cluster should have before it."""
        if not self._waiting:
            if self._suspects and not self._sent:
                self._send([[self._suspects.popleft()]], alone=True)
            return
        threads = max(1, self._workers.threads(self._waiting[0].mode))
        most = threads * (1 + _WAITING)
        if len(self._sent) > most - threads:  # not one by one: a joint message costs less
            return
        batches: list[list[Job]] = []
        while self._waiting and len(self._sent) + len(batches) < most:
            batches.append(self._batch(threads))
        if self._remote is None:
            self._anew.update(job for jobs in batches for job in jobs if (job.directory / TRIAL).exists())
        self._send(batches)

    def _batch(self, threads: int) -> list[Job]:
        """Returns the next jobs that go together: of one scenario, about a second's work, more in a large
        cluster, and few enough that everybody has some to the end."""
        waiting = self._waiting
        first = waiting.popleft()
        found = [first]
        pace = self._pace.get((first.scenario.id, first.mode))
        if first.mode == "emu" or pace is None:
            return found
        longest_s = max(_BATCH_S, threads / _BATCHES_PER_S)
        size = min(_LARGEST, int(longest_s / max(pace, 1e-6)), len(waiting) // (2 * threads) + 1)
        while len(found) < size and waiting and waiting[0].scenario is first.scenario:
            found.append(waiting.popleft())
        return found

    def _send(self, batches: list[list[Job]], *, refusals: int = 0, alone: bool = False) -> None:
        """Gives batches to the scheduler."""
        is_emu = batches[0][0].mode == "emu"
        packed = [
            Batch(
                tasks=tuple(self._packed(job) for job in jobs),
                anew=tuple(job in self._anew for job in jobs),
                version=version(),
                emu=self._emu if is_emu else None,
                root=str(self._root),
                url=None if self._remote is None else self._remote.url,
            )
            for jobs in batches
        ]
        prefix = "alone-" if alone else ""
        with self._workers.talking():
            futures = self._workers.client.map(
                run_batch,
                packed,
                key=[prefix + next(self._names) for _ in packed],
                pure=False,
                workers=self._workers.only,
                resources={EMU: 1} if is_emu else None,
                batch_size=None,
            )
        for future, jobs in zip(futures, batches, strict=True):
            self._sent[future.key] = _Sent(future, jobs, refusals)
            future.add_done_callback(lambda done: self._news.put(done.key))

    def _packed(self, job: Job) -> Task:
        return replace(self._task(job), directory=str(job.directory.absolute()))

    def _drained(self) -> list[str]:
        """Returns the batches that have ended, after a wait for the first."""
        found = []
        with contextlib.suppress(queue.Empty):
            found.append(self._news.get(timeout=0.5))
            while True:
                found.append(self._news.get_nowait())
        return found

    def _results(self, futures: list[Future]) -> list[BatchResult | BaseException]:
        """Returns the result of each."""
        done = [future for future in futures if future.status == "finished"]
        found: dict[str, Any] = {}
        with self._workers.talking():
            try:
                # All at once: single fetches cost a round trip each.
                rows = self._workers.client.gather(done)
                found = {future.key: row for future, row in zip(done, rows, strict=True)}
            except Exception:
                # A worker that held some died, and their repetition failed.
                done = []
            for future in futures:
                if future.key in found:
                    continue
                try:
                    found[future.key] = future.result()
                except Exception as error:
                    found[future.key] = error
        return [found[future.key] for future in futures]

    def _take(self, one: _Sent, done: BatchResult) -> None:
        """The rows of a batch."""
        if done.refused:
            self._workers.see_who_is_there(refusing=done.worker)
            self._again(one, done.refused)
            return
        if not all(done.reused) and done.rows:
            first = one.jobs[0]
            self._pace[first.scenario.id, first.mode] = done.wall_s / len(done.rows)
        for job, row, reused in zip(one.jobs, done.rows, done.reused, strict=False):
            if isinstance(row, BaseException):
                raise row
            # A folder has only results of a worker that died since: the campaign has checked before.
            there = reused and self._remote is not None
            self._watcher.finished(job, replace(row.outcome(job), reused=there))

    def _failed(self, one: _Sent, error: BaseException) -> str | None:
        """Handles a batch that failed; returns the message if its one trial is to blame."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        if isinstance(error, CancelledError):
            raise self._workers.gone()
        if isinstance(error, KilledWorker):
            if not str(one.future.key).startswith("alone-"):
                self._suspects.extend(one.jobs)
                return None
            deaths = error.allowed_failures + 1
            return (
                f"{one.jobs[0].directory}: {deaths} worker{'' if deaths == 1 else 's in turn'} died while "
                "this trial ran alone; if they are out of memory, give them more or run the scenario with a "
                "shorter 'until'."
            )
        if isinstance(error, ImportError | AttributeError | TypeError):
            # A worker that has come since, without StreamGauge or with a much older one.
            self._workers.see_who_is_there()
            self._again(one, cannot_answer(error))
            return None
        raise error

    def _again(self, one: _Sent, why: str) -> None:
        if one.refusals >= _REFUSALS or self._workers.only == []:
            raise CannotRunError(
                f"workers of the cluster at {self._workers.address} cannot run trials: {why}."
            )
        self._send([one.jobs], refusals=one.refusals + 1)
