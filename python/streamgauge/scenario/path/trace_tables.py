"""Tables of other projects, and times of day, as the text of a trace of times and rates."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from streamgauge.input_files import UnfitInputError

__all__ = ["of_table"]

_SEPARATORS: Final = (";", "\t", ",")
_DATE: Final = re.compile(r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_PUFFER: Final = ("time (ns GMT)", "session_id", "index", "delivery_rate")
_FCC: Final = ("dtime", "unit_id", "target", "bytes_sec")
_SHOWN: Final = 3
_HEAD: Final = 1 << 16
"""Characters that have a header and a row of any table."""
_Seconds = Callable[[str], float | None]


def of_table(text: str) -> str:
    """Returns the text with seconds for dates; raw tables of Puffer and of the FCC become `time_s,rate_kbps`.

    Raises UnfitInputError where a table has several lines' figures, or a row without them.
    """
    head = _rows(text[:_HEAD])[:2]
    if not head:
        return text
    separator = next((one for one in _SEPARATORS if one in head[0]), ",")
    names = _fields(head[0], separator)
    if all(name in names for name in _PUFFER):
        return _text(_one_line(_rows(text), names, separator, _PUFFER, _of_nanoseconds))
    if all(name in names for name in _FCC):
        return _text(_one_line(_rows(text), names, separator, _FCC, _of_date))
    dates = [index for index, field in enumerate(_fields(head[-1], separator)) if _DATE.match(field)]
    return _without_dates(_rows(text), separator, dates[0]) if len(dates) == 1 else text


def _rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _fields(row: str, separator: str) -> list[str]:
    return [field.strip().strip('"').strip() for field in row.split(separator)]


def _one_line(
    rows: Sequence[str], names: Sequence[str], separator: str, keys: Sequence[str], seconds: _Seconds
) -> Iterator[tuple[float, float]]:
    """Times and kbit/s of a table whose columns are the time, two that name a line, and bytes a second."""
    at, one, other, rate = (names.index(key) for key in keys)
    parts = [_fields(row, separator) for row in rows[1:]]
    for number, fields in enumerate(parts, start=2):
        if len(fields) != len(names):
            raise UnfitInputError(f"has {len(fields)} columns in row {number}; expected {len(names)}")
    lines = {(fields[one], fields[other]): None for fields in parts}
    if len(lines) != 1:
        shown = ", ".join(" ".join(line) for line in list(lines)[:_SHOWN])
        raise UnfitInputError(
            f"has {len(lines)} of {keys[1]} and {keys[2]} ({shown}); keep the rows of one, and the header"
        )
    last = -math.inf
    for number, fields in enumerate(parts, start=2):
        time_s, value = seconds(fields[at]), _number(fields[rate])
        if time_s is None or value is None:
            raise UnfitInputError(f"has no {keys[0]} with a {keys[3]} in row {number}")
        if time_s > last:  # several samples of one time: the first
            yield time_s, value * 8 / 1e3
        last = max(last, time_s)


def _text(steps: Iterator[tuple[float, float]]) -> str:
    found = list(steps)
    first = found[0][0] if found else 0.0
    rows = (f"{at - first:.6f},{rate:.6f}" for at, rate in found)
    return "\n".join(["time_s,rate_kbps", *rows]) + "\n"


def _without_dates(rows: Sequence[str], separator: str, at: int) -> str:
    """Returns the rows with seconds since the first date in that column."""
    found: list[str] = []
    first: float | None = None
    for number, row in enumerate(rows, start=1):
        fields = _fields(row, separator)
        if at >= len(fields):
            raise UnfitInputError(f"has {len(fields)} columns in row {number}; expected more than {at}")
        time_s = _of_date(fields[at])
        if time_s is None and number == 1:
            fields[at] = "time_s"
        elif time_s is None:
            raise UnfitInputError(f"has no date in row {number}; expected one such as 2024-05-01T12:00:00Z")
        else:
            first = time_s if first is None else first
            fields[at] = f"{time_s - first:.6f}"
        found.append(separator.join(fields))
    return "\n".join(found) + "\n"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None


def _of_nanoseconds(text: str) -> float | None:
    return int(text) / 1e9 if text.isascii() and text.isdigit() and len(text) < 20 else None


def _of_date(text: str) -> float | None:
    if not _DATE.match(text):
        return None
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
