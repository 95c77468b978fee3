"""Relays: machines that several flows share at one side of the bottleneck."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_serializer, model_validator

from streamgauge.scenario.flow import Congestion, EcnWord, Flow, plain, typed_parameters
from streamgauge.scenario.tcp import tcp_problem
from streamgauge.scenario.values import FLOW_NAME, Model, Problem, issue, nearest
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.machines import MACHINES, RELAYS, Machine, facts, relay_protocols
from streamgauge.systems.parameter import function_of
from streamgauge.systems.registry import Mode, ParameterValue
from streamgauge.systems.tcp import bpf_object, planned_ecn

__all__ = ["Relay", "relay_problems", "via_unsupported"]


def _known(name: Any) -> Any:
    if name in RELAYS:
        return name
    close = nearest(str(name), RELAYS)
    raise issue(
        f"unknown relay '{name}'; expected one of {', '.join(RELAYS)}",
        hint=f"did you mean '{close}'?" if close else None,
    )


class Relay(Model):
    """A machine that flows go through: those that name it by ``via``."""

    system: Annotated[str, BeforeValidator(_known), Field(json_schema_extra={"enum": list(RELAYS)})]
    """Kind of relay."""
    at: Literal["client", "server"]
    """The side of the path that it is at: its players', or its servers'."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Its settings; ``streamgauge systems NAME`` lists them."""
    congestion_control: Congestion | None = None
    """Congestion control of its own connections; cubic if left out."""
    ecn: EcnWord | None = None
    """The ECN that its connections ask for. Off if left out."""

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("parameters", {}), dict):
            return data
        if (machine := RELAYS.get(str(data.get("system")))) is None:
            return data  # the field's own validator refuses the name
        return {**data, "parameters": typed_parameters(data.get("parameters", {}), machine)}

    @model_validator(mode="after")
    def _sound(self) -> Relay:
        if not self.registered.over_tcp(self.parameters):
            for key, value, what in (
                ("congestion_control", self.congestion_control, "has no congestion control to choose"),
                ("ecn", self.ecn, "negotiates no ECN"),
            ):
                if value is not None:
                    raise issue(
                        f"'{self.system}' does not run over TCP here, so it {what}",
                        key,
                        "leave it out, or give 'parameters: {transport: tcp}'",
                    )
        if function_of(self.congestion_control) is not None or bpf_object(self.congestion_control):
            raise issue(
                "a program of your own controls congestion for flows alone",
                "congestion_control",
                "name one that sim or Linux has",
            )
        if (problem := tcp_problem(self)) is not None:
            raise issue(problem.why, problem.path, problem.hint)
        if (excess := self.registered.excess(self.parameters)) is not None:
            raise issue(excess.why, ("parameters", excess.name), excess.hint)
        return self

    @property
    def registered(self) -> Machine:
        """Returns its machine."""
        return RELAYS[self.system]

    def parameter(self, name: str) -> ParameterValue | None:
        """Returns the value of a parameter, its default filled in."""
        return self.registered.value(self.parameters, name)

    @property
    def speaks(self) -> Mapping[str, tuple[str, ...]]:
        """Returns the protocols that flows through it must speak, by ``tcp`` and ``udp``."""
        return relay_protocols({self.system: self.settings()})

    @property
    def version(self) -> int:
        """Version of its machine."""
        return RELAYS[self.system].version

    def settings(self) -> dict[str, Any]:
        """Returns its settings in full, as a plan has them."""
        settings = RELAYS[self.system].settings(self.parameters)
        if settings["tcp"] is not None:
            settings["tcp"] |= {
                "congestion_control": self.congestion_control or settings["tcp"]["congestion_control"],
                **planned_ecn(self.ecn),
            }
        return settings

    @field_serializer("parameters", when_used="json")
    def _parameters_as_text(self, value: dict[str, Any]) -> dict[str, Any]:
        return {key: plain(part) for key, part in value.items()}


def relay_problems(flows: Mapping[str, Flow], relays: Mapping[str, Relay]) -> Iterator[Problem]:
    """Yields the faults of relays and of the flows that name them."""
    for name in relays:
        if not FLOW_NAME.fullmatch(name):
            why = f"{name!r} is not a relay's name; expected a letter, then letters, digits or _, 100 at most"
            yield Problem(("relays", name), why)
        elif name in flows:
            yield Problem(("relays", name), f"a flow is called '{name}' too; choose another name")
        elif not any(flow.via == name for flow in flows.values()):
            yield Problem(
                ("relays", name),
                f"no flow passes '{name}'",
                f"add 'via: {name}' to one, or remove the relay",
            )
    first: dict[str, str] = {}
    for name, flow in flows.items():
        if flow.via is None:
            continue
        yield from _via_problems(name, flow, relays)
        # A stored object of one ladder would be taken for another's: all have the same names.
        if (machine := MACHINES.get(str(flow.system))) is not None and machine.content == "ladder":
            other = first.setdefault(flow.via, name)
            if flow.clip != flows[other].clip:
                yield Problem(
                    ("flows", name, "clip"),
                    f"'{name}' and '{other}' have different ladders and share the relay '{flow.via}', which "
                    "knows them by the same names",
                    "give both the same clip, or each a relay",
                )


def _via_problems(name: str, flow: Flow, relays: Mapping[str, Relay]) -> Iterator[Problem]:
    where = ("flows", name, "via")
    relay = relays.get(str(flow.via))
    if relay is None:
        close = nearest(str(flow.via), relays)
        there = f"the relays are {', '.join(relays)}" if relays else "the scenario has no 'relays'"
        yield Problem(
            where, f"there is no relay '{flow.via}'; {there}", f"did you mean '{close}'?" if close else None
        )
        return
    if flow.entry == "router":
        yield Problem(where, "a flow that enters at the router passes no relay", "leave 'from' or 'via' out")
        return
    if flow.direction == "up":
        yield Problem(
            where, "a flow with upstream media passes no relay", "leave 'direction: up' or 'via' out"
        )
        return
    # `via_unsupported` checks the replacement in emu.
    played = flow.in_mode("sim")
    if (misfit := _misfit(played, str(flow.via), relay)) is not None:
        yield Problem(where, *misfit)
    else:
        port, its = _face_port(played), relay.settings().get("face_port")
        if None not in (port, its) and port != its:
            yield Problem(
                where,
                f"'{flow.via}' has its faces at port {its}, and '{name}' looks for them at {port}",
                f"give the relay 'parameters: {{face_port: {port}}}'",
            )


def _face_port(flow: Flow) -> int | None:
    """Returns where a flow looks for its neighbour; None of one that has no faces."""
    entry = flow.registered
    if entry is None or entry.name not in MACHINES:
        return None
    port: int | None = MACHINES[entry.name].settings(flow.parameters).get("network", {}).get("face_port")
    return port


def via_unsupported(flow: Flow, relays: Mapping[str, Relay], mode: Mode) -> str | None:
    """Returns why a flow, as it is in ``mode``, cannot go through its relay there, by the key below the flow;
    ``None`` if it can, or has none."""
    relay = relays.get(str(flow.via))
    if relay is None:
        return None
    entry = flow.registered
    if (misfit := _misfit(flow, str(flow.via), relay, mode)) is not None:
        return f"via: {'; '.join(misfit)}"
    if mode == "emu" and (entry is None or not entry.written_by_us(mode, flow.parameters)):
        return (
            f"via: in emu our own servers and players alone go through a relay, and '{_played(flow)}' is "
            "somebody else's; leave 'via' out, or name one of ours for emu"
        )
    return None


def _played(flow: Flow) -> str:
    return flow.system if isinstance(flow.system, str) else flow.traffic or "a command"


def _misfit(flow: Flow, via: str, relay: Relay, mode: Mode | None = None) -> tuple[str, str] | None:
    """Returns why a flow, as it is in `mode` if one is given, cannot use its relay, and a remedy; None if the
    two speak the same."""
    ((over, protocols),) = relay.speaks.items()
    spoken = _spoken(flow)
    if set(protocols) & set(spoken.get(over, ())):
        return None
    who = f"'{_played(flow)}'" if mode is None else f"'{_played(flow)}', which plays in {mode},"
    why, hint = f"'{via}' is a relay of {protocols[0]}", "leave 'via' out, or choose a system that does"
    other = next((one for one, named in spoken.items() if set(protocols) & set(named)), None)
    if other is None:
        return (
            f"{why}, which {who} does not speak" if mode is None else f"{why}, and {who} does not speak it",
            hint,
        )
    # Each of the two may have the other's.
    entry = flow.registered
    remedies = [
        f"{whose} 'parameters: {{transport: {to}}}'"
        for whose, known, to in (
            ("the flow", {} if entry is None else entry.parameters, over),
            (f"'{via}'", relay.registered.parameters, other),
        )
        if "transport" in known and to in known["transport"].words
    ]
    return (
        f"{why} over {over.upper()}, and {who} speaks it over {other.upper()}",
        f"give {' or '.join(remedies)}" if remedies else hint,
    )


def _spoken(flow: Flow) -> Mapping[str, tuple[str, ...]]:
    """Returns the protocols of a flow, by ``tcp`` and ``udp``."""
    entry = flow.registered
    if entry is not None and entry.name in MACHINES:
        told = facts({entry.name: MACHINES[entry.name].settings(flow.parameters)})
        assert told is not None
        return told.protocols
    external = ADAPTERS[entry.name if entry is not None else "command"].external
    return {} if external is None else {str(over): named for over, named in external.protocols.items()}
