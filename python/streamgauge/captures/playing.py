"""The view of an adaptive stream, inferred from the times at which its segments arrived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from streamgauge.captures.segments import Fetched, FetchedSegment, fetched_streams

__all__ = ["adaptive_streams"]

_STARTS: Final = (1, 2, 3)
"""A player begins when it holds so many segments: one of these, and nobody knows which."""
_AGAIN: Final = (1, 2)
"""And plays on after a stall when it holds so many."""
_SHORTEST_S: Final = 0.05
_PAUSE_S: Final = 0.15
Row = Mapping[str, Any]


def adaptive_streams(flows: Sequence[Row]) -> list[dict[str, Any]]:
    """The adaptive streams of a capture: levels, phases, start-up and stalls, with a confidence."""
    return [_row(stream) for stream in fetched_streams(flows)]


def _row(stream: Fetched) -> dict[str, Any]:
    row: dict[str, Any] = {
        "flows": list(stream.flows),
        "by": stream.by,
        "segments": len(stream.segments),
        "given_up": stream.given_up,
        "segment_s": stream.segment_s,
        "segment_s_from": stream.length_from,
        "levels": list(_levels(stream)),
        "phases": _phases(stream),
        "startup_s": None,
        "stalls": None,
        "stall_s": None,
        "stall_bounds_s": None,
        "confidence": None,
        "why": None,
    }
    if stream.segment_s is None:
        return row | {"why": "neither a manifest in plain text nor pauses show a segment's length"}
    begins_s, stalls = _play(stream, 1, 1)
    plays = [_play(stream, start, again)[1] for start in _STARTS for again in _AGAIN]
    totals = [sum(end - at for at, end in play) for play in plays]
    total_s = sum(end - at for at, end in stalls)
    confidence, why = _confidence(stream, totals)
    return row | {
        "startup_s": None if begins_s is None else begins_s - stream.segments[0].asked_s,
        "stalls": [{"at_s": at, "duration_s": end - at, **_cause(stream, at, end)} for at, end in stalls],
        "stall_s": total_s,
        "stall_bounds_s": [min(totals), max(totals)],
        "confidence": confidence,
        "why": why,
    }


def _arrivals(stream: Fetched) -> list[tuple[float, int]]:
    """When each number was there with all before it: the time, and how many are there."""
    by_number = {segment.number: segment.done_s for segment in stream.segments}
    numbers = sorted(by_number)
    # Numbers that go by time have steps of their own.
    step = min((later - before for before, later in pairwise(numbers)), default=1)
    every = range(numbers[0], numbers[-1] + 1, step)
    arrived, latest = [], 0.0
    for count, number in enumerate(every if len(every) <= 4 * len(numbers) else numbers, start=1):
        # A segment that never arrived was skipped, or is hidden: it is there with its neighbour.
        latest = max(latest, by_number.get(number, latest))
        arrived.append((latest, count))
    return arrived


def _play(stream: Fetched, start: int, again: int) -> tuple[float | None, list[tuple[float, float]]]:
    """When play begins, and each stall's begin and end: of a player with these thresholds."""
    length_s = stream.segment_s or 0.0
    arrived = _arrivals(stream)
    start = min(start, len(arrived))
    begins_s = arrived[start - 1][0]
    stalls = []
    # The time at which the media so far will have been played.
    ends_s, held, place = begins_s + start * length_s, start, start
    while place < len(arrived):
        at_s = arrived[place][0]
        if at_s <= ends_s + _SHORTEST_S:
            ends_s = max(ends_s, at_s) + length_s
            held, place = held + 1, place + 1
            continue
        needed = min(again, len(arrived) - place)
        resumes_s = arrived[place + needed - 1][0]
        stalls.append((ends_s, resumes_s))
        ends_s = resumes_s + needed * length_s
        place += needed
    return begins_s, stalls


def _confidence(stream: Fetched, totals: Sequence[float]) -> tuple[str, str]:
    spread_s = max(totals) - min(totals)
    if stream.by == "sizes":
        return "low", "segments by their sizes alone; TLS hides the requests"
    if stream.length_from == "pace":
        return "medium", "the segments' length is from the pace of the requests, not from a manifest"
    if spread_s > max(0.5, 0.25 * max(totals)):
        return "medium", "how much a player holds before it plays changes the result"
    return "high", "segments by their requests, their length from the manifest"


def _cause(stream: Fetched, at_s: float, end_s: float) -> dict[str, Any]:
    """Returns for a stall the rate at which segments arrived meanwhile, and the need of their level."""
    late = [one for one in stream.segments if one.done_s > at_s and one.asked_s < end_s]
    moved = sum(one.size_bytes for one in late)
    ends_s = max((one.done_s for one in late), default=end_s)
    length_s = ends_s - min((one.asked_s for one in late), default=at_s)
    needed = 8 * moved / (len(late) * (stream.segment_s or 1)) if late else None
    return {"arrived_bps": 8 * moved / length_s if length_s > 0 else None, "needed_bps": needed}


def _levels(stream: Fetched) -> Iterator[dict[str, Any]]:
    """Runs of one level, with their rate where a segment's length is known."""
    runs: list[list[FetchedSegment]] = []
    for segment in sorted(stream.segments, key=lambda one: one.asked_s):
        if stream.by == "sizes" or not runs or runs[-1][-1].level != segment.level:
            if stream.by == "sizes" and runs and _alike(runs[-1], segment):
                runs[-1].append(segment)
                continue
            runs.append([])
        runs[-1].append(segment)
    for run in runs:
        mean = 8 * sum(one.size_bytes for one in run) / len(run)
        yield {
            "at_s": run[0].asked_s,
            "segments": len(run),
            "level": run[0].level or None,
            "rate_bps": mean / stream.segment_s if stream.segment_s else None,
        }


def _alike(run: Sequence[FetchedSegment], segment: FetchedSegment) -> bool:
    mean = sum(one.size_bytes for one in run) / len(run)
    return 0.6 <= segment.size_bytes / mean <= 1.67


def _phases(stream: Fetched) -> dict[str, Any]:
    """Buffering, as fast as the path allows; from the first pause on steady, at a pace."""
    inorder = sorted(stream.segments, key=lambda one: one.asked_s)
    pauses = [
        (later.asked_s, later.asked_s - before.done_s)
        for before, later in pairwise(inorder)
        if later.asked_s - before.done_s > _PAUSE_S
    ]
    begin_s, end_s = inorder[0].asked_s, max(one.done_s for one in inorder)
    steady_s = pauses[0][0] if pauses else None
    off_s = sum(pause for _, pause in pauses)
    is_on_off = steady_s is not None and end_s > steady_s and len(pauses) >= 3
    return {
        "buffering_s": (end_s if steady_s is None else steady_s) - begin_s,
        "steady_from_s": steady_s,
        "pattern": "on_off" if is_on_off else "continuous",
        "pauses": len(pauses),
        "off_share": off_s / (end_s - begin_s) if end_s > begin_s else None,
    }
