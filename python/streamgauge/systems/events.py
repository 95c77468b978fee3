"""Reads the events that the processes of a flow wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def read_events(file: Path, *, t0_monotonic_ns: int, faults: list[str]) -> list[dict[str, Any]]:
    """The events in `file`, each with ``t_monotonic_ns``, ``name``, ``value``, ``unit`` and ``reason``.

    ``t_s`` counts from the trial's start. A line that is no event is named in `faults`, once a file: a
    program that is killed may leave half a line at the end, and that one is passed over.
    """
    if not file.is_file():
        return []
    events: list[dict[str, Any]] = []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            event = _event(json.loads(line), t0_monotonic_ns)
        except (ValueError, TypeError, KeyError) as error:
            if number < len(lines):
                faults.append(f"{file.name}:{number}: not an event ({error})")
                break
            continue
        events.append(event)
    return events


def _event(raw: dict[str, Any], t0_monotonic_ns: int) -> dict[str, Any]:
    at = raw["t_monotonic_ns"] if "t_monotonic_ns" in raw else t0_monotonic_ns + round(raw["t_s"] * 1e9)
    value = raw.get("value")
    if value is not None and not math.isfinite(value := float(value)):
        raise ValueError(f"value of {raw['name']} is not finite")
    return event(int(at), str(raw["name"]), value, str(raw.get("unit", "")), str(raw.get("reason", "")))


def event(
    t_monotonic_ns: int, name: str, value: float | None = None, unit: str = "", reason: str = ""
) -> dict[str, Any]:
    """One event as `Collected.events` holds it."""
    return {"t_monotonic_ns": t_monotonic_ns, "name": name, "value": value, "unit": unit, "reason": reason}


def last(events: Iterable[dict[str, Any]], name: str) -> float | None:
    """The value of the last event called `name`; None if there is none."""
    found = None
    for one in events:
        if one["name"] == name and one["value"] is not None:
            found = float(one["value"])
    return found
