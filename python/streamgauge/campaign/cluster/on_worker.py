"""Functions that workers of a Dask cluster run for a campaign: trials, and checks before the first."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import streamgauge
from streamgauge import _native
from streamgauge.campaign.machine import why_not
from streamgauge.campaign.plan import EMU_VERSION
from streamgauge.campaign.remote import Remote
from streamgauge.campaign.trial import EmuSettings, reuse
from streamgauge.campaign.work import Row, Task, as_sent, perform
from streamgauge.errors import StreamGaugeError
from streamgauge.scenario import Scenario, lower
from streamgauge.systems.registry import Mode

__all__ = [
    "EMU",
    "Batch",
    "BatchResult",
    "Prepared",
    "look",
    "plan_digest",
    "prepare",
    "run_batch",
    "version",
]

BROKEN: Final = 2
"""Exit status of errors that mean "inconclusive": a process of the trial died, no input is wrong."""
EMU: Final = "emu"
"""The resource of workers that may run emu trials, one of it a trial."""
UPLOADS: Final = 8
"""Trials of a batch that go up at the same time: a request to a store takes longer than a short trial."""


def version() -> dict[str, Any]:
    """Returns the versions that must be the same wherever trials of a campaign run."""
    return {"streamgauge": streamgauge.__version__, "model": _native.MODEL_VERSION, "emu": EMU_VERSION}


def look(dask_worker: Any) -> dict[str, Any]:
    """Returns the description of this worker; Dask supplies the worker. Quick: nothing is started and no file
    is read."""
    return {
        **version(),
        "host": platform.node(),
        "now": time.time(),
        "threads": dask_worker.state.nthreads,
        "resources": dict(dask_worker.state.total_resources),
    }


@dataclass(frozen=True)
class Prepared:
    """Requirements that a worker checks before trials arrive."""

    out: str | None = None
    """A folder that it must share with the campaign."""
    token: str = ""
    """Name and content of the marker file in it."""
    url: str | None = None
    """Where it must be able to write objects."""
    emu: bool = False
    """Whether it must be able to run emu."""
    way: str | None = None
    plans: Mapping[str, tuple[Scenario, Mode, int, str]] = field(default_factory=dict)
    """Trials with contents, by scenario: seed, and the digest of the plan that must come of it."""


async def prepare(asked: Prepared) -> list[str]:
    """Returns the missing parts of this worker, in words; runs beside its event loop, which would delay
    everything else."""
    return await asyncio.to_thread(_lacking, asked)


def _lacking(asked: Prepared) -> list[str]:
    found = []
    if asked.out is not None and (why := _not_shared(Path(asked.out), asked.token)):
        found.append(why)
    if asked.url is not None:
        try:
            Remote(asked.url).probe(f"{asked.token}-{platform.node()}-{os.getpid()}")
        except StreamGaugeError as error:
            found.append(str(error))
    if asked.emu and (why := why_not("emu", way=asked.way)):
        found.append(f"cannot run emu, though it has the resource '{EMU}': {why}")
    for scenario, mode, seed, expected in asked.plans.values():
        try:
            if plan_digest(scenario, mode, seed) != expected:
                found.append(
                    f"makes another plan of {scenario.id} than here: its clip is another file, or another "
                    "version of ffmpeg encodes it; put the same file at the same path, and install the "
                    "same ffmpeg"
                )
        except StreamGaugeError as error:
            found.append(f"{error} Put the same files at the same paths on every worker.")
    return found


def _not_shared(out: Path, token: str) -> str | None:
    """Returns why a folder is not the campaign's; leaves an answer beside its question if it is."""
    remedy = f"share {out} and mount it there at the same path, or give --out a URL such as s3://bucket/run-1"
    try:
        said = (out / f".{token}").read_text(encoding="utf-8")
    except OSError as error:
        return f"does not see the campaign's folder {out} ({error.strerror}); {remedy}"
    if said != token:
        return f"sees another folder {out} than the campaign; {remedy}"
    try:
        (out / f".{token}.{platform.node()}-{os.getpid()}").write_text(token, encoding="utf-8")
    except OSError as error:
        return f"cannot write into the campaign's folder {out} ({error.strerror}); let its user write there"
    return None


def plan_digest(scenario: Scenario, mode: Mode, seed: int) -> str:
    """Digest of a trial's plan with all frames of its clips. Raises StreamGaugeError if there is no plan."""
    plan = json.dumps(lower(scenario, mode, seed), sort_keys=True)
    return hashlib.blake2b(plan.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Trials of one scenario that are sent to a worker together: common parts are sent once."""

    tasks: tuple[Task, ...]
    anew: tuple[bool, ...]
    """Whether each runs though a trial exists in its place: the campaign has judged that."""
    version: Mapping[str, Any]
    """`version` of the campaign."""
    emu: EmuSettings | None = None
    root: str = ""
    """The campaign's folder."""
    url: str | None = None
    """Where records go instead of there."""


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """Results of a batch."""

    rows: tuple[Row | BaseException, ...] = ()
    """In the order of its tasks; fewer, if the last one is an error."""
    reused: tuple[bool, ...] = ()
    """Whether the trial lay in its place already."""
    refused: str = ""
    """Why the worker took none of it."""
    worker: str = ""
    """Its address, if so."""
    wall_s: float = 0.0
    """How long the batch took."""


def run_batch(batch: Batch) -> BatchResult:
    """Runs the trials of a batch one after the other.

    A trial that lies in its place already is left there: a worker that died had come so far.
    """
    if dict(batch.version) != version():
        from distributed import get_worker

        why = f"it has {version_words(version())}, the campaign {version_words(batch.version)}"
        return BatchResult(refused=why, worker=get_worker().address)
    began = time.monotonic()
    found = _in_folder(batch) if batch.url is None else _to_url(batch, batch.url)
    return BatchResult(
        rows=tuple(row for row, _ in found),
        reused=tuple(reused for _, reused in found),
        wall_s=time.monotonic() - began,
    )


def version_words(told: Mapping[str, Any]) -> str:
    """Returns a version in words."""
    return f"StreamGauge {told.get('streamgauge')} (model {told.get('model')}, emu {told.get('emu')})"


Found = tuple[Row | BaseException, bool]


def _in_folder(batch: Batch) -> list[Found]:
    anew = dict(zip((task.directory for task in batch.tasks), batch.anew, strict=True))

    def run(task: Task) -> Found:
        there = None if anew[task.directory] else reuse(task.job(), task.keep, task.leaves)
        if there is not None:
            return Row.of(there), True
        return perform(task, emu=batch.emu), False

    return _each(batch.tasks, run)


def _each(tasks: Sequence[Task], run: Callable[[Task], Found]) -> list[Found]:
    """Returns the result of each trial, up to the first that cannot run at all."""
    found: list[Found] = []
    for task in tasks:
        try:
            found.append(run(task))
        except StreamGaugeError as error:
            if task.mode == "emu" and error.exit_status == BROKEN:
                # It broke on the way: an invalid trial, which leaves the others to run.
                found.append((Row(valid=False, why=(str(error),), digest=None, wall_s=0.0), False))
                continue
            return [*found, (as_sent(error), False)]
        except Exception as error:
            return [*found, (as_sent(error), False)]
    return found


def _to_url(batch: Batch, url: str) -> list[Found]:
    """Does the same with each trial in a local folder first; it is uploaded while the next one runs."""
    remote = Remote(url)
    places = [Path(task.directory).relative_to(batch.root) for task in batch.tasks]
    with ExitStack() as local:
        try:
            local.enter_context(remote.under_way())
            there = remote.there(places)
        except (StreamGaugeError, OSError) as error:
            return [(as_sent(error), False)]
        return _each_up(remote, batch, places, there)


def _each_up(remote: Remote, batch: Batch, places: list[Path], there: dict[Path, bytes]) -> list[Found]:
    going: list[Future[None] | None] = []
    with ThreadPoolExecutor(UPLOADS) as uploads:

        def run(task: Task) -> Found:
            place = places[len(going)]
            going.append(None)
            if place in there and (row := remote.reuse(task, place, there[place])) is not None:
                return row, True
            try:
                row = remote.perform(task, place, batch.emu)
            except StreamGaugeError as error:
                raise remote.with_logs(place, error) from None
            going[-1] = uploads.submit(remote.upload, place)
            return row, False

        found = _each(batch.tasks, run)
    for number, upload in enumerate(going):
        failed = None if upload is None else upload.exception()
        if failed is not None:
            # Later results exist, and are found when the campaign continues.
            return [*found[:number], (as_sent(failed), False)]
    return found
