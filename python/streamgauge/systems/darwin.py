"""Constants of Darwin's server and players as parameters.

Which there are and what they are is told by the machines themselves, so that no table here can differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamgauge import _native
from streamgauge.systems.parameter import NONE, Kind, Maybe, Number, Parameter, ParameterValue
from streamgauge.units import Percent, Quantity, Rate, Size, Time

__all__ = ["CONSTANTS", "PLAYERS", "PRESETS", "settings"]

Json = dict[str, Any]

#: Sets of the server's constants; the first is the default.
PRESETS: tuple[str, ...] = _native.DARWIN_PRESETS
#: Sets of the player's constants; the first is the default.
PLAYERS: tuple[str, ...] = _native.DARWIN_PLAYERS

_SERVERS: dict[str, Json] = {name: json.loads(_native.darwin_server_settings(name)) for name in PRESETS}
_PLAYERS: dict[str, Json] = {name: json.loads(_native.darwin_player_settings(name)) for name in PLAYERS}
_ELSEWHERE = ("kind", "transport")
"""What the parameters ``player`` and ``transport`` say."""

_QUANTITIES: dict[str, type[Quantity]] = {"size": Size, "rate": Rate, "percent": Percent, "time": Time}
_SWITCH = ("on", "off")


def _kind(said: Any) -> Kind:
    if isinstance(said, Mapping):
        return tuple(said["words"])
    if said == "switch":
        return _SWITCH
    if said in ("count", "number"):
        return Number(whole=said == "count")
    return _QUANTITIES[said]


def _in_words(value: Any, kind: Kind) -> str:
    """A value of the plan as a scenario writes it."""
    if value is None:
        return NONE
    if kind == _SWITCH:
        return "on" if value else "off"
    return str(kind.of(value)) if isinstance(kind, type) and issubclass(kind, Quantity) else str(value)


def _in_plan(value: ParameterValue) -> Any:
    """A scenario's value as the plan has it."""
    if isinstance(value, Quantity):
        return int(value.amount)
    return {"on": True, "off": False, NONE: None}.get(value, value) if isinstance(value, str) else value


def _constants() -> tuple[Parameter, ...]:
    found: dict[str, Parameter] = {}
    fields = json.loads(_native.darwin_fields())
    for group, sets in (("server", _SERVERS), ("player", _PLAYERS)):
        for field in fields[group]:
            name, kind = field["name"], _kind(field["kind"])
            if name in _ELSEWHERE:
                continue
            values = {owner: _in_words(values[name], kind) for owner, values in sets.items()}
            usual = "; ".join(f"{owner}: {value}" for owner, value in values.items())
            if len(set(values.values())) == 1:
                usual = next(iter(values.values()))
            made = Parameter(
                name=name,
                kind=Maybe(kind) if field["optional"] else kind,
                default=None,
                help=field["help"].rstrip("."),
                whole=kind is Percent,
                group=group,
                usual=usual,
            )
            if (other := found.get(name)) is not None:
                # One name for both ends sets both.
                made = replace(
                    other, help=f"{other.help}. {made.help}", usual=f"{other.usual}; {group}: {usual}"
                )
            found[name] = made
    return tuple(found.values())


#: Every constant that a flow may set.
CONSTANTS: tuple[Parameter, ...] = _constants()


def settings(preset: str, player: str, given: Mapping[str, ParameterValue]) -> tuple[Json, Json]:
    """Server's and player's constants in full, as a plan holds them: a preset's, and those given in their
    place."""
    server, client = dict(_SERVERS[preset]), dict(_PLAYERS[player])
    for name, value in given.items():
        for constants in (server, client):
            if name in constants and name not in _ELSEWHERE:
                constants[name] = _in_plan(value)
    return server, client
