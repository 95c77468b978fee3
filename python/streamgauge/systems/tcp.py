"""Names in TCP: congestion controls and mechanisms of the simulated TCP and of Linux."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge import _native

__all__ = [
    "CONGESTION_CONTROLS",
    "DEFAULT_CONGESTION_CONTROL",
    "HYSTARTS",
    "LINUX_CONGESTION_CONTROLS",
    "LINUX_DELAYED_ACK",
    "MARKS",
    "MECHANISMS",
    "SIM_CONGESTION_CONTROLS",
    "bpf_object",
    "kernel_congestion_controls",
    "planned_ecn",
    "planned_tcp",
]

#: Those that the simulated TCP has.
SIM_CONGESTION_CONTROLS = _native.CONGESTION_CONTROLS
#: The feedback of congestion marks that each of them can work with: "echo" (RFC 3168), "counts" (RFC 9768) or
#: "either".
MARKS: Mapping[str, str] = dict(_native.CONTROL_MARKS)
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
#: For every connection of a flow that does not choose: Linux's default, independent of the machine's.
DEFAULT_CONGESTION_CONTROL = _native.DEFAULT_CONGESTION_CONTROL
#: How the simulated CUBIC may leave slow start; the first is Linux's.
HYSTARTS = _native.HYSTARTS
#: Mechanisms that can be switched off in the simulated TCP.
MECHANISMS = _native.TCP_MECHANISMS
#: How long Linux lets an acknowledgement wait (``TCP_DELACK_MIN``).
LINUX_DELAYED_ACK = "40 ms"


def bpf_object(value: object) -> str | None:
    """Returns the file of a congestion control that is a BPF object (struct_ops); None of every other
    value."""
    return value if isinstance(value, str) and value.endswith(".o") else None


def kernel_congestion_controls() -> list[str]:
    """Returns the congestion controls that this machine's kernel has loaded; empty where it lists none."""
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return file.read_text(encoding="ascii").split() if file.exists() else []


def planned_ecn(word: str | None) -> dict[str, bool]:
    """Returns the switches of a plan's TCP settings for a flow's ``ecn``: off, classic, l4s or not given."""
    return {"ecn": word in ("classic", "l4s"), "l4s": word == "l4s"}


def planned_tcp(flow: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the TCP settings of a flow's connections, by its entry in the plan; None for a flow without
    any.

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
