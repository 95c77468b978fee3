"""Systems (server and player) and traffic for flows, with their parameters and modes.

A scenario is checked against this table before anything starts, and ``streamgauge systems`` prints it.
"""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.systems import bulk, cbr, nginx_dash, nginx_http, ping, rtsp
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
    bulk.SYSTEM,
    cbr.SYSTEM,
    ping.SYSTEM,
)
_ALL = {system.name: system for system in _DESCRIBED_HERE}
# The others are described by their machines alone.
_ALL |= {name: of_machine(name) for name in MACHINES if name not in _ALL}

#: Streaming systems by name.
SYSTEMS: dict[str, System] = {name: system for name, system in _ALL.items() if system.plays}

_OVER_TCP = [one.parameters for name, one in SYSTEMS.items() if one.tcp != "never" and name in MACHINES]

#: Our own system with a player that chooses among the levels of a ladder, and that of third-party players.
ADAPTIVE, ADAPTIVE_ELSEWHERE = (
    next(name for name, system in SYSTEMS.items() if system.ladders and (name in MACHINES) == is_ours)
    for is_ours in (True, False)
)

#: Kinds of traffic by name.
TRAFFIC: dict[str, System] = {name: system for name, system in _ALL.items() if not system.plays}

#: Parameters of TCP itself: common to all of our streaming systems that may run over TCP, by name.
TCP_PARAMETERS: dict[str, Parameter] = {
    name: parameter
    for name, parameter in next(iter(_OVER_TCP)).items()
    if all(other.get(name) == parameter for other in _OVER_TCP)
}


def _traffic(holds: Callable[[Facts], bool]) -> str:
    """Returns the first kind of traffic with a machine for which that holds with its usual settings."""
    told = ((name, facts({name: MACHINES[name].usual})) for name in TRAFFIC if name in MACHINES)
    return next(name for name, one in told if one is not None and holds(one))


#: The traffic that fills a TCP connection without end, according to its machine.
GREEDY_TCP = _traffic(lambda one: one.media_over == "tcp" and one.wanted_ip_bps is None and not one.is_finite)
#: The traffic that sends by a clock, whatever becomes of it.
CONSTANT_RATE = _traffic(lambda one: one.pace is not None)
