"""What the validity of trials was judged by, as tables; and which trials are invalid, in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.claims.dimension import DATA, RATE, TIME, number, plain, say, say_exactly
from streamgauge.report.model import Entry, Group, labels

MANY = 4
"""More trials than this share one column."""
_MANY_SCENARIOS = 6
"""More scenarios than this do too."""


def overview(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One table a mode: what was measured of the trials' validity and its bound, a column a scenario, or one
    for all of them where they are many.

    Returns:
        ``[{"mode", "valid", "all", "columns": [...], "sheets": [[{"name", "bound", "cells"}, ...], ...]}]``;
        sheets are parts of the table, to stand side by side.
    """
    found = []
    for mode in dict.fromkeys(group.mode for entry in entries for group in entry.groups):
        groups = [(entry.id, group) for entry in entries if (group := entry.group(mode)) is not None]
        short = labels([id_ for id_, _ in groups])
        many = len(groups) > _MANY_SCENARIOS
        names: dict[str, None] = {}
        bounds: dict[str, dict[str, None]] = {}
        for _, group in groups:
            for trial in group.trials:
                names |= dict.fromkeys(trial.validity.get("measured") or {})
                for name, bound in (trial.validity.get("bounds") or {}).items():
                    names[name] = None
                    bounds.setdefault(name, {})[_number(name, bound)] = None
        rows = []
        for name in names:
            of = [
                [(trial.validity.get("measured") or {}).get(name) for trial in group.trials]
                for _, group in groups
            ]
            of = [[value for mine in of for value in mine]] if many else of
            known = [[value for value in mine if value is not None] for mine in of]
            cells = [_span(name, mine) if mine else "–" for mine in known]
            rows.append(
                {"name": _label(name), "bound": " or ".join(bounds.get(name, {"–": None})), "cells": cells}
            )
        # What is bounded first, the rest was only measured.
        rows.sort(key=lambda row: row["bound"] == "–")
        columns = [f"all {len(groups)} scenarios"] if many else [short[id_] for id_, _ in groups]
        count = 3 if len(columns) <= 2 else 2 if len(columns) <= 3 else 1
        size = -(-len(rows) // count) or 1
        found.append(
            {
                "mode": mode,
                "valid": sum(len(group.valid) for _, group in groups),
                "all": sum(len(group.trials) for _, group in groups),
                "columns": columns,
                "sheets": [rows[at : at + size] for at in range(0, len(rows), size)],
            }
        )
    return found


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
    """The values of many trials: the one they share, or the least and the most."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = _number(name, min(values)), _number(name, max(values))
        return low if low == high else f"{low} to {high}"
    return "; ".join(dict.fromkeys(_number(name, value) for value in values))


def _number(name: str, value: Any) -> str:
    """A number with the unit that its key ends in."""
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
