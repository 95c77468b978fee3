"""``list``, ``show`` and ``doctor``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from rich.markup import escape

from streamgauge.cli.output import heads, say, say_text, table
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, catalogue_ids, load, lower
from streamgauge.scenario.shipped import SUFFIXES
from streamgauge.scenario.words import in_words
from streamgauge.systems.registry import Mode

__all__ = ["doctor_command", "list_command", "show_command"]

MANY = 12
"""Most scenarios of a file that are listed one by one; more are a line."""


def _dump(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, ensure_ascii=False)
    print()


def list_command(pattern: str, as_json: bool) -> None:
    """Every scenario of the catalogue that matches."""
    # Mutants take most of the time. Those of shipped scenarios are known to be valid; a file's own need not
    # be.
    scenarios = load(pattern, mutants=pattern.endswith(SUFFIXES))
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
    rows = []
    for family in _families(scenarios) if pattern == "*" else [[scenario] for scenario in scenarios]:
        modes = " ".join(dict.fromkeys(mode for one in family for mode in one.supported_modes()))
        if len(family) > MANY:
            alike = takewhile(
                lambda letters: len(set(letters)) == 1, zip(*(one.id for one in family), strict=False)
            )
            glob = "".join(letters[0] for letters in alike) + "*"
            rows.append([escape(glob), modes, f"{len(family)} scenarios: streamgauge list '{escape(glob)}'"])
        else:
            rows += [[escape(one.id), " ".join(one.supported_modes()), escape(one.title)] for one in family]
    table([heads("id", "modes", "title"), *rows], "llw")


def _families(scenarios: Sequence[Scenario]) -> list[list[Scenario]]:
    """Returns those of one file together, in their order."""
    files = catalogue_ids()
    found: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        found.setdefault(str(files.get(scenario.id, scenario.id)), []).append(scenario)
    return list(found.values())


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
        say_text("\n\n".join("\n".join(in_words(scenario)) for scenario in scenarios))


def doctor_command(way: str | None, as_json: bool) -> int:
    """Prints the capabilities of this machine."""
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
        for finding in findings:
            mark = "[green]ok[/green]     " if finding.ok else "[red]missing[/red]"
            say(f"{mark} {escape(finding.what)}", hanging=8)
            if not finding.ok:
                say(f"        why: {escape(finding.why)}")
                say(f"        remedy: {escape(finding.remedy)}")
        for mode, reason in can.items():
            said = "can run here" if reason is None else f"cannot run here: {escape(reason)}"
            say(f"[b]{mode}[/b] {said}")
        if install is not None:
            say("to install every program that is missing, as root:")
            say(f"    {escape(install)}", hanging=4)
    return 0 if can["sim"] is None and can["emu"] is None else 4
