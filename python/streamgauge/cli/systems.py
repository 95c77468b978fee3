"""``systems``: names for flows, a line each, or one with its parameters."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.markup import escape

from streamgauge.cli.output import heads, say, table
from streamgauge.errors import ScenarioError
from streamgauge.scenario.values import nearest
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.machines import lacking_library, origin
from streamgauge.systems.registry import SYSTEMS, TCP_PARAMETERS, TRAFFIC, Mode, Parameter, System

__all__ = ["systems_command"]

_TCP = "tcp"
"""Name under which the parameters of TCP are shown: no system, but common to several."""
_LONGEST_DEFAULT = 14
"""A longer default follows the words; it is a list by preset or player."""


def systems_command(name: str | None, as_json: bool) -> None:
    """The registry, a line each, or one of it, or TCP, with its parameters and where they are from."""
    known = {**SYSTEMS, **TRAFFIC}
    if name is not None and name not in (*known, _TCP):
        near = nearest(name, [*known, _TCP])
        raise ScenarioError(
            f"no system or traffic is called '{name}'; there are {', '.join(known)}, and what several run "
            f"over: {_TCP}",
            hint=f"did you mean '{near}'?" if near else None,
        )
    if as_json:
        chosen = [_json(_key(one), entry) for one, entry in known.items() if name in (None, one)]
        data = {"schema": "streamgauge.systems/1", "systems": chosen if name != _TCP else [_tcp_json()]}
        json.dump(data, sys.stdout, indent=2, ensure_ascii=False)
        print()
    elif name is None:
        _list(list(known.values()))
    elif name == _TCP:
        _show_tcp()
    else:
        _show(known[name])


def _key(name: str) -> str:
    return "system" if name in SYSTEMS else "traffic"


def _list(entries: Sequence[System]) -> None:
    rows = [
        [entry.name, _key(entry.name), _whose(entry, "sim"), _whose(entry, "emu"), escape(entry.title)]
        for entry in entries
    ]
    table([heads("name", "kind", "sim", "emu", "title"), *rows], "llllc")
    if sys.stdout.isatty():
        # Not for awk.
        say()
        say(
            f"With parameters: 'streamgauge systems NAME'; TCP's, which {', '.join(_over_tcp())} share: "
            f"'streamgauge systems {_TCP}'. Any other system: give its commands, "
            "'system: {server: CMD, player: CMD}' (docs/adapters.md)."
        )


def _whose(entry: System, mode: Mode) -> str:
    """Returns the origin of the implementation in a mode; a dash if there is none."""
    if mode not in entry.modes:
        return "-"
    return origin(entry.name, ours=mode in entry.ours)


def _show(entry: System) -> None:
    say(f"[b]{_key(entry.name)}: {entry.name}[/b]  {escape(entry.title)}")
    for mode, what in entry.modes.items():
        say(f"  {mode}: {escape(what)} ({_whose(entry, mode)}; {_versions(entry, mode)})")
    if (lacking := lacking_library(entry.name)) is not None:
        say(f"  {escape(lacking)}")
    own = [one for one in entry.parameters.values() if not _is_tcps(one)]
    # Parameters of no part of it are first.
    for group in dict.fromkeys(["", *(parameter.group for parameter in own)]):
        mine = [parameter for parameter in own if parameter.group == group]
        if mine:
            say(f"  [b]the {group}'s constants[/b]" if group else "  [b]parameters[/b]")
            _show_parameters(mine)
    if len(own) < len(entry.parameters):
        over = " with transport tcp" if entry.tcp == "transport" else ""
        say(f"  and{over} those of TCP: 'streamgauge systems {_TCP}'")


def _show_tcp() -> None:
    say(f"[b]{_TCP}[/b]  Parameters of TCP, which flows over it have: those of {', '.join(_over_tcp())}")
    _show_parameters(TCP_PARAMETERS.values())
    say("  Which congestion control is no parameter but the flow's 'congestion_control' (docs/tcp.md).")


def _is_tcps(parameter: Parameter) -> bool:
    return TCP_PARAMETERS.get(parameter.name) == parameter


def _over_tcp() -> list[str]:
    return [
        name
        for name, entry in {**SYSTEMS, **TRAFFIC}.items()
        if any(_is_tcps(parameter) for parameter in entry.parameters.values())
    ]


def _show_parameters(parameters: Iterable[Parameter]) -> None:
    table([[one.name, *_told(one)] for one in parameters], "llw", indent=4)


def _told(parameter: Parameter) -> tuple[str, str]:
    """Returns a parameter's default, and its description."""
    default = "required" if parameter.required else parameter.default or parameter.usual or "-"
    said = f"{parameter.help} ({_kind(parameter)})"
    if len(default) > _LONGEST_DEFAULT:
        said, default = f"{said}. Default: {default}", "varies"
    source = f". [dim]Source: {escape(parameter.source)}[/dim]" if parameter.source else ""
    return escape(default), escape(said) + source


def _kind(parameter: Parameter) -> str:
    if isinstance(parameter.kind, tuple):
        return " or ".join(parameter.kind)
    said = f"{parameter.kind.noun}, such as {parameter.kind.example}"
    return f"{said}; {parameter.bounds}" if parameter.bounds else said


def _versions(entry: System, mode: Mode) -> str:
    return ", ".join(f"{part} version {number}" for part, number in entry.versions(mode).items())


def _json(key: str, entry: System) -> dict[str, Any]:
    return {
        "name": entry.name,
        "key": key,
        "title": entry.title,
        "modes": {
            mode: {"what": what, "ours": mode in entry.ours, "versions": entry.versions(mode)}
            for mode, what in entry.modes.items()
        },
        "plays_clip": entry.plays and entry.clips,
        "programs": [one.name for one in ADAPTERS[entry.name].programs] if "emu" in entry.modes else [],
        "parameters": _parameters_json(entry.parameters.values()),
    }


def _tcp_json() -> dict[str, Any]:
    return {
        "name": _TCP,
        "key": "shared",
        "title": "Parameters of TCP",
        "of": _over_tcp(),
        "parameters": _parameters_json(TCP_PARAMETERS.values()),
    }


def _parameters_json(parameters: Iterable[Parameter]) -> dict[str, Any]:
    return {
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
        for parameter in parameters
    }
