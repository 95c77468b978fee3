"""What can run on a flow: systems (server and player) and traffic, with their parameters and modes.

A scenario is checked against this table before anything starts, and ``streamgauge systems`` prints it.
"""

from __future__ import annotations

from streamgauge.systems import bulk, cbr, nginx_http, ping, rtsp
from streamgauge.systems.adapter import ACTIONS, Action
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.parameter import Parameter, ParameterValue, Several, Windows
from streamgauge.systems.system import Mode, System, of_machine

__all__ = [
    "ACTIONS",
    "SYSTEMS",
    "TRAFFIC",
    "Action",
    "Mode",
    "Parameter",
    "ParameterValue",
    "Several",
    "System",
    "Windows",
]

#: Those that Python knows something of: somebody else's programs, in one mode or in both.
_DESCRIBED_HERE = (
    rtsp.SYSTEM,
    nginx_http.SYSTEM,
    bulk.SYSTEM,
    cbr.SYSTEM,
    ping.SYSTEM,
)
_ALL = {system.name: system for system in _DESCRIBED_HERE}
# The others have all that there is to know from their machines.
_ALL |= {name: of_machine(name) for name in MACHINES if name not in _ALL}

#: Streaming systems by name.
SYSTEMS: dict[str, System] = {name: system for name, system in _ALL.items() if system.plays}

#: Kinds of traffic by name.
TRAFFIC: dict[str, System] = {name: system for name, system in _ALL.items() if not system.plays}
