"""Output of an adaptive player: its levels, their steadiness, and their worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import NUMBER, RATE
from streamgauge.metrics.course import Spans, counted, stepped, summed
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS, Floats, Grid, Ints
from streamgauge.metrics.ladder import PlayedLadder, ladder_of
from streamgauge.metrics.result import Measured, Series
from streamgauge.metrics.session import Watched, watched
from streamgauge.metrics.tcp import of_player
from streamgauge.systems.machines import MACHINES

CHANGE_WEIGHT = 1.0
"""Lambda of both QoE."""
WAIT_BPS = 3e6
"""mu and mu_s of `qoe_lin`, in bit/s for each second: 3000 where rates are in kbit/s."""
WAIT_LOG = 2.66
"""mu of `qoe_log`, for each second."""
INSTABILITY_S = 20

Worth = Callable[[Floats], Floats]
"""Worth of levels with these rates."""


@dataclass(frozen=True)
class LevelCourse:
    """The shown level from each time on. Repeated reports are in it too."""

    times: Ints
    rates: Floats
    is_by_segment: bool
    """Each is a segment that begins to be shown."""

    @property
    def changes(self) -> Ints:
        """Returns which of them are another level than the one before."""
        found: Ints = np.flatnonzero(self.rates[1:] != self.rates[:-1]) + 1
        return found

    def lasts_s(self, played: Spans, over: int) -> Floats:
        """Returns how long each of them is played."""
        reached = played.within(np.append(self.times, max(over, int(self.times[-1]))))
        found: Floats = np.diff(reached) / SECOND_NS
        return found

    def between(self, begin: int, end: int) -> LevelCourse:
        """Returns its part of a stretch of time; the level that holds at its begin is first."""
        first = max(0, int(np.searchsorted(self.times, begin, side="right")) - 1)
        part = slice(first, max(first + 1, int(np.searchsorted(self.times, end))))
        return LevelCourse(np.maximum(self.times[part], begin), self.rates[part], self.is_by_segment)


def levels(trial: Trial, flow: int) -> Measured:
    """Returns the levels that a flow's player shows.

    By its `segment_shown`; for a player that does not report segments by its `level_shown`, and for one that
    reports nothing that it shows by its `level_changed`, which it sends when it chooses. A level holds from
    each to the next, pauses left out, until the session's end: `level` is the mean of that by the clock,
    `shown_level` that of the media, which stalls leave out as well. Each later one with another rate is a
    change. Where levels are numbers, and not rates, there are changes alone.
    """
    course, are_rates = course_of(trial, flow)
    if course is None:
        return Measured({})
    grid, changes = trial.grid, course.changes
    series = {"level_changes": Series(counted(grid, course.times[changes]))}
    scalars: dict[str, float | None] = {}
    ladder = ladder_of(trial, flow)
    if ladder.levels:
        scalars["clip_levels"] = float(len(ladder.levels))
        scalars["lowest_clip_level"] = float(ladder.levels[0].rate_bps + ladder.audio_bps)
    known = np.isfinite(course.rates)
    if not are_rates or not known.any():
        return Measured(series, scalars)
    course = LevelCourse(course.times[known], course.rates[known], course.is_by_segment)
    changes = course.changes
    steps = np.abs(course.rates[changes] - course.rates[changes - 1])
    seen = trial.once(watched, flow)
    told, over = (course.times, course.rates), seen.over
    level = stepped(grid, told, over, without=seen.pauses)
    series |= {
        "level": level,
        "level_step": Series(
            summed(grid, course.times[changes], steps), counted(grid, course.times[changes])
        ),
        "instability": _instability(grid, course, level),
    }
    # Where the start of play is unknown, it is from the first level on.
    played = seen.played if len(seen.began) else _without(course.times[0], over, seen.pauses)
    scalars["lowest_level"] = _lowest(grid, course, played, over)
    if len(seen.began) and seen.tells_stalls:
        end = int(grid.edges_ns[-1])
        series["shown_level"] = stepped(grid, told, over, without=_without(0, end, played))
        series |= _qoe(trial, ladder, seen, course.between(int(seen.began[0]), over))
    return Measured(series, scalars)


def time_at(shown: Series) -> dict[float, float]:
    """Returns how long each level was shown, s by bit/s, from its mean over each sample.

    A sample in which one level ends and another begins has the mean of both, by their parts of it. Levels
    that last for less than a whole sample look the same as such.
    """
    assert shown.denominator is not None
    there = shown.denominator > 0
    held_s = shown.denominator[there]
    rates = np.round(shown.numerator[there] / held_s)
    alike = rates[1:] == rates[:-1]
    whole = np.concatenate([alike, [False]]) | np.concatenate([[False], alike])
    place = np.arange(len(rates))
    before = np.maximum.accumulate(np.where(whole, place, -1))
    after = np.minimum.accumulate(np.where(whole, place, len(rates))[::-1])[::-1]
    found: dict[float, float] = {}
    for rate, length_s, i, j in zip(rates, held_s, before, after, strict=True):
        parts = [(rate, 1.0)]
        if 0 <= i < j < len(rates) and min(rates[i], rates[j]) < rate < max(rates[i], rates[j]):
            share = (rate - rates[j]) / (rates[i] - rates[j])
            parts = [(rates[i], share), (rates[j], 1.0 - share)]
        for level, share in parts:
            found[float(level)] = found.get(float(level), 0.0) + float(share * length_s)
    return dict(sorted(found.items()))


def course_of(trial: Trial, flow: int) -> tuple[LevelCourse | None, bool]:
    """Returns the course of a flow's levels, and whether they are rates."""
    said = trial.said
    for name in ("segment_shown", "level_shown", "level_changed"):
        if said.has(name, flow):
            times, rates = said.of(name, flow)
            machine = MACHINES.get(trial.machine(flow))
            units = said.units(name, flow) if machine is None else (machine.events.get(name),)
            return LevelCourse(times, rates, name == "segment_shown"), units == ("bit/s",)
    return None, False


def _without(begin: int, end: int, others: Spans) -> Spans:
    return Spans(np.array([begin]), np.array([max(begin, end)])).without(others)


def _lowest(grid: Grid, course: LevelCourse, played: Spans, over: int) -> float | None:
    """Returns the lowest rate that was played in the window."""
    played = played.clipped(int(grid.edges_ns[grid.first]), int(grid.edges_ns[grid.last]))
    shown = course.rates[course.lasts_s(played, over) > 0]
    return float(shown.min()) if len(shown) else None


def _instability(grid: Grid, course: LevelCourse, level: Series) -> Series:
    """Returns how much a player changed of late, at the end of each sample: with b(t) its level at t, and d
    whole seconds before, the sum of |b(t - d) - b(t - d - 1)| (20 - d) for d from 0 to 19 over that of b(t -
    d) (20 - d) for d from 1 to 20 (Jiang, Sekar and Zhang, FESTIVE, CoNEXT 2012, "instability").

    Before its first level there is nothing to add up. The mean over samples is weighted by how long a level
    was known in each.
    """
    back = np.arange(INSTABILITY_S + 1)
    at = grid.edges_ns[1:, None] - np.int64(SECOND_NS) * back
    place = np.searchsorted(course.times, at, side="left") - 1
    rates = np.where(place >= 0, course.rates[np.maximum(place, 0)], np.nan)
    weights = INSTABILITY_S - back
    changed = np.nansum(np.abs(np.diff(rates, axis=1)) * weights[:-1], axis=1)
    whole = np.nansum(rates[:, 1:] * weights[1:], axis=1)
    assert level.denominator is not None
    held_s = np.where(whole > 0, level.denominator, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Series(np.where(whole > 0, changed / whole, 0.0) * held_s, held_s)


def _qoe(trial: Trial, ladder: PlayedLadder, seen: Watched, course: LevelCourse) -> dict[str, Series]:
    """Returns the worth of the session, for each segment shown.

    `qoe_lin` is that of Yin, Jindal, Sekar and Sinopoli (SIGCOMM 2015): levels count as their rates, changes
    as the difference, and each second of waiting, before play as in it, as 3 Mbit/s. `qoe_log` has BOLA's
    utility ln(R / R_min) (Spiteri, Urgaonkar and Sitaraman, INFOCOM 2016) with the weights of Pensieve's
    QoE_log (Mao, Netravali and Alizadeh, SIGCOMM 2017): 2.66 for each second of a stall, and none for
    start-up. Both are sums over segments; divided by their number, sessions of any length compare. Without
    start-up's delay neither is known, without the ladder's lowest rate `qoe_log` is not.
    """
    if seen.startup_s is None:
        return {}
    grid = trial.grid
    began = seen.began
    stalled_s = seen.stalls.without(seen.pauses).clipped(int(began[0]), seen.over).seconds(grid)
    startup_s = summed(grid, began, np.array([seen.startup_s]))
    played = seen.played

    def of(worth: Worth, stall: float, startup: float) -> Series:
        of_level = worth(course.rates)
        changes = course.changes
        steps = np.abs(of_level[changes] - of_level[changes - 1])
        if course.is_by_segment:
            total, segments = summed(grid, course.times, of_level), counted(grid, course.times)
        else:
            whole = _without(0, int(grid.edges_ns[-1]), played)
            shown = stepped(grid, (course.times, of_level), seen.over, without=whole)
            assert shown.denominator is not None
            total, segments = shown.numerator / ladder.segment_s, shown.denominator / ladder.segment_s
        lost = CHANGE_WEIGHT * summed(grid, course.times[changes], steps)
        return Series(total - lost - stall * stalled_s - startup * startup_s, segments)

    found = {"qoe_lin": of(lambda rates: rates, WAIT_BPS, WAIT_BPS)}
    if ladder.levels and (course.rates > 0).all():
        lowest = math.log(ladder.levels[0].rate_bps)
        found["qoe_log"] = of(lambda rates: np.log(rates) - lowest, WAIT_LOG, 0.0)
    return found


def estimated(trial: Trial, flow: int) -> Series | None:
    """Returns the throughput that a player expects, as it reports it."""
    return of_player(trial, flow, "estimate")


METRICS = (
    Metric(
        "level",
        RATE,
        "flow",
        "Bit rate of the level played",
        formula="mean of the shown rate over clock time: stalls count, pauses do not",
        flow=levels,
        better="more",
        reads=(
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        json="level_mean_bps",
        label="bit rate shown",
        section="adaptive",
        compared=(ComparedBy("viewer", 40, "bit rate shown", Margin(relative=0.05), covered_by="qoe_lin"),),
    ),
    Metric(
        "shown_level",
        RATE,
        "flow",
        "Bit rate of the media shown",
        formula="mean over media time, without stalls and start-up",
        flow=levels,
        better="more",
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "stall_count",
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        section="adaptive",
    ),
    Metric(
        "lowest_level",
        RATE,
        "flow",
        "Lowest bit rate shown",
        formula="the lowest shown rate; for the window only",
        flow=levels,
        better="more",
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        section="adaptive",
    ),
    Metric(
        "clip_levels",
        NUMBER,
        "flow",
        "Levels that the clip has",
        formula="number of levels of the clip, if the player reports its clip",
        flow=levels,
        number="M17",
        reads=("level_changed",),
        whole=True,
        section="adaptive",
    ),
    Metric(
        "lowest_clip_level",
        RATE,
        "flow",
        "Lowest level of the clip, with its sound",
        formula="the lowest of them with its sound",
        flow=levels,
        number="M17",
        reads=("level_changed",),
        section="adaptive",
    ),
    Metric(
        "level_changes",
        NUMBER,
        "flow",
        "Changes of level",
        formula="number of changes to another level, without the first level",
        flow=levels,
        better="less",
        reads=(
            "level_changed",
            "level_shown",
            "segment_shown",
        ),
        whole=True,
        label="changes of level",
        section="adaptive",
        compared=(
            ComparedBy(
                "viewer", 50, "changes of level", Margin(absolute=1.0, relative=0.05), covered_by="qoe_lin"
            ),
        ),
    ),
    Metric(
        "level_step",
        RATE,
        "flow",
        "Mean size of a change of level",
        formula="mean of |ΔR| over the changes; null without one",
        flow=levels,
        better="less",
        reads=(
            "level_changed",
            "level_shown",
            "segment_shown",
        ),
        section="adaptive",
    ),
    Metric(
        "instability",
        NUMBER,
        "flow",
        "Changes of level of late",
        formula="weighted changes of the last 20 s over weighted rates; see below",
        flow=levels,
        better="less",
        reads=(
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        section="adaptive",
    ),
    Metric(
        "qoe_lin",
        RATE,
        "flow",
        "QoE, linear, as a bit rate",
        formula="(Σ R − Σ |ΔR| − 3 Mbit/s · (time stalled + start-up in s)) / segments shown",
        flow=levels,
        better="more",
        signed=True,
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "stall_count",
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        label="QoE",
        section="adaptive",
        compared=(ComparedBy("viewer", 30, "QoE", Margin(absolute=50e3, relative=0.05)),),
    ),
    Metric(
        "qoe_log",
        NUMBER,
        "flow",
        "QoE, logarithmic",
        formula="(Σ u − Σ |Δu| − 2.66 · time stalled in s) / segments shown, u = ln(R / R_min)",
        flow=levels,
        better="more",
        signed=True,
        reads=(
            "playout_start",
            "frame_shown",
            "stall",
            "resume",
            "stall_count",
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        section="adaptive",
    ),
    Metric(
        "estimate",
        RATE,
        "flow",
        "Throughput as the player estimates it",
        formula="mean of the player's reported throughput estimate",
        flow=estimated,
        reads=("estimate",),
        json="estimate_mean_bps",
        section="adaptive",
    ),
)
