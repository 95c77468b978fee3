"""Reads qlog: contained JSON, JSON text sequences and lines, of versions 0.3 to the current drafts."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from streamgauge.errors import CaptureFileError
from streamgauge.input_files import UnfitInputError, read_bytes

__all__ = ["Qlog", "parse_qlog", "read_qlog"]

LARGEST_BYTES: Final = 512_000_000
MOST_POINTS: Final = 1_000_000
_SERIES: Final = {
    "min_rtt": ("s", 1e-3),
    "smoothed_rtt": ("s", 1e-3),
    "latest_rtt": ("s", 1e-3),
    "rtt_variance": ("s", 1e-3),
    "congestion_window": ("B", 1.0),
    "bytes_in_flight": ("B", 1.0),
    "ssthresh": ("B", 1.0),
    "packets_in_flight": ("packets", 1.0),
    "pacing_rate": ("bit/s", 1.0),
}
_METRICS: Final = (
    "recovery:metrics_updated",
    "quic:recovery_metrics_updated",
    "recovery:recovery_metrics_updated",
)
_LOST: Final = ("recovery:packet_lost", "quic:packet_lost")


@dataclass(frozen=True)
class Qlog:
    """One trace: series in SI units, and the number of each event."""

    title: str
    vantage: str
    epoch_s: float | None
    """When its times begin, s since 1970; None if only differences are known."""
    series: Mapping[str, tuple[str, tuple[tuple[float, float], ...]]]
    """By name the unit, and times (s) with values."""
    events: Mapping[str, int]
    lost_s: tuple[float, ...]
    """When packets were declared lost."""
    markers: tuple[tuple[float, str], ...]
    skipped: int
    """Records that are no event: damaged, or cut off."""


def read_qlog(file: Path) -> list[Qlog]:
    """The traces of a file, plain or gzip.

    Raises:
        CaptureFileError: if it cannot be read or is no qlog.
    """
    try:
        data = read_bytes(file, LARGEST_BYTES)
        if data[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(data)) as source:
                data = source.read(LARGEST_BYTES + 1)
    except UnfitInputError as error:
        raise CaptureFileError(f"{file}: {error}.") from None
    except OSError as error:
        raise CaptureFileError(f"{file}: cannot be read: {error.strerror or error}.") from None
    except (EOFError, zlib.error):
        raise CaptureFileError(f"{file}: the gzip data is damaged; fetch it anew.") from None
    if len(data) > LARGEST_BYTES:
        raise CaptureFileError(f"{file}: it has more than {LARGEST_BYTES // 10**6} MB; cut it in parts.")
    return parse_qlog(data, str(file))


def parse_qlog(data: bytes, name: str) -> list[Qlog]:
    """Does as `read_qlog` with bytes; ``name`` is the file in errors."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    separator = "\x1e" if "\x1e" in text[:4096] else None
    if separator is None:
        whole = _json(text)
        if isinstance(whole, dict) and "traces" in whole:
            traces = whole["traces"] if isinstance(whole["traces"], list) else []
            found = [_trace(one, iter(one.get("events") or ())) for one in traces if _has_events(one)]
            if found:
                return found
            raise CaptureFileError(f"{name}: the qlog has no trace with events.")
    records = (text.split(separator) if separator else text.split("\n")) if text.strip() else []
    records = [record for record in records if record.strip()]
    header = _json(records[0]) if records else None
    if not isinstance(header, dict) or not ({"qlog_version", "file_schema"} & header.keys()):
        raise CaptureFileError(f"{name}: no qlog: neither 'traces' nor a header with its version begins it.")
    trace = header.get("trace")
    return [_trace(trace if isinstance(trace, dict) else {}, map(_json, records[1:]))]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _has_events(trace: object) -> bool:
    return isinstance(trace, dict) and isinstance(trace.get("events"), list)


def _trace(trace: Mapping[str, Any], events: Iterator[Any]) -> Qlog:
    common = trace.get("common_fields")
    common = common if isinstance(common, dict) else {}
    vantage = trace.get("vantage_point")
    vantage = vantage if isinstance(vantage, dict) else {}
    series: dict[str, list[tuple[float, float]]] = {}
    counts: Counter[str] = Counter()
    lost: list[float] = []
    markers: list[tuple[float, str]] = []
    skipped, at_s = 0, 0.0
    is_delta = common.get("time_format") in ("delta", "relative_to_previous_event")
    for event in events:
        time = _number(event.get("time")) if isinstance(event, dict) else None
        if time is None or not isinstance(event.get("name"), str):
            skipped += 1
            continue
        at_s = at_s + time / 1e3 if is_delta else time / 1e3
        name = event["name"]
        data = event.get("data")
        data = data if isinstance(data, dict) else {}
        counts[name] += 1
        if name in _METRICS:
            for key, value in data.items():
                number = _number(value) if key in _SERIES else None
                points = series.setdefault(key, []) if number is not None else []
                if number is not None and len(points) < MOST_POINTS:
                    points.append((at_s, number * _SERIES[key][1]))
        elif name in _LOST and len(lost) < MOST_POINTS:
            lost.append(at_s)
        elif name == "simulation:marker" and len(markers) < MOST_POINTS:
            markers.append((at_s, str(data.get("message") or data.get("type") or "")))
    return Qlog(
        title=str(trace.get("title") or ""),
        vantage=str(vantage.get("type") or "unknown"),
        epoch_s=_epoch_s(common),
        series={key: (_SERIES[key][0], tuple(points)) for key, points in series.items()},
        events=dict(counts),
        lost_s=tuple(lost),
        markers=tuple(markers),
        skipped=skipped,
    )


def _epoch_s(common: Mapping[str, Any]) -> float | None:
    """The reference time: a number of ms, or an object with the clock's epoch."""
    reference = common.get("reference_time")
    if isinstance(reference, dict):
        return _date_s(reference.get("epoch")) if reference.get("clock_type") != "monotonic" else None
    number = _number(reference)
    if common.get("time_format") == "absolute":
        return 0.0
    # A reference that is no date after 2001 counts from something else.
    return number / 1e3 if number is not None and number > 1e12 else None


def _date_s(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
