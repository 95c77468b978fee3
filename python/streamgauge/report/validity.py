"""Criteria and values of the trials' validity, as tables; and the invalid trials, in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.claims.dimension import DATA, RATE, TIME, number, plain, say, say_exactly
from streamgauge.report.model import Entry, Group
from streamgauge.report.observed import CAPTURED

MANY = 4
"""More trials than this share one column."""
_NOTHING = ("0", "none")


def overview(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Returns for each mode the measurements of the trials' validity over all scenarios, and their bounds.

    Returns:
        ``[{"mode", "valid", "all", "clean": [names], "rows": [{"name", "bound", "measured"}, ...]}]``; clean
        ones have a bound of nothing, and a measurement of nothing.
    """
    found = []
    modes = dict.fromkeys(group.mode for entry in entries for group in entry.groups)
    # Captures have no instrument of ours to judge.
    for mode in (mode for mode in modes if mode != CAPTURED):
        groups = [group for entry in entries if (group := entry.group(mode)) is not None]
        values: dict[str, list[Any]] = {}
        bounds: dict[str, dict[str, None]] = {}
        for trial in (trial for group in groups for trial in group.trials):
            for name, value in (trial.validity.get("measured") or {}).items():
                values.setdefault(name, []).extend([] if value is None else [value])
            for name, bound in (trial.validity.get("bounds") or {}).items():
                values.setdefault(name, [])
                bounds.setdefault(name, {})[_number(name, bound)] = None
        rows = [
            {
                "name": _label(name),
                "bound": _either(list(bounds.get(name, ()))),
                "measured": _span(name, mine) if mine else "–",
            }
            for name, mine in values.items()
        ]
        clean = [row["name"] for row in rows if row["measured"] == row["bound"] and row["bound"] in _NOTHING]
        # Bounded ones first; the rest was only measured.
        rows = sorted((row for row in rows if row["name"] not in clean), key=lambda row: row["bound"] == "–")
        found.append(
            {
                "mode": mode,
                "valid": sum(len(group.valid) for group in groups),
                "all": sum(len(group.trials) for group in groups),
                "clean": clean,
                "rows": rows,
            }
        )
    return found


def _either(bounds: Sequence[str]) -> str:
    """Returns the bounds that trials of several scenarios have."""
    return "–" if not bounds else bounds[0] if len(bounds) == 1 else f"{bounds[0]} or others"


def verdicts(group: Group) -> dict[str, Any]:
    """Verdicts of a group's trials; their measured numbers as rows, trials as columns."""
    names: dict[str, None] = {}
    bounds: dict[str, Any] = {}
    for trial in group.trials:
        names |= dict.fromkeys(trial.validity.get("measured") or {})
        names |= dict.fromkeys(trial.validity.get("bounds") or {})
        bounds |= trial.validity.get("bounds") or {}
    measured = [trial.validity.get("measured") or {} for trial in group.trials]
    many = len(measured) > MANY
    return {
        "mode": group.mode,
        "valid": len(group.valid),
        "all": len(group.trials),
        "trials": [
            {
                "seed": trial.seed,
                "valid": trial.valid,
                "why": "; ".join(trial.why),
                "replaced_by": group.replaced_by(trial),
            }
            for trial in group.trials
        ],
        "columns": [f"{len(measured)} trials"] if many else [f"seed {trial.seed}" for trial in group.trials],
        "rows": [
            {
                "name": _label(name),
                "bound": _number(name, bounds.get(name)),
                "cells": [_span(name, [one.get(name) for one in measured])]
                if many
                else [_number(name, one.get(name)) for one in measured],
            }
            for name in names
        ],
    }


_SUFFIXES = ("_s", "_ns", "_bps", "_percent", "_bytes", "_packets")


_PLAIN = {"preflight": "before the trial", "veths": "virtual links", "slab": "memory of packets"}
"""Words for those of the emulator's own."""


def _label(name: str) -> str:
    suffix = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    first, *rest = name.removesuffix(suffix).split("_")
    if first in _PLAIN:
        return f"{_PLAIN[first]}: {' '.join(rest)}" if rest else _PLAIN[first]
    return " ".join([first, *rest])


def _span(name: str, values: list[Any]) -> str:
    """Returns the values of many trials: the one they share, or the least and the most."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = _number(name, min(values)), _number(name, max(values))
        return low if low == high else f"{low} to {high}"
    if all(isinstance(value, Mapping) for value in values):
        keys = dict.fromkeys(key for value in values for key in value)
        spans = (f"{key} {_span(name, [value[key] for value in values if key in value])}" for key in keys)
        return ", ".join(spans) or "none"
    return "; ".join(dict.fromkeys(_number(name, value) for value in values))


def _number(name: str, value: Any) -> str:
    """Returns a number with the unit that its key ends in."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_number(name, inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_number(name, inner) for inner in value) or "none"
    if not isinstance(value, int | float):
        return str(value)
    suffix = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), "")
    match suffix:
        case "_s":
            return say(value, TIME)
        case "_ns":
            return say(value / 1e9, TIME)
        case "_bps":
            return say_exactly(value, RATE)
        case "_bytes":
            return say_exactly(8.0 * value, DATA)
        case "_percent":
            return f"{plain(value, 4)} %"
        case "_packets":
            return f"{plain(value, 9)} packets"
    return number(value, 4) if abs(value) >= 10_000 else plain(value, 4)
