"""Running the trials of the table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from streamgauge.campaign import EmuSettings, Job, Outcome, Progress, jobs_for, run_jobs
from streamgauge.campaign.folder import writing
from streamgauge.errors import ScenarioError
from streamgauge.latency_table.cells import LatencyTable, Waits, cell_of
from streamgauge.latency_table.theory import arq_latency_s
from streamgauge.record import Record
from streamgauge.scenario import Scenario, load, lower
from streamgauge.scenario.settings import set_folder
from streamgauge.systems.machines import MACHINES
from streamgauge.units import Packets, Percent, Quantity, Time, UnitError

__all__ = ["BASE", "FLOW", "LatencyQuestion", "able", "run_table"]

BASE = "contribution/latency"
"""The scenario of all trials; loss, round trip, system and latency are set."""
FLOW = "video"
Kind = TypeVar("Kind", bound=Quantity)

_WAIT, _SHOWN, _INCOMPLETE, _LATE = "picture_wait", "frame_shown", "frame_incomplete", "frame_late"
_MOST_ROUND_TRIPS = 8
_LEAST_LATENCY_NS = 250_000_000
"""Latency of the trials: 8 round trips, and no less than this."""
_DATAGRAM_BYTES = 7 * 188
_TS_BYTES, _TS_ROOM = 188, 184
"""A packet of MPEG-TS, and its bytes of media (ISO/IEC 13818-1 section 2.4.3.2)."""


@dataclass(frozen=True, kw_only=True)
class LatencyQuestion:
    """A table to be made."""

    system: str
    losses: Sequence[str]
    rtts: Sequence[str]
    burst: str | None = None
    share: str = "99.9 %"
    repeat: int = 10
    first_seed: int = 1
    settings: Sequence[str] = ()
    """Further settings of the scenario."""
    out: Path = Path("runs/latency-table")


@dataclass(frozen=True)
class _Point:
    loss: Percent
    rtt: Time
    scenario: Scenario
    settings: tuple[str, ...]
    most_s: float


def able() -> list[str]:
    """Returns the systems with receivers that report the wait of each picture."""
    return [name for name, machine in MACHINES.items() if _WAIT in machine.events]


def run_table(question: LatencyQuestion, progress: Callable[[Progress], None] | None = None) -> LatencyTable:
    """Runs the trials in sim, each round trip and loss with all seeds, and returns the table.

    Finished trials in the folder are not run again. Ctrl-C ends it early and sets ``interrupted``; cells
    without a trial are left out.

    Raises:
        ScenarioError: for a system, loss, round trip, share or burst that cannot be.
        StreamGaugeError: if a trial cannot run.
    """
    if question.system not in able():
        raise ScenarioError(
            f"'{question.system}' does not report how long each picture waits; expected one of "
            f"{', '.join(able())}"
        )
    share = _each(Percent, "--share", [question.share])[0].fraction
    if not 0 < share <= 1:
        raise ScenarioError(f"--share: expected more than 0 % and at most 100 %, got {question.share}")
    points = _points(question)
    by_point = {place: _jobs(point, question) for place, point in enumerate(points)}
    # The first seed of each point runs before any second one.
    jobs = [mine[seed] for seed in range(question.repeat) for mine in by_point.values()]
    with writing(question.out, jobs) as index:
        outcomes, interrupted = run_jobs(
            jobs, keep="events", emu=EmuSettings(), index=index, progress=progress
        )
    found = {id(outcome.job): outcome for outcome in outcomes}
    cells = []
    for place, point in enumerate(points):
        done = [found[id(job)] for job in by_point[place] if id(job) in found]
        trials = [_waits(outcome) for outcome in done if outcome.valid]
        if trials:
            loss, rtt = (str(point.loss), point.loss.fraction), (str(point.rtt), point.rtt.s)
            arq = None if question.burst else _arq_s(point, share)
            cells.append(cell_of(trials, share, loss=loss, rtt=rtt, most_s=point.most_s, arq_s=arq))
    return LatencyTable(
        system=question.system,
        share=share,
        burst=question.burst,
        seconds=jobs[0].seconds,
        losses=tuple(dict.fromkeys(str(point.loss) for point in points)),
        rtts=tuple(dict.fromkeys(str(point.rtt) for point in points)),
        cells=tuple(cells),
        invalid=sum(not outcome.valid for outcome in outcomes),
        interrupted=interrupted,
    )


def _arq_s(point: _Point, share: float) -> float | None:
    """Returns the latency of plain ARQ, in s, for pictures of the scenario's clip."""
    settings = lower(point.scenario, "sim", 1)["flows"][0]["app"]
    (of_system,) = settings.values()
    sizes = of_system["clip"]["frame_bytes"]
    datagrams = Counter(math.ceil(math.ceil(size / _TS_ROOM) * _TS_BYTES / _DATAGRAM_BYTES) for size in sizes)
    pictures = {count: number / len(sizes) for count, number in datagrams.items()}
    return arq_latency_s(point.loss.fraction, point.rtt.s, pictures, share)


def _points(question: LatencyQuestion) -> list[_Point]:
    losses = _each(Percent, "--loss", question.losses)
    rtts = _each(Time, "--rtt", question.rtts)
    burst = None if question.burst is None else _each(Packets, "--burst", [question.burst])[0]
    for loss in losses:
        if loss.fraction >= 1:
            raise ScenarioError(f"--loss: expected less than 100 %, got {loss}")
    for rtt in rtts:
        if not 2_000_000 <= rtt.ns <= 8_000_000_000:
            raise ScenarioError(f"--rtt: expected 2 ms to 8 s, got {rtt}")
    if burst is not None and burst.amount < 1:
        raise ScenarioError(f"--burst: expected 1 packet or more, got {burst}")
    return [_point(question, loss, rtt, burst) for loss in losses for rtt in rtts]


def _point(question: LatencyQuestion, loss: Percent, rtt: Time, burst: Packets | None) -> _Point:
    most_ns = max(_MOST_ROUND_TRIPS * rtt.ns, _LEAST_LATENCY_NS)
    lost = _loss_words(loss, burst)
    settings = [
        f"flows.{FLOW}.system={question.system}",
        f"flows.{FLOW}.parameters.latency={Time.of(most_ns)}",
        *(f"path.{way}.delay={Time.of(rtt.ns // 2)}" for way in ("down", "up")),
        *(f"path.{way}.loss={lost}" for way in ("down", "up")),
        *question.settings,
    ]
    (scenario,) = load(BASE, settings=settings, mutants=False)
    return _Point(loss, rtt, scenario, tuple(settings), most_ns / 1e9)


def _loss_words(loss: Percent, burst: Packets | None) -> str:
    """Returns the path's loss, the same both ways."""
    if not loss.amount:
        return "null"
    if burst is None:
        return str(loss)
    # Gilbert's two states: runs of lost packets of this mean length, and runs between them for the share.
    bad = float(burst.amount)
    good = bad * (1 - loss.fraction) / loss.fraction
    return f"{{gilbert: {{good: {good:.6g} packets, bad: {bad:g} packets}}}}"


def _jobs(point: _Point, question: LatencyQuestion) -> list[Job]:
    return jobs_for(
        point.scenario,
        "sim",
        question.out / set_folder(point.settings),
        first_seed=question.first_seed,
        repeat=question.repeat,
        settings=point.settings,
    )


def _waits(outcome: Outcome) -> Waits:
    told = Record.open(outcome.job.directory).told
    empty = np.empty(0)
    waits = np.sort(np.asarray(told[_WAIT, FLOW][1], dtype=float)) if (_WAIT, FLOW) in told else empty
    pictures = sum(len(told[name, FLOW][0]) for name in (_SHOWN, _INCOMPLETE, _LATE) if (name, FLOW) in told)
    return Waits(waits, pictures)


def _each(kind: type[Kind], option: str, texts: Sequence[str]) -> list[Kind]:
    found: list[Kind] = []
    for text in texts:
        try:
            one = kind(text)
        except UnitError as error:
            raise ScenarioError(f"{option}: {error}") from None
        if one not in found:
            found.append(one)
    if not found:
        raise ScenarioError(f"{option}: expected at least one {kind.noun}, such as {kind.example}")
    return found
