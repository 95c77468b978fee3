"""Two captures become a record, which everything reads as that of a trial. It has no plan."""

from __future__ import annotations

import math
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from streamgauge.captures.qlogs import qlog_events
from streamgauge.errors import CaptureFileError
from streamgauge.units import Time

__all__ = ["begin", "finish", "place_of", "remove"]

SAMPLES: Final = 400
"""A record has about so many samples, of 100 ms or longer."""
_SECOND_NS: Final = 1_000_000_000
Row = Mapping[str, Any]


def place_of(out: Path, files: Sequence[Path]) -> Path:
    """Where the record of these captures lies below ``out``, as trials lie there.

    Raises:
        CaptureFileError: if one is there already, or a file is in the way.
    """
    place = out / f"scenario={quote(_id(files), safe='')}" / "mode=capture" / "seed=1"
    if place.exists():
        raise CaptureFileError(f"--out: {place} is there already; remove it or choose another folder.")
    above = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise CaptureFileError(f"--out: {above} is no folder that can be written to; choose another.")
    return place


def begin(place: Path) -> Path:
    """A folder beside ``place`` in which the record grows."""
    growing = place.with_name(f".{place.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")
    growing.mkdir(parents=True)
    return growing


def finish(
    growing: Path,
    place: Path,
    files: Sequence[Path],
    found: Row,
    document: Row,
    checks: Mapping[str, Row] | None = None,
) -> Path:
    """Completes the record in ``growing``, which has its packets, and gives it its place. ``checks`` become
    those of its scenario.

    Raises:
        CaptureFileError: if no packet has a fate.
        OSError: if it cannot be written.
    """
    from streamgauge.campaign.stored import save_metrics
    from streamgauge.metrics import compute
    from streamgauge.record import Record
    from streamgauge.record.observed import finish_observed

    record = found["record"]
    duration_ns = record["duration_ns"]
    if not record["rows"] or duration_ns <= 0:
        raise CaptureFileError("--out: no packet is in both captures; name captures of the same time.")
    flows = [_flow(code, flow, found["flows"][flow["row"]]) for code, flow in enumerate(record["flows"])]
    scenario = _scenario(files, flows, duration_ns) | ({"checks": dict(checks)} if checks else {})
    streams = document["streams"]

    def measure(trial: dict[str, Any]) -> None:
        save_metrics(growing, compute(Record(growing, trial), scenario), scenario["measure"])

    finish_observed(
        growing,
        scenario=scenario,
        legend=record["legend"],
        flows=flows,
        duration_s=duration_ns / _SECOND_NS,
        events=[*_events(found), *_inferred(found, flows, streams, document["qlogs"])],
        observed={"answer": list(document["answer"]), "coverage": _coverage(found, flows)},
        provenance={"captures": [dict(capture) for capture in found["captures"]]},
        measure=measure,
    )
    growing.replace(place)
    return place


def remove(growing: Path) -> None:
    """Removes the rest of a record that was not finished."""
    shutil.rmtree(growing, ignore_errors=True)


def _id(files: Sequence[Path]) -> str:
    stems = dict.fromkeys(file.name.split(".")[0] or "capture" for file in files)
    return f"captures/{'+'.join(stems)}"


def _flow(code: int, flow: Row, row: Row) -> dict[str, Any]:
    return {
        "id": code,
        "name": flow["name"],
        "role": "subject",
        "system": row["protocol"],
        "ours": False,
        "direction": "up" if flow["is_up"] else "down",
        "title": row["flow"],
    }


def _scenario(files: Sequence[Path], flows: Sequence[Row], duration_ns: int) -> dict[str, Any]:
    sample_ns = max(100_000_000, math.ceil(duration_ns / SAMPLES / 100_000_000) * 100_000_000)
    sample_ns = min(sample_ns, max(1_000_000, duration_ns // 10))
    names = " and ".join(file.name for file in dict.fromkeys(files))
    return {
        "id": _id(files),
        "title": f"Packets that {names} captured",
        "flows": {flow["name"]: {"role": "subject", "system": {"name": flow["title"]}} for flow in flows},
        "measure": {"sample": str(Time.of(sample_ns))},
    }


def _inferred(
    found: Row, flows: Sequence[Row], streams: Sequence[Row], qlogs: Sequence[Row]
) -> Iterator[dict[str, Any]]:
    """Returns inferred stalls and levels, and the reports in logs, as events of the flow."""
    names = {row["title"]: row["name"] for row in flows}
    zero_s = found["record"]["zero_ns"] / _SECOND_NS
    since_s = (found["captures"][0]["first_s"] or zero_s) - zero_s
    duration_ns = found["record"]["duration_ns"]

    def event(at_s: float, name: str, value: float, unit: str, stream: Row) -> dict[str, Any]:
        flow = next((names[title] for title in stream["flows"] if title in names), None)
        t_ns = min(duration_ns, max(0, round((at_s + since_s) * _SECOND_NS)))
        reason = f"by {stream['by']}, confidence {stream['confidence'] or 'not known'}"
        return {"t_ns": t_ns, "flow": flow, "name": name, "value": value, "unit": unit, "reason": reason}

    for at_s, title, name, value, unit, reason in qlog_events(qlogs):
        t_ns = min(duration_ns, max(0, round((at_s + since_s) * _SECOND_NS)))
        flow = names.get(title)
        yield {"t_ns": t_ns, "flow": flow, "name": name, "value": value, "unit": unit, "reason": reason}
    for stream in streams:
        for stall in stream["stalls"] or ():
            yield event(stall["at_s"], "inferred_stall", stall["duration_s"], "s", stream)
        for level in stream["levels"]:
            if level["rate_bps"] is not None:
                yield event(level["at_s"], "inferred_level", level["rate_bps"], "bit/s", stream)


def _events(found: Row) -> list[dict[str, Any]]:
    """Returns the bottleneck's rate over time as the path's own: it was measured, not set."""
    duration_ns = found["record"]["duration_ns"]
    zero_s = found["record"]["zero_ns"] / _SECOND_NS
    since_s = (found["captures"][0]["first_s"] or zero_s) - zero_s
    events = []
    for way, name in (("main", "measured_rate"), ("back", "up.measured_rate")):
        for at_s, rate in found["path"][way]["rate_course"]:
            t_ns = min(duration_ns, max(0, round((at_s + since_s) * _SECOND_NS)))
            events.append({"t_ns": t_ns, "name": name, "value": rate, "unit": "bit/s", "reason": "measured"})
    return sorted(events, key=lambda event: event["t_ns"])


def _coverage(found: Row, flows: Sequence[Row]) -> dict[str, Any]:
    """Returns the record's counts of packets that passed, and of those with an unknown fate."""
    path, record = found["path"], found["record"]
    rates = [rate for _, rate in path["main"]["rate_course"]]
    return {
        "captures": [capture["file"] for capture in found["captures"]],
        "damage": [capture["damage"] for capture in found["captures"]],
        "missed": {row["name"]: seen["missed"] for row, seen in zip(flows, record["flows"], strict=True)},
        "lost_or_not_captured": {
            row["name"]: seen["open"] for row, seen in zip(flows, record["flows"], strict=True)
        },
        "flows_without_name": record["others"],
        "delay": "measured" if record["delay_is_known"] else "above the least delay",
        "offset_s": path["offset_s"],
        "offset_error_s": path["offset_error_s"],
        "rate_bps": path["rate_bps"],
        "rate_span_bps": [min(rates), max(rates)] if rates else None,
        "queue_bytes": path["queue_bytes"],
        "not_known": ["causes of drops", "plan", "roles", "content"],
    }
