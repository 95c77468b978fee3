"""What TCP is called: congestion controls and mechanisms of the simulated TCP and of Linux."""

from __future__ import annotations

from streamgauge import _native

__all__ = [
    "CONGESTION_CONTROLS",
    "HYSTARTS",
    "LINUX_CONGESTION_CONTROLS",
    "LINUX_DELAYED_ACK",
    "MECHANISMS",
    "SIM_CONGESTION_CONTROLS",
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
#: How the simulated CUBIC may leave slow start; the first is Linux's.
HYSTARTS = _native.HYSTARTS
#: What can be switched off in the simulated TCP.
MECHANISMS = _native.TCP_MECHANISMS
#: How long Linux lets an acknowledgement wait (``TCP_DELACK_MIN``).
LINUX_DELAYED_ACK = "40 ms"
