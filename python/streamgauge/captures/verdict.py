"""The verdict on a capture in one sentence, with its confidence, and the sentences on adaptive streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamgauge.captures.words import counted, say_rate, say_time

__all__ = ["measured_rate", "stream_sentences", "verdict"]

MOST_STREAMS: Final = 3
_STEADY: Final = 0.1
"""A rate that stays within this part of its mean is one rate."""
_SHUFFLED: Final = 0.01
"""More frames that go back in time than this share are no accident of a capture's threads."""
Row = Mapping[str, Any]


def verdict(document: Row) -> str | None:
    """Returns the path's actions and the player's losses in one sentence; None where neither shows."""
    for capture in document["captures"]:
        if (doubt := _doubt(capture)) is not None:
            return f"No verdict: {capture['file']} {doubt}."
    path, confidence = _path(document)
    stalled = next((stream for stream in document["streams"] if stream["stalls"]), None)
    watched = next((stream for stream in document["streams"] if stream["stalls"] is not None), None)
    if stalled is not None:
        said = f"the player stalled {_times(stalled)} because {_why(stalled)}"
        confidence = stalled["confidence"]
    elif watched is not None:
        said, confidence = "the player did not stall", watched["confidence"]
    elif path is None:
        return None
    else:
        return f"{path}. Confidence: {confidence}."
    whole = said if path is None else f"{path}; {said}"
    return f"{whole[0].upper()}{whole[1:]}. Confidence: {confidence}."


def _doubt(capture: Row) -> str | None:
    """Why figures of a file cannot be relied on; None of one that is in order."""
    if capture["backwards"] > _SHUFFLED * max(1, capture["frames"]):
        return "is not in order of time; sort its frames, as by reordercap, and analyse that file"
    if capture["jumps"]:
        silences = counted(len(capture["jumps"]), "silence")
        return f"has {silences} of more than an hour; cut it there, as by editcap, and analyse each part"
    return None


def _path(document: Row) -> tuple[str | None, str]:
    """Returns the findings of two captures on the path: measured, so the confidence is high unless losses are
    open."""
    if len(document["captures"]) < 2:
        return None, "medium"
    main = document["path"]["main"]
    sent = main["delivered"] + main["lost"] + main["open"]
    confidence = "low" if main["open"] > main["lost"] else "medium" if main["open"] else "high"
    if not main["lost"]:
        return (None if main["open"] else f"The path dropped none of {sent} packets"), confidence
    share = f"{100 * main['lost'] / max(1, sent):.2g} %"
    if main["queue_bytes"] is None or 2 * main["lost_at_full_queue"] < main["lost"]:
        return f"The path dropped {share}, most of it at a queue that was not full", confidence
    return f"The path dropped {share} at its tail-drop queue of {say_time(main['queue_s'])}", confidence


def measured_rate(way: Row) -> str:
    """The bottleneck's rate; its least and its most where it changed."""
    rates = [rate for _, rate in way["rate_course"]]
    if not rates or max(rates) - min(rates) <= 2 * _STEADY * way["rate_bps"]:
        return say_rate(way["rate_bps"])
    return f"{say_rate(min(rates))} to {say_rate(max(rates))}"


def _times(stream: Row) -> str:
    stalls = stream["stalls"]
    number = "once" if len(stalls) == 1 else f"{len(stalls)} times"
    return f"{number} for {say_time(stream['stall_s'])}"


def _why(stream: Row) -> str:
    longest = max(stream["stalls"], key=lambda stall: stall["duration_s"])
    arrived, needed = longest["arrived_bps"], longest["needed_bps"]
    if arrived is None or needed is None:
        return "no segment came"
    if arrived < needed:
        return f"segments came at {say_rate(arrived)} and their level needs {say_rate(needed)}"
    return "segments were asked for or answered late, at a rate that suffices"


def stream_sentences(document: Row) -> Iterator[str]:
    """Returns the inferred view, each finding with its evidence."""
    for stream in document["streams"][:MOST_STREAMS]:
        yield _fetched(stream)
        if stream["stalls"] is None:
            yield f"Its stalls are not known: {stream['why']}."
            continue
        first = f", first at {say_time(stream['stalls'][0]['at_s'])}" if stream["stalls"] else ""
        low, high = (say_time(bound) for bound in stream["stall_bounds_s"])
        stalled = f"stalled {_times(stream)}{first}" if stream["stalls"] else "did not stall"
        yield (
            f"Its player {stalled}; {low} to {high} by how much it holds before it plays. "
            f"Confidence: {stream['confidence']} ({stream['why']})."
        )


def _fetched(stream: Row) -> str:
    levels = [level["rate_bps"] for level in stream["levels"] if level["rate_bps"] is not None]
    phases = stream["phases"]
    said = f"Adaptive stream of {counted(stream['segments'], 'segment')} by {stream['by']}"
    if stream["segment_s"] is not None:
        said += f" of {say_time(stream['segment_s'])}"
    if levels:
        least, most = min(levels), max(levels)
        span = say_rate(least) if most < 1.1 * least else f"{say_rate(least)} to {say_rate(most)}"
        said += f", {span}, {counted(len(levels) - 1, 'switch', 'switches')}"
    if phases["pattern"] == "on_off":
        return f"{said}. It buffered for {say_time(phases['buffering_s'])}, then fetched in ON-OFF cycles."
    return f"{said}. It fetched without pauses."
