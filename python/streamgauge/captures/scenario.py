"""A scenario and a trace from two captures: the path as it was measured, and flows of the same kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamgauge.captures.bursts import gilbert_words
from streamgauge.errors import CaptureFileError

__all__ = ["scenario_text", "trace_text"]

MOST_STEPS: Final = 200
MOST_FLOWS: Final = 8
_STEADY: Final = 0.05
"""A rate that stays within this part of its mean is constant."""
_ALIKE: Final = 0.03
"""Steps of a changing rate are at least this part apart."""
Row = Mapping[str, Any]


def trace_text(document: Row) -> str:
    """Returns rate, delay without a queue, and losses elsewhere than at a full queue over time, a column
    each: as ``rate: {csv: FILE}``, ``delay: {trace: FILE}`` and ``loss: {trace: FILE}`` read them. An unknown
    delay has no column.

    Raises:
        CaptureFileError: without two captures of a path with a busy bottleneck.
    """
    main = document["path"].get("main", {})
    course = main.get("rate_course")
    if not course:
        raise CaptureFileError(
            "--trace: no rate is known: name two captures of a path whose bottleneck was busy."
        )
    first = course[0][0]
    beside = {"delay_ms": (main["delay_course"], 1e3), "loss_percent": (main["loss_course"], 1e2)}
    columns: dict[str, dict[float, float]] = {"rate_kbps": {at - first: rate / 1e3 for at, rate in course}}
    for name, (points, scale) in beside.items():
        if points:
            columns[name] = _from_the_start([(at - first, scale * value) for at, value in points])
    rows, held = [], dict.fromkeys(columns, 0.0)
    for at in sorted(set().union(*columns.values())):
        held |= {name: values[at] for name, values in columns.items() if at in values}
        rows.append(f"{at:.3f}," + ",".join(f"{value:.3f}" for value in held.values()))
    return "\n".join(["# measured by streamgauge analyze", ",".join(["time_s", *columns]), *rows]) + "\n"


def _from_the_start(points: Sequence[tuple[float, float]]) -> dict[float, float]:
    """Returns values by time, from 0 s on: the last one before it holds there, else the first one."""
    before = [value for at, value in points if at <= 0]
    return {0.0: before[-1] if before else points[0][1]} | {at: value for at, value in points if at > 0}


def scenario_text(document: Row) -> str:
    """A scenario that runs: the measured path, bulk TCP and constant UDP in the place of the flows.

    Raises:
        CaptureFileError: without two captures.
    """
    if len(document["captures"]) < 2:
        raise CaptureFileError("--scenario: one capture does not show a path; name a capture of each end.")
    path = document["path"]
    flows = list(_flows(document["flows"][:MOST_FLOWS]))
    if not flows:
        raise CaptureFileError("--scenario: the captures have no flow of TCP or UDP.")
    length = max(row["start_s"] + row["duration_s"] for row in document["flows"])
    lines = [
        "# Written by streamgauge analyze: the path as measured, the flows as bulk TCP and constant UDP.",
        "id: captures/measured",
        "title: A path as two captures show it",
        "path:",
        f"  down: {{{', '.join(_direction(path['main']))}}}",
        f"  up: {{{', '.join(_direction(path['back']))}}}",
        "flows:",
        *flows,
        f"until: {{time: {max(1, round(length))} s}}",
    ]
    return "\n".join(lines) + "\n"


def _direction(row: Row) -> Iterator[str]:
    rate = row["rate_bps"]
    if rate is not None:
        yield f"rate: {_rate(row)}"
        if row["queue_bytes"] is not None:
            yield f"queue: droptail {round(row['queue_bytes'])} B"
        else:
            # No loss showed its limit: twice the most that it contained.
            yield f"queue: droptail {2 * row['queue_bounds_bytes'][0]} B"
    base_s = max(0.0, row["base_delay_s"] or 0.0)
    yield f"delay: {round(base_s * 1e6)} us"
    elsewhere = row["lost"] - row["lost_at_full_queue"]
    passed = row["delivered"] + row["lost"]
    in_bursts = gilbert_words(row, row.get("loss_runs"))
    if in_bursts is not None:
        yield f"loss: {in_bursts}"
    elif elsewhere > 0:
        yield f"loss: {100 * elsewhere / passed:.4g} %"


def _rate(row: Row) -> str:
    rate, course = row["rate_bps"], row["rate_course"]
    if all(abs(one / rate - 1) <= _STEADY for _, one in course):
        return f"{round(rate)} bit/s"
    steps: list[tuple[float, float]] = []
    for at, one in course:
        if not steps or abs(one / steps[-1][1] - 1) > _ALIKE:
            steps.append((at if steps else 0.0, one))
    kept = steps[:: -(-len(steps) // MOST_STEPS)]
    text = ", ".join(f"{{at: {round(at * 1e3)} ms, rate: {round(one)} bit/s}}" for at, one in kept)
    return f"{{steps: [{text}]}}"


def _flows(rows: Sequence[Row]) -> Iterator[str]:
    role = "subject"
    for number, row in enumerate(rows, start=1):
        # Receivers' windows are TCP's alone.
        is_tcp = row["zero_windows"] is not None
        if row["packets"] < 2 or row["duration_s"] <= 0:
            continue
        start = f"start: {max(0, round(row['start_s'] * 1e3))} ms"
        if is_tcp:
            size = f", parameters: {{bytes: {max(1, row['bytes'])} B}}" if row["bytes"] else ""
            yield f"  flow{number}: {{role: {role}, traffic: bulk{size}, {start}}}"
        else:
            rate = max(0.001, (row["packets"] - 1) / row["duration_s"])
            size_bytes = min(65507, max(8, round(row["bytes"] / row["packets"]) - 28))
            yield (
                f"  flow{number}: {{role: {role}, traffic: cbr, {start}, "
                f"parameters: {{rate: {rate:.3f} packets/s, size: {size_bytes} B}}}}"
            )
        role = "rival"
