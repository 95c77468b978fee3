"""Published values of a source, beside the measured ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.checks.result import Value
from streamgauge.claims.dimension import UNITS, Dimension

__all__ = ["differs", "match_published", "published_value"]


def published_value(text: Any) -> tuple[float, Dimension | None]:
    """Returns a published number in canonical units; a number without a unit has no dimension of its own.

    Raises:
        ValueError: if it is not a number with a known unit.
    """
    if isinstance(text, int | float):
        return float(text), None
    number, _, unit = str(text).strip().partition(" ")
    if unit and unit not in UNITS:
        raise ValueError(f"unknown unit {unit!r} in {text!r}")
    return (float(number) * UNITS[unit][0], UNITS[unit][1]) if unit else (float(number), None)


def match_published(values: Mapping[str, Value], published: Mapping[str, Any]) -> dict[str, Value]:
    """Returns our value beside each published one: by the flow's or metric's name; a lone one needs none."""
    found: dict[str, Value] = {}
    for key, text in published.items():
        try:
            _, dimension = published_value(text)
        except ValueError:
            continue
        fitting = [v for v in values.values() if dimension is None or v.dimension == dimension]
        named = [v for v in fitting if key in _words(v.text)]
        chosen = named or (fitting if len(published) == 1 else [])
        if chosen:
            found[key] = chosen[0]
    return found


def _words(text: str) -> set[str]:
    return {word for part in text.replace("(", " ").replace(")", " ").split() for word in part.split(".")}


def differs(
    check: Mapping[str, Any], values: Mapping[str, Value], published: Mapping[str, Any]
) -> str | None:
    """Returns a remark where ours lies further from the published value than the check's `tolerance`."""
    if check.get("differs"):
        return str(check["differs"])
    if not check.get("tolerance"):
        return None
    allowed = published_value(check["tolerance"])[0]
    parts = []
    for key, value in match_published(values, published).items():
        theirs = published_value(published[key])[0]
        gap = value.interval.mean - theirs
        if abs(gap) > allowed * abs(theirs):
            label = "" if key == "value" else f"{key}: "
            parts.append(f"{label}published {published[key]}, ours {value.mean_words()}")
    if not parts:
        return None
    mechanism = f": {check['note']}" if check.get("note") else ""
    return f"differs from the paper ({'; '.join(parts)}){mechanism}"
