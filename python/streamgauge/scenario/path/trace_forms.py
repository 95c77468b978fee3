"""Traces in gzip, and in the JSON of Sabre and OpenNetLab, as the text of a trace of times and rates."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from streamgauge.input_files import UnfitInputError, read_bytes
from streamgauge.scenario.path.trace_tables import of_table

__all__ = ["read_trace", "text_of_trace"]

_GZIP: Final = b"\x1f\x8b"
_MOST_STEPS: Final = 1_000_000


def read_trace(path: Path, largest: int) -> str:
    """Returns the text of a trace; JSON and the tables of others become `time_s,rate_kbps`, dates become
    seconds.

    Raises UnfitInputError for a file of another format, OSError and UnicodeDecodeError as `read_input` does.
    """
    return text_of_trace(read_bytes(path, largest), largest)


def text_of_trace(data: bytes, largest: int) -> str:
    """Returns the text of a trace in these bytes. Raises as `read_trace` does."""
    if data.startswith(_GZIP):
        data = _inflated(data, largest)
    text = data.decode("utf-8")
    return _of_json(text) if text.lstrip()[:1] in ("[", "{") else of_table(text)


def _inflated(data: bytes, largest: int) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        found = inflater.decompress(data, largest + 1)
    except zlib.error:
        raise UnfitInputError("is damaged gzip; fetch it anew") from None
    if len(found) > largest:
        raise UnfitInputError(f"has more than {largest // 1_000_000} MB once it is unpacked")
    if not inflater.eof:
        raise UnfitInputError("is gzip that is cut off; fetch it anew")
    return found


def _of_json(text: str) -> str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise UnfitInputError("begins as JSON and is none") from None
    steps = list(_sabre(found) if isinstance(found, list) else _open_net_lab(found))
    if not steps:
        raise UnfitInputError("has no step with a duration and a rate")
    # The last row lasts as long as the one before it: halves of the last step do.
    length_ms, rate = steps.pop()
    steps += [(length_ms / 2, rate), (length_ms / 2, rate)]
    rows, at_ms = ["time_s,rate_kbps"], 0.0
    for length_ms, rate in steps:
        rows.append(f"{at_ms / 1e3:.9f},{rate:.6f}")
        at_ms += length_ms
    return "\n".join(rows) + "\n"


def _sabre(found: list[Any]) -> Iterator[tuple[float, float]]:
    """Spiteri et al., MMSys 2018: a list of periods with `duration_ms` and `bandwidth_kbps`."""
    for number, period in enumerate(found[:_MOST_STEPS], start=1):
        yield _step(period, number, "duration_ms", "bandwidth_kbps")


def _open_net_lab(found: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """OpenNetLab's traces: the `trace_pattern` of one way, with `duration` (ms) and `capacity` (kbit/s)."""
    ways = [found[way] for way in ("downlink", "uplink") if isinstance(found.get(way), dict)]
    patterns = [way["trace_pattern"] for way in ways if isinstance(way.get("trace_pattern"), list)]
    full = [pattern for pattern in patterns if pattern]
    if len(full) != 1:
        raise UnfitInputError(f"has {len(full)} lists of 'trace_pattern'; expected one, downlink or uplink")
    for number, step in enumerate(full[0][:_MOST_STEPS], start=1):
        yield _step(step, number, "duration", "capacity")


def _step(step: object, number: int, length: str, rate: str) -> tuple[float, float]:
    values = [step.get(key) for key in (length, rate)] if isinstance(step, dict) else [None, None]
    one, other = (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        for value in values
    )
    if not (0 < one < 1e12 and 0 <= other < 1e12):
        raise UnfitInputError(f"has no {length} above 0 with a {rate} in step {number}")
    return one, other
