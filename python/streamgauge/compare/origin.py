"""Origin of a subject's trials, and its effect on differences: another version of the simulator, or another
machine, may be the cause of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["TrialsOrigin", "origin_of", "origin_of_folders", "origins_apart"]


@dataclass(frozen=True, kw_only=True)
class TrialsOrigin:
    """Makers of the trials of a case; several where they differ."""

    simulators: tuple[int, ...] = ()
    """Versions of the simulator's model."""
    systems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Versions of each system's parts, ``machine 1, programs 2``."""
    releases: tuple[str, ...] = ()
    """Versions of StreamGauge."""
    machines: tuple[str, ...] = ()
    """Hosts with processor and kernel."""


def origin_of(records: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> TrialsOrigin:
    """Returns the origin of trials, each as (trial.json, provenance.json)."""
    simulators: dict[int, None] = {}
    systems: dict[str, dict[str, None]] = {}
    releases: dict[str, None] = {}
    machines: dict[str, None] = {}
    for header, provenance in records:
        if (version := header.get("model_version")) is not None:
            simulators[int(version)] = None
        for name, parts in (header.get("systems") or {}).items():
            systems.setdefault(name, {})[", ".join(f"{part} {v}" for part, v in sorted(parts.items()))] = None
        if "streamgauge" in provenance:
            releases[str(provenance["streamgauge"])] = None
        if "host" in provenance:
            machines[_machine(provenance)] = None
    return TrialsOrigin(
        simulators=tuple(sorted(simulators)),
        systems={name: tuple(sorted(told)) for name, told in sorted(systems.items())},
        releases=tuple(sorted(releases)),
        machines=tuple(sorted(machines)),
    )


def origin_of_folders(folders: Iterable[Path]) -> TrialsOrigin:
    """Returns `origin_of` records; unreadable ones are ignored."""
    return origin_of((_json(folder / "trial.json"), _json(folder / "provenance.json")) for folder in folders)


def _json(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _machine(provenance: Mapping[str, Any]) -> str:
    cpus = provenance.get("cpus")
    processors = f"{cpus} x {provenance.get('cpu')}" if cpus else str(provenance.get("cpu"))
    return f"{provenance['host']} ({processors}, {provenance.get('system')} {provenance.get('kernel')})"


def origins_apart(
    mode: str, baseline: str, theirs: TrialsOrigin | None, subject: str, ours: TrialsOrigin | None
) -> list[str]:
    """Returns sentences about different makers of the trials of the baseline and of a subject in a mode,
    where that may be the cause of a difference. Unknown facts are left out."""
    if theirs is None or ours is None:
        return []
    told = []
    if mode == "sim" and _differ(theirs.simulators, ours.simulators):
        then, now = _listed(theirs.simulators), _listed(ours.simulators)
        told.append(
            f"{baseline} was simulated by version {then} of the simulator and {subject} by {now}: "
            "a difference may be the simulator's."
        )
    for name, versions in theirs.systems.items():
        if _differ(versions, ours.systems.get(name, ())):
            now = _listed(ours.systems[name])
            told.append(
                f"{baseline} used {name} in its version {_listed(versions)} and {subject} in {now}: "
                "a difference may be due to that."
            )
    if mode != "sim" and _differ(theirs.releases, ours.releases):
        then, now = _listed(theirs.releases), _listed(ours.releases)
        told.append(f"{baseline} ran in StreamGauge {then} and {subject} in {now}.")
    if mode != "sim" and _differ(theirs.machines, ours.machines):
        told.append(
            f"{baseline} ran on {_listed(theirs.machines)} and {subject} on {_listed(ours.machines)}: "
            "an emulated difference may be the machine's."
        )
    return told


def _differ(theirs: tuple[Any, ...], ours: tuple[Any, ...]) -> bool:
    return bool(theirs) and bool(ours) and theirs != ours


def _listed(values: tuple[Any, ...]) -> str:
    return " and ".join(map(str, values))
