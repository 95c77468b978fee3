"""What TCP is called: congestion controls and mechanisms of the simulated TCP and of Linux."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge import _native

__all__ = [
    "CONGESTION_CONTROLS",
    "DEFAULT_CONGESTION_CONTROL",
    "HYSTARTS",
    "LINUX_CONGESTION_CONTROLS",
    "LINUX_DELAYED_ACK",
    "MECHANISMS",
    "SIM_CONGESTION_CONTROLS",
    "planned_tcp",
]

#: Those that the simulated TCP has.
SIM_CONGESTION_CONTROLS = _native.CONGESTION_CONTROLS
#: Those that Linux has as parts or modules; a machine may lack some.
LINUX_CONGESTION_CONTROLS = (
    "reno",
    "cubic",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
#: Every congestion control that a flow may ask for, by its Linux name if Linux has it.
CONGESTION_CONTROLS = (
    *SIM_CONGESTION_CONTROLS,
    *(name for name in LINUX_CONGESTION_CONTROLS if name not in SIM_CONGESTION_CONTROLS),
)
#: For every connection whose flow does not choose: Linux's default, whatever a machine's is.
DEFAULT_CONGESTION_CONTROL = _native.DEFAULT_CONGESTION_CONTROL
#: How the simulated CUBIC may leave slow start; the first is Linux's.
HYSTARTS = _native.HYSTARTS
#: What can be switched off in the simulated TCP.
MECHANISMS = _native.TCP_MECHANISMS
#: How long Linux lets an acknowledgement wait (``TCP_DELACK_MIN``).
LINUX_DELAYED_ACK = "40 ms"


def planned_tcp(flow: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the TCP connections of a flow use, by its entry in the plan; None for a flow that has none.

    ``congestion_control`` and ``ecn``, and of a machine of ours all of its settings of TCP
    (crates/plan/src/tcp.rs).
    """
    app = flow["app"]
    said: Mapping[str, Any] | None
    if isinstance(app, str):
        said = flow.get("tcp")
    else:
        (settings,) = app.values()
        said = settings.get("tcp")
    return said
