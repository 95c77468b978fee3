"""``list``, ``show``, ``systems`` and ``doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, catalogue_ids, load, lower
from streamgauge.scenario.values import nearest
from streamgauge.scenario.words import in_words
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.registry import SYSTEMS, TRAFFIC, Mode, Parameter, System

__all__ = ["doctor_command", "list_command", "show_command", "systems_command"]


def _dump(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, ensure_ascii=False)
    print()


def list_command(pattern: str, as_json: bool) -> None:
    """Every scenario of the catalogue that matches."""
    scenarios = load(pattern)
    if as_json:
        _dump(
            {
                "schema": "streamgauge.list/1",
                "scenarios": [
                    {
                        "id": scenario.id,
                        "title": scenario.title,
                        "modes": scenario.supported_modes(),
                        "checks": list(scenario.checks),
                        "file": str(catalogue_ids().get(scenario.id, "")) or None,
                    }
                    for scenario in scenarios
                ],
            }
        )
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("id", no_wrap=True)
    table.add_column("modes", no_wrap=True)
    table.add_column("title", overflow="fold")
    for scenario in scenarios:
        table.add_row(scenario.id, " ".join(scenario.supported_modes()), scenario.title)
    Console().print(table)


def show_command(name: str, settings: Sequence[str], plan: Mode | None, seed: int, as_json: bool) -> None:
    """One scenario, or each of a file's or glob's."""
    scenarios = load(name, settings=settings)
    if plan is not None:
        if len(scenarios) != 1:
            ids = ", ".join(scenario.id for scenario in scenarios)
            raise ScenarioError(
                f"'{name}' is {len(scenarios)} scenarios, a plan is of one", hint=f"name one of {ids}"
            )
        _dump(lower(scenarios[0], plan, seed))
    elif as_json:
        _dump([scenario.normalised() for scenario in scenarios])
    else:
        print("\n\n".join(_shown(scenario) for scenario in scenarios))


def _shown(scenario: Scenario) -> str:
    return "\n".join(in_words(scenario))


def systems_command(name: str | None, as_json: bool) -> None:
    """The registry, or one of it with where its parameters are from."""
    known = {**SYSTEMS, **TRAFFIC}
    if name is not None and name not in known:
        near = nearest(name, known)
        raise ScenarioError(
            f"no system or traffic is called '{name}'; there are {', '.join(known)}",
            hint=f"did you mean '{near}'?" if near else None,
        )
    entries = [
        ("system" if one in SYSTEMS else "traffic", entry)
        for one, entry in known.items()
        if name in (None, one)
    ]
    if as_json:
        _dump(
            {
                "schema": "streamgauge.systems/1",
                "systems": [_system_json(key, entry) for key, entry in entries],
            }
        )
        return
    console = Console()
    for key, entry in entries:
        console.print(f"[b]{key}: {entry.name}[/b]  {entry.title}", highlight=False)
        for mode, what in entry.modes.items():
            whose = "ours" if mode in entry.ours else "third-party"
            console.print(f"  {mode}: {what} ({whose}; {_versions(entry, mode)})", highlight=False)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
        for width in (None, 20, None):
            table.add_column(no_wrap=width is None and not table.columns, overflow="fold", max_width=width)
        group = ""
        for parameter in sorted(entry.parameters.values(), key=lambda one: _GROUPS.index(one.group)):
            if parameter.group != group:
                group = parameter.group
                table.add_row(f"  [b]the {group}'s constants[/b]", "", "")
            default = "required" if parameter.required else parameter.default or parameter.usual or "-"
            said = escape(f"{parameter.help} ({_kind(parameter)})")
            if name is not None and parameter.source:
                said += f"\n[dim]from {escape(parameter.source)}[/dim]"
            table.add_row(f"  {parameter.name}", default, said)
        console.print(table)
    if name is not None:
        return
    console.print(
        "Any other system: give its commands, 'system: {server: CMD, player: CMD}' (docs/adapters.md)"
    )


def _versions(entry: System, mode: Mode) -> str:
    return ", ".join(f"{part} version {number}" for part, number in entry.versions(mode).items())


_GROUPS = ("", "server", "player")


def _kind(parameter: Parameter) -> str:
    if isinstance(parameter.kind, tuple):
        return " or ".join(parameter.kind)
    said = f"{parameter.kind.noun}, such as {parameter.kind.example}"
    return f"{said}; {parameter.bounds}" if parameter.bounds else said


def _system_json(key: str, entry: System) -> dict[str, Any]:
    return {
        "name": entry.name,
        "key": key,
        "title": entry.title,
        "modes": {
            mode: {"what": what, "ours": mode in entry.ours, "versions": entry.versions(mode)}
            for mode, what in entry.modes.items()
        },
        "plays_clip": entry.plays,
        "programs": [one.name for one in ADAPTERS[entry.name].programs] if "emu" in entry.modes else [],
        "parameters": {
            parameter.name: {
                "kind": list(parameter.kind) if isinstance(parameter.kind, tuple) else parameter.kind.noun,
                "default": parameter.default,
                "usual": parameter.usual,
                "group": parameter.group,
                "required": parameter.required,
                "least": parameter.least,
                "most": parameter.most,
                "above": parameter.above,
                "not_below": list(parameter.not_below),
                "not_above": list(parameter.not_above),
                "help": parameter.help,
                "source": parameter.source or None,
            }
            for parameter in entry.parameters.values()
        },
    }


def doctor_command(way: str | None, as_json: bool) -> int:
    """What this machine can do."""
    from streamgauge.campaign.machine import why_not
    from streamgauge.emu.doctor import examine, install_line

    findings = examine()
    install = install_line(findings)
    can = {mode: why_not(mode, way=way) for mode in ("sim", "emu")}
    if as_json:
        _dump(
            {
                "schema": "streamgauge.doctor/1",
                "modes": {mode: {"can": reason is None, "why": reason} for mode, reason in can.items()},
                "findings": [
                    {"id": f.id, "ok": f.ok, "what": f.what, "why": f.why, "remedy": f.remedy}
                    for f in findings
                ],
                "install": install,
            }
        )
    else:
        console = Console()
        for finding in findings:
            mark = "[green]ok[/green]     " if finding.ok else "[red]missing[/red]"
            console.print(f"{mark} {escape(finding.what)}", highlight=False, soft_wrap=True)
            if not finding.ok:
                console.print(f"        why: {escape(finding.why)}", highlight=False, soft_wrap=True)
                console.print(f"        remedy: {escape(finding.remedy)}", highlight=False, soft_wrap=True)
        for mode, reason in can.items():
            said = "can run here" if reason is None else f"cannot run here: {escape(reason)}"
            console.print(f"[b]{mode}[/b] {said}", highlight=False, soft_wrap=True)
        if install is not None:
            console.print("to install every program that is missing, as root:", highlight=False)
            console.print(f"    {escape(install)}", highlight=False, soft_wrap=True)
    return 0 if can["sim"] is None and can["emu"] is None else 4
