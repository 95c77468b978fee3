"""The segments of adaptive streams in a capture: by their requests, or by sizes where TLS hides those."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, Literal

__all__ = ["Fetched", "FetchedSegment", "fetched_streams"]

FEWEST: Final = 4
"""A stream has so many segments at least."""
LEAST_BYTES: Final = 8_000
"""A segment with a hidden request has this many bytes at least."""
_IDLE_S: Final = 0.15
"""A pause before a request is so long at least; shorter ones are round trips and decisions."""
_AT_ONCE_S: Final = 0.2
_MPD_TEMPLATE: Final = re.compile(r"<SegmentTemplate\b[^>]*>")
_ATTRIBUTE: Final = re.compile(r"\b(duration|timescale)\s*=\s*[\"'](\d+)[\"']")
_TIMELINE: Final = re.compile(r"<S\b[^>]*\bd\s*=\s*[\"'](\d+)[\"']")
_EXTINF: Final = re.compile(r"#EXTINF:\s*([0-9.]+)")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class FetchedSegment:
    """One segment of media that arrived whole."""

    number: int
    asked_s: float
    done_s: float
    size_bytes: int
    level: str


@dataclass(frozen=True)
class Fetched:
    """The segments of one kind of media that one player fetched."""

    flows: tuple[str, ...]
    by: Literal["requests", "sizes"]
    segments: tuple[FetchedSegment, ...]
    """In order of arrival."""
    segment_s: float | None
    """How long one plays; None where nothing shows it."""
    length_from: Literal["manifest", "pace"] | None
    given_up: int = 0
    """Requests without a complete answer."""


def fetched_streams(flows: Sequence[Row]) -> list[Fetched]:
    """The adaptive streams in these flows, those of most bytes first."""
    found = list(_by_requests(flows))
    seen = {name for stream in found for name in stream.flows}
    hidden: dict[tuple[str, str], list[Row]] = {}
    for flow in flows:
        if flow["flow"] not in seen and flow["protocol"] in ("tls", "quic", "tcp"):
            hidden.setdefault((_host(flow["from"]), _host(flow["to"])), []).append(flow)
    found += filter(None, map(_by_sizes, hidden.values()))
    return sorted(found, key=lambda one: -sum(segment.size_bytes for segment in one.segments))


# By requests.


def _by_requests(flows: Sequence[Row]) -> Iterator[Fetched]:
    players: dict[tuple[str, str], list[Row]] = {}
    for flow in flows:
        if any(request["method"] == "GET" for request in flow["requests"]):
            players.setdefault((_host(flow["from"]), _host(flow["to"])), []).append(flow)
    for own in players.values():
        asked = [(flow, request) for flow in own for request in flow["requests"]]
        manifests = [text for flow in own for text in flow.get("manifests", ())]
        told_s = _told_length_s(manifests)
        for stream in _streams(_numbered(asked)):
            whole = sorted(stream.whole.values(), key=lambda segment: segment.done_s)
            if len(whole) < FEWEST:
                continue
            pace_s = _pace_s(whole)
            names = dict.fromkeys(flow["flow"] for flow in own)
            yield Fetched(
                flows=tuple(names),
                by="requests",
                segments=tuple(whole),
                segment_s=told_s or pace_s,
                length_from="manifest" if told_s else "pace" if pace_s else None,
                given_up=stream.given_up,
            )


def _host(end: str) -> str:
    return end.rpartition(":")[0]


@dataclass
class _Level:
    key: str
    kind: str
    whole: dict[int, FetchedSegment]
    given_up: int = 0


def _numbered(asked: Iterable[tuple[Row, Row]]) -> dict[str, _Level]:
    """Returns whether requests with targets that differ in a number alone are segments of one level."""
    levels: dict[str, _Level] = {}
    for _, request in sorted(asked, key=lambda one: one[1]["at_s"]):
        target = request["target"].partition("?")[0]
        folder, _, name = target.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        stem = stem if dot else name
        numbers = list(re.finditer(r"\d+", stem))
        if request["method"] != "GET" or not numbers:
            continue
        last = numbers[-1]
        key = f"{folder}/{stem[: last.start()]}#{stem[last.end() :]}{dot}{suffix if dot else ''}"
        level = levels.setdefault(key, _Level(key, request["content_type"].partition("/")[0], {}))
        is_whole = request["status"] in (200, 206) and request["done_after_s"] is not None
        if not is_whole or not request["body_bytes"]:
            level.given_up += 1
            continue
        number = int(last[0])
        done_s = request["at_s"] + request["done_after_s"]
        segment = FetchedSegment(number, request["at_s"], done_s, request["body_bytes"], key)
        level.whole.setdefault(number, segment)
    return levels


def _streams(levels: Mapping[str, _Level]) -> list[_Level]:
    """Levels that take turns are one stream; those that have the same numbers are video beside audio."""
    streams: list[_Level] = []
    for level in levels.values():
        for stream in streams:
            shared = len(stream.whole.keys() & level.whole.keys())
            if stream.kind == level.kind and 2 * shared <= min(len(stream.whole), len(level.whole)):
                for number, segment in level.whole.items():
                    first = stream.whole.get(number)
                    if first is None or segment.done_s < first.done_s:
                        stream.whole[number] = segment
                stream.given_up += level.given_up
                break
        else:
            streams.append(_Level(level.key, level.kind, dict(level.whole), level.given_up))
    return streams


def _told_length_s(manifests: Iterable[str]) -> float | None:
    """The length of segments as a manifest has it: the median of those in it."""
    for text in manifests:
        lengths = [float(number) for number in _EXTINF.findall(text)]
        for template in _MPD_TEMPLATE.findall(text):
            values = {name: int(value) for name, value in _ATTRIBUTE.findall(template)}
            scale = values.get("timescale", 1) or 1
            if "duration" in values:
                lengths.append(values["duration"] / scale)
            else:
                lengths += [int(d) / scale for d in _TIMELINE.findall(text)]
        if lengths and median(lengths) > 0:
            return float(median(lengths))
    return None


def _pace_s(segments: Sequence[FetchedSegment]) -> float | None:
    """Between requests that followed a pause: a player with a full buffer asks once a segment."""
    inorder = sorted(segments, key=lambda segment: segment.asked_s)
    paused = [
        (later.asked_s - before.asked_s) / max(1, later.number - before.number)
        for before, later in pairwise(inorder)
        if later.asked_s - before.done_s > _IDLE_S and later.number > before.number
    ]
    return float(median(paused)) if len(paused) >= FEWEST - 1 else None


# By sizes.


_Exchange = tuple[float, float, int]
"""The time of its request, the time of its last byte, and its bytes."""


def _by_sizes(flows: Sequence[Row]) -> Fetched | None:
    """The stream of one player, over any connections."""
    answered = [_answered(flow) for flow in flows]
    exchanges, given_up = _without_given_up(answered)
    if len(exchanges) < 2 * FEWEST:
        return None
    # One that was given up was asked for at the pace of all.
    bursts = _bursts(sorted(one for own in answered for one in own))
    steady = [(later[0][0] - before[0][0], len(before)) for before, later in pairwise(bursts[1:])]
    if len(steady) < FEWEST - 1:
        return None
    period_s = median(length for length, _ in steady)
    # Video and audio by one connection: two answers in each period.
    each = max(1, round(median(count for _, count in steady)))
    regular = [length for length, _ in steady if abs(length - period_s) <= 0.25 * period_s]
    if 2 * len(regular) < len(steady):
        return None
    parts = [exchanges[place : place + each] for place in range(0, len(exchanges), each)]
    segments = tuple(_join(number, own) for number, own in enumerate(parts))
    names = tuple(flow["flow"] for flow in flows)
    return Fetched(names, "sizes", segments, period_s, "pace", given_up)


def _answered(flow: Row) -> list[_Exchange]:
    return [
        (at, at + last, size)
        for at, _, _, last, size in flow.get("exchanges", ())
        if last is not None and size >= LEAST_BYTES
    ]


def _without_given_up(connections: Sequence[list[_Exchange]]) -> tuple[list[_Exchange], int]:
    """All exchanges in order, without those that ended with their connection while a new one began at once:
    a player gives a segment up so."""
    begun = [own[0][0] for own in connections if own]
    found: list[_Exchange] = []
    given_up = 0
    for own in connections:
        last = own[-1] if own else None
        if last is not None and len(own) > 1:
            is_short = 2 * last[2] < median(size for _, _, size in own[:-1])
            if is_short and any(abs(at - last[1]) < _AT_ONCE_S for at in begun):
                own, given_up = own[:-1], given_up + 1
        found += own
    return sorted(found), given_up


def _join(number: int, parts: Sequence[_Exchange]) -> FetchedSegment:
    at_s, done_s = parts[0][0], max(done for _, done, _ in parts)
    return FetchedSegment(number, at_s, done_s, sum(size for _, _, size in parts), "")


def _bursts(exchanges: Sequence[_Exchange]) -> list[list[_Exchange]]:
    """Exchanges that follow one another without a pause."""
    bursts = [[exchanges[0]]]
    for before, later in pairwise(exchanges):
        if later[0] - before[1] > _IDLE_S:
            bursts.append([])
        bursts[-1].append(later)
    return bursts
