"""Which TCP a flow may ask for: what is wrong anywhere, and what only one mode has."""

from __future__ import annotations

from typing import Any, Protocol

from streamgauge.scenario.values import Problem
from streamgauge.systems.registry import Mode, ParameterValue, System
from streamgauge.systems.tcp import (
    HYSTARTS,
    LINUX_CONGESTION_CONTROLS,
    LINUX_DELAYED_ACK,
    SIM_CONGESTION_CONTROLS,
)
from streamgauge.units import Time

__all__ = ["FIXED", "tcp_problem", "tcp_unsupported"]

FIXED = "fixed"
"""The controller whose window is a parameter."""


class TcpFlow(Protocol):
    """What of a flow decides its TCP."""

    @property
    def registered(self) -> System | None:
        """Its system's entry in the registry; ``None`` for a system given as commands."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Those that were given."""

    @property
    def congestion_control(self) -> str | None:
        """The sender's, if one was named."""

    def parameter(self, name: str) -> ParameterValue | None:
        """A parameter's value, its default filled in."""


def tcp_problem(flow: TcpFlow) -> Problem | None:
    """What is wrong with the TCP of a flow in every mode."""
    entry = flow.registered
    if entry is None or "window" not in entry.parameters or not entry.over_tcp(flow.parameters):
        return None
    window = flow.parameters.get("window")
    if flow.congestion_control == FIXED and window is None:
        return Problem(
            ("parameters",),
            f"congestion control '{FIXED}' needs the parameter 'window', the window that it keeps",
            "add such as 'window: 16 KiB'",
        )
    if window is not None and flow.congestion_control != FIXED:
        return Problem(
            ("parameters", "window"),
            f"only congestion control '{FIXED}' keeps a window that is given",
            f"write 'congestion_control: {FIXED}', or 'receive_window' to limit another's",
        )
    return None


def tcp_unsupported(flow: TcpFlow, mode: Mode) -> str | None:
    """What of the TCP of a flow as it runs in ``mode`` nobody can do there: key, reason and remedy."""
    entry = flow.registered
    if entry is not None and not entry.over_tcp(flow.parameters):
        return None
    chosen = flow.congestion_control
    if mode == "sim":
        return None if entry is None else _sim_unsupported(flow)
    if chosen is not None and chosen not in LINUX_CONGESTION_CONTROLS:
        return (
            f"congestion_control: Linux has no {chosen}; run in sim, or name another for emu with "
            "'emu: {congestion_control: ...}'"
        )
    if entry is None:
        return None
    for key in ("hystart", "without", "delayed_ack"):
        if key not in entry.parameters or (value := flow.parameter(key)) is None:
            continue
        why, instead = "", ""
        if key == "hystart" and value != HYSTARTS[0]:
            why, instead = "Linux sets HyStart for the whole machine, not for a flow", HYSTARTS[0]
        elif key == "without" and value:
            why, instead = "no mechanism of Linux's TCP is switched for one flow", "[]"
        elif key == "delayed_ack" and value not in (Time("0 s"), Time(LINUX_DELAYED_ACK)):
            why, instead = (
                f"Linux lets an acknowledgement wait for {LINUX_DELAYED_ACK} or not at all",
                LINUX_DELAYED_ACK,
            )
        if why:
            remedy = f"run in sim, or give emu its own with 'emu: {{parameters: {{{key}: {instead}}}}}'"
            return f"parameters.{key}: {why}; {remedy}"
    return None


def _sim_unsupported(flow: TcpFlow) -> str | None:
    chosen = flow.congestion_control
    if chosen is not None and chosen not in SIM_CONGESTION_CONTROLS:
        return (
            f"congestion_control: sim has {', '.join(SIM_CONGESTION_CONTROLS)}, not {chosen}; run in emu, or "
            f"name another for sim with 'sim: {{congestion_control: {SIM_CONGESTION_CONTROLS[0]}}}'"
        )
    return None
