"""The TCP that a flow or a relay may ask for: faults in every mode, and limits of one mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from streamgauge.scenario.values import Problem
from streamgauge.systems.parameter import function_of
from streamgauge.systems.registry import Mode, Parameter, ParameterValue
from streamgauge.systems.tcp import (
    DEFAULT_CONGESTION_CONTROL,
    HYSTARTS,
    LINUX_CONGESTION_CONTROLS,
    LINUX_DELAYED_ACK,
    MARKS,
    SIM_CONGESTION_CONTROLS,
    bpf_object,
    kernel_congestion_controls,
)
from streamgauge.units import Time

__all__ = ["FIXED", "tcp_problem", "tcp_unsupported"]

FIXED = "fixed"
"""The controller with a window as its parameter."""


class TcpSystem(Protocol):
    """The parts of a system that decide which TCP may be asked for."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Returns those that may be given."""

    def over_tcp(self, parameters: dict[str, Any]) -> bool:
        """Returns whether it runs over TCP with these parameters."""


class TcpFlow(Protocol):
    """The parts of a flow, or of a relay, that decide its TCP."""

    @property
    def registered(self) -> TcpSystem | None:
        """Registered system of the flow; ``None`` for a system given as commands."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Returns those that were given."""

    @property
    def congestion_control(self) -> str | None:
        """Returns the sender's, if one was named."""

    @property
    def ecn(self) -> str | None:
        """Returns the ECN that is asked for: off, classic, l4s, or not given."""

    def parameter(self, name: str) -> ParameterValue | None:
        """Returns a parameter's value, its default filled in."""


def tcp_problem(flow: TcpFlow) -> Problem | None:
    """Returns the fault of the TCP of a flow or a relay in every mode."""
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
    """Returns the part of a flow's TCP that ``mode`` does not support: key, reason and remedy. A relay is the
    same in every mode, without stand-ins."""
    entry = flow.registered
    if entry is not None and not entry.over_tcp(flow.parameters):
        return None
    chosen = flow.congestion_control
    if mode == "sim":
        return None if entry is None else _sim_unsupported(flow, has_stand_ins)
    if flow.ecn == "l4s":
        return "ecn: Linux's TCP here sends no ECT(1); run in sim, or write 'emu: {ecn: classic}'"
    linux = (*LINUX_CONGESTION_CONTROLS, *kernel_congestion_controls())
    if chosen is not None and chosen not in linux and bpf_object(chosen) is None:
        chosen = "function of Python" if function_of(chosen) is not None else chosen
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


def _sim_unsupported(flow: TcpFlow, has_stand_ins: bool) -> str | None:
    chosen = flow.congestion_control
    marks = MARKS.get(chosen or DEFAULT_CONGESTION_CONTROL, "either")
    if marks == "counts" and flow.ecn != "l4s":
        return f"ecn: congestion control {chosen} counts marks in sim; write 'ecn: l4s'"
    if marks == "echo" and flow.ecn == "l4s":
        who = chosen or DEFAULT_CONGESTION_CONTROL
        counting = " or ".join(name for name, kind in MARKS.items() if kind == "counts")
        return (
            f"ecn: l4s needs a congestion control that counts marks, not {who}; give {counting}, or your own"
        )
    if chosen is None or chosen in SIM_CONGESTION_CONTROLS or function_of(chosen) is not None:
        return None
    another = f"name another for sim with 'sim: {{congestion_control: {SIM_CONGESTION_CONTROLS[0]}}}'"
    remedy = f"run in emu, or {another if has_stand_ins else 'choose another'}"
    if bpf_object(chosen) is not None:
        return f"congestion_control: sim runs no BPF object, and {chosen} is one; {remedy}"
    return f"congestion_control: sim has {', '.join(SIM_CONGESTION_CONTROLS)}, not {chosen}; {remedy}"
