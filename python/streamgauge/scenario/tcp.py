"""Which TCP a flow or a relay may ask for: what is wrong anywhere, and what only one mode has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from streamgauge.scenario.values import Problem
from streamgauge.systems.registry import Mode, Parameter, ParameterValue
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


class TcpSystem(Protocol):
    """What of a system decides which TCP may be asked for."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Those that may be given."""

    def over_tcp(self, parameters: dict[str, Any]) -> bool:
        """Whether it runs over TCP with these parameters."""


class TcpFlow(Protocol):
    """What of a flow, or of a relay, decides its TCP."""

    @property
    def registered(self) -> TcpSystem | None:
        """What is known of its system; ``None`` for a system given as commands."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Those that were given."""

    @property
    def congestion_control(self) -> str | None:
        """The sender's, if one was named."""

    def parameter(self, name: str) -> ParameterValue | None:
        """A parameter's value, its default filled in."""


def tcp_problem(flow: TcpFlow) -> Problem | None:
    """What is wrong with the TCP of a flow or a relay in every mode."""
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


def tcp_unsupported(flow: TcpFlow, mode: Mode, *, has_stand_ins: bool = True) -> str | None:
    """What of the TCP of a flow as it runs in ``mode`` nobody can do there: key, reason and remedy. A relay
    is the same in every mode, without stand-ins."""
    entry = flow.registered
    if entry is not None and not entry.over_tcp(flow.parameters):
        return None
    chosen = flow.congestion_control
    if mode == "sim":
        return None if entry is None else _sim_unsupported(chosen, has_stand_ins)
    if chosen is not None and chosen not in LINUX_CONGESTION_CONTROLS:
        another = "name another for emu with 'emu: {congestion_control: ...}'"
        remedy = f"run in sim, or {another if has_stand_ins else 'choose another'}"
        return f"congestion_control: Linux has no {chosen}; {remedy}"
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
            own = f"give emu its own with 'emu: {{parameters: {{{key}: {instead}}}}}'"
            remedy = own if has_stand_ins else f"write '{key}: {instead}'"
            return f"parameters.{key}: {why}; run in sim, or {remedy}"
    return None


def _sim_unsupported(chosen: str | None, has_stand_ins: bool) -> str | None:
    if chosen is None or chosen in SIM_CONGESTION_CONTROLS:
        return None
    another = f"name another for sim with 'sim: {{congestion_control: {SIM_CONGESTION_CONTROLS[0]}}}'"
    remedy = f"run in emu, or {another if has_stand_ins else 'choose another'}"
    return f"congestion_control: sim has {', '.join(SIM_CONGESTION_CONTROLS)}, not {chosen}; {remedy}"
