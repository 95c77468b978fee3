"""The trials' own facts on their making, each fact once with its values, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamgauge.report.model import Entry, LoadedTrial

__all__ = ["Facts", "provenance"]

Facts = list[tuple[str, list[tuple[str, str]]]]
"""Groups of facts: (heading, [(name, values)])."""

_OWN_PLACE = ("schema", "certificate")
_SEVERAL = 3
_TELLING = ("Retrans", "Timeout", "Err", "Fail", "Drop", "Overflow", "Lost", "Prune", "Collapse", "Checksum")
"""Parts of the names of kernel counters that are shown; all are in each trial's file."""
_GROUPED = ("counters", "network", "systems", "version", "emulator", "libraries", "concurrent_trials")
_HEADS = {
    "": "run",
    "counters": "kernel’s counters",
    "version": "versions of systems",
    "libraries": "libraries",
}


def provenance(entries: Sequence[Entry]) -> Facts:
    """Returns every fact of the trials' provenance; many values as the least and the greatest."""
    facts: dict[str, dict[str, Any]] = {}
    for entry in entries:
        for group in entry.groups:
            for trial in group.trials:
                for name, value in _of(trial):
                    if name.startswith("counters.") and not any(word in name for word in _TELLING):
                        continue
                    facts.setdefault(name, {}).setdefault(_text(value), value)
    grouped: dict[str, list[tuple[str, str]]] = {}
    for name, values in facts.items():
        head, _, rest = name.partition(".")
        of = head if rest and head in _GROUPED else ""
        if of == "counters" and rest:
            side, _, rest = rest.partition(".")
            of = f"counters, {side}"
        grouped.setdefault(of, []).append((rest if of else name, _values(list(values.values()))))
    return [(_heading(of), rows) for of, rows in grouped.items()]


def _heading(of: str) -> str:
    head, _, rest = of.partition(", ")
    text = _HEADS.get(head, head.replace("_", " "))
    return f"{text}, {rest}" if rest else text


def _of(trial: LoadedTrial) -> Iterable[tuple[str, Any]]:
    yield from _flat("", trial.provenance)
    model = trial.header.get("model_version")
    if model is not None:
        yield "model_version", model
    yield from _flat("version.", trial.header.get("systems") or {})


def _flat(prefix: str, data: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in data.items():
        if not prefix and key in _OWN_PLACE:
            continue
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        elif not prefix and key == "processes":
            yield key, [_process(one) for one in value]
        else:
            yield f"{prefix}{key}", value


def _process(one: Any) -> str:
    """Returns ``video server: python3 gst_rtsp_server.py, status 0``."""
    if not isinstance(one, Mapping):
        return _text(one)
    who = " ".join(str(one[key]) for key in ("flow", "side") if one.get(key))
    command = one.get("command") or [one.get("name") or ""]
    shown = " ".join(str(part).rpartition("/")[2] for part in list(command)[:2])
    status = one.get("status")
    return f"{who}: {shown}" + ("" if status is None else f", status {status}")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _values(values: Sequence[Any]) -> str:
    if len(values) <= _SEVERAL:
        return "; ".join(dict.fromkeys(map(_text, values)))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if not numbers and not all(isinstance(value, str) for value in values):
        return f"{len(values)} values"
    low, high = min(values), max(values)
    return f"{_text(low)} to {_text(high)} ({len(values)} values)"
