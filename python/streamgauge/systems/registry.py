"""Systems (server and player) and traffic for flows, with their parameters and modes.

A scenario is checked against this table before anything starts, and ``streamgauge systems`` prints it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from streamgauge import installed
from streamgauge.installed import JoinedTable
from streamgauge.systems import (
    bulk,
    cbr,
    nginx_dash,
    nginx_http,
    ping,
    rist_librist,
    rtsp,
    srt_libsrt,
    webrtc_chromium,
)
from streamgauge.systems.adapter import ACTIONS, Action
from streamgauge.systems.machines import MACHINES, Facts, facts
from streamgauge.systems.parameter import Parameter, ParameterValue, Quantiles, Several, Windows
from streamgauge.systems.system import Mode, System, of_machine

__all__ = [
    "ACTIONS",
    "ADAPTIVE",
    "ADAPTIVE_ELSEWHERE",
    "CONSTANT_RATE",
    "GREEDY_TCP",
    "SYSTEMS",
    "TCP_PARAMETERS",
    "TRAFFIC",
    "Action",
    "Mode",
    "Parameter",
    "ParameterValue",
    "Quantiles",
    "Several",
    "System",
    "Windows",
]

#: Systems that are described in Python: third-party programs, in one mode or in both.
_DESCRIBED_HERE = (
    rtsp.SYSTEM,
    nginx_http.SYSTEM,
    nginx_dash.SYSTEM,
    srt_libsrt.SYSTEM,
    rist_librist.SYSTEM,
    webrtc_chromium.SYSTEM,
    bulk.SYSTEM,
    cbr.SYSTEM,
    ping.SYSTEM,
)
_ALL = {system.name: system for system in _DESCRIBED_HERE}
# The others are described by their machines alone.
_ALL |= {name: of_machine(name) for name in MACHINES if name not in _ALL}


def _read(_: str, found: Any) -> Mapping[str, System]:
    """Returns the systems of an entry point: one, or several."""
    several = list(found) if isinstance(found, Iterable) else [found]
    for one in several:
        if not isinstance(one, System):
            raise ValueError(f"{one!r} is no streamgauge.systems.system.System")
        if one.ours or set(one.modes) != {"emu"}:
            raise ValueError(f"system '{one.name}': a package's system runs in emu, by programs of others")
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", one.name):
            raise ValueError(f"'{one.name}' is no name of a system: use a-z, 0-9, _ and -")
    return {one.name: one for one in several}


#: Streaming systems by name: our own, and those of other installed packages.
SYSTEMS: JoinedTable[System] = JoinedTable(installed.SYSTEMS, lambda: _ALL, _read, lambda one: one.plays)

_PLAYS = {name: system for name, system in _ALL.items() if system.plays}
_OVER_TCP = [one.parameters for name, one in _PLAYS.items() if one.tcp != "never" and name in MACHINES]

#: Our own system with a player that chooses among the levels of a ladder, and that of third-party players.
ADAPTIVE, ADAPTIVE_ELSEWHERE = (
    next(name for name, system in _PLAYS.items() if system.ladders and (name in MACHINES) == is_ours)
    for is_ours in (True, False)
)

#: Kinds of traffic by name, likewise.
TRAFFIC: JoinedTable[System] = JoinedTable(installed.SYSTEMS, lambda: _ALL, _read, lambda one: not one.plays)

#: Parameters of TCP itself: common to all of our streaming systems that may run over TCP, by name.
TCP_PARAMETERS: dict[str, Parameter] = {
    name: parameter
    for name, parameter in next(iter(_OVER_TCP)).items()
    if all(other.get(name) == parameter for other in _OVER_TCP)
}


def _traffic(holds: Callable[[Facts], bool]) -> str:
    """Returns the first kind of traffic with a machine for which that holds with its usual settings."""
    told = (
        (name, facts({name: MACHINES[name].usual}))
        for name, one in _ALL.items()
        if not one.plays and name in MACHINES
    )
    return next(name for name, one in told if one is not None and holds(one))


#: The traffic that fills a TCP connection without end, according to its machine.
GREEDY_TCP = _traffic(lambda one: one.media_over == "tcp" and one.wanted_ip_bps is None and not one.is_finite)
#: The traffic that sends by a clock, whatever becomes of it.
CONSTANT_RATE = _traffic(lambda one: one.pace is not None)
