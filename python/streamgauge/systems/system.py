"""A system for all its users: its description, and its adapter in emu.

A system with a machine of ours (crates/systems) is described by that (`of_machine`); one of third-party
programs is described beside its adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from streamgauge.systems.adapter import ACTIONS, Action, Adapter
from streamgauge.systems.machines import MACHINES, Excess, is_on_tcp
from streamgauge.systems.node import NodeAdapter
from streamgauge.systems.parameter import Parameter, ParameterValue

__all__ = ["Mode", "System", "of_machine"]

Mode = Literal["sim", "emu"]


_RATES_ALONE = ("windows_media",)


def is_rate_only(system: str) -> bool:
    """Returns whether the server of that machine reports its sending rate, and never its place in the
    media."""
    return system in _RATES_ALONE


@dataclass(frozen=True, kw_only=True)
class System:
    """A streaming technology (server and player) or a kind of traffic."""

    name: str
    title: str
    #: Implementation in each mode: our own machine, or the third-party programs named here.
    modes: dict[Mode, str]
    #: Modes in which both ends are ours; results state it.
    ours: frozenset[Mode]
    #: A player shows something.
    plays: bool
    #: That is a clip, which the flow must name; else its sender makes it.
    clips: bool = True
    #: The clip may be a ladder.
    ladders: bool = False
    parameters: dict[str, Parameter]
    #: Runs over TCP: always, never, or if the parameter ``transport`` is ``tcp``.
    tcp: Literal["always", "never", "transport"] = "never"
    #: A flow of it may be many short transfers that arrive at random.
    arrivals: bool = False
    #: The first of these parameters that does not go with another, of a system without a machine.
    unfit: Callable[[Mapping[str, ParameterValue | None]], Excess | None] | None = None
    #: Parameters by which a machine of ours that replaces it behaves as its programs do, by that machine's
    #: name, for a flow with these values of its own. The scenario's own settings of its stand-in override
    #: them.
    stood_in_by: Mapping[str, Callable[[Mapping[str, ParameterValue | None]], Mapping[str, str]]] = field(
        default_factory=dict
    )
    #: A scenario of the catalogue whose subject it is: a comparison of other systems adds it by this one, if
    #: asked for by name.
    added_by: str | None = None
    #: Starts and reads it in emu.
    adapter: Adapter

    def written_by_us(
        self, mode: Mode, parameters: Mapping[str, ParameterValue], *, arrivals: bool = False
    ) -> bool:
        """Returns whether both ends are our own programs in a flow with these parameters; results state
        it."""
        return self._adapter(arrivals).ours(self.values(parameters)) if mode == "emu" else mode in self.ours

    def actions(
        self, mode: Mode, parameters: dict[str, ParameterValue], *, arrivals: bool = False
    ) -> tuple[Action, ...]:
        """Returns the actions of a scenario on a flow with these parameters while it runs."""
        return self._adapter(arrivals).actions(self.values(parameters)) if mode == "emu" else ACTIONS

    def _adapter(self, arrivals: bool) -> Adapter:
        return (self.adapter.of_arrivals or self.adapter) if arrivals else self.adapter

    def versions(
        self,
        mode: Mode,
        parameters: Mapping[str, ParameterValue] | None = None,
        *,
        arrivals: bool = False,
    ) -> dict[str, int]:
        """Returns the versions of its parts in a flow with these parameters: its ``machine``
        (crates/systems), and in emu its ``adapter``, or ``node`` where our machine on real sockets runs in
        place of that.

        A trial is up to date only if none of them has changed.
        """
        machine = MACHINES.get(self.name)
        found = {} if machine is None else {"machine": machine.version}
        if mode != "emu":
            return found
        adapter = self._adapter(arrivals)
        if not isinstance(adapter, NodeAdapter) and self.written_by_us(
            mode, parameters or {}, arrivals=arrivals
        ):
            adapter = NodeAdapter()
        return found | {"adapter" if adapter is self.adapter else "node": adapter.version}

    def over_tcp(self, parameters: dict[str, ParameterValue]) -> bool:
        """Returns whether a flow with these parameters has a congestion control to choose."""
        if self.tcp != "transport":
            return self.tcp == "always"
        return is_on_tcp(parameters.get("transport", self.parameters["transport"].default))

    def excess(self, parameters: Mapping[str, ParameterValue], blamed: Collection[str] = ()) -> Excess | None:
        """Returns the first of these parameters that exceeds another one, according to its machine, or
        conflicts with it; None if there is none. Names one of `blamed` of the two."""
        machine = MACHINES.get(self.name)
        if machine is None:
            return None if self.unfit is None else self.unfit(self.values(parameters))
        return machine.excess(parameters, blamed)

    def values(self, parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue | None]:
        """Returns the values of all parameters, defaults filled in."""
        return {name: self.value(parameters, name) for name in self.parameters}

    def value(self, parameters: Mapping[str, ParameterValue], name: str) -> ParameterValue | None:
        """Returns the value of a parameter, its default filled in."""
        if name in parameters:
            return parameters[name]
        default = self.parameters[name].default
        return None if default is None else self.parameters[name].parse(default)


def of_machine(
    name: str,
    *,
    sim: str = "our server and player",
    emu: str = "our server and player on real sockets",
    adapter: Adapter | None = None,
) -> System:
    """Returns a system that has a machine of ours, as that describes itself.

    Args:
        name: the machine's.
        sim: its implementation in sim, in words.
        emu: its implementation in emu, in words.
        adapter: its adapter in emu; the same machine on real sockets if left out.
    """
    machine = MACHINES[name]
    adapter = adapter or NodeAdapter()
    ours: set[Mode] = {"sim", "emu"} if isinstance(adapter, NodeAdapter) else {"sim"}
    tcp: Literal["always", "never", "transport"] = "always" if machine.media_over == "tcp" else "never"
    if (hosted := machine.hosted) is not None:
        sim, emu = f"{hosted.library} {hosted.version}", f"{hosted.library} {hosted.version} on real sockets"
    return System(
        name=name,
        title=machine.title,
        modes={"sim": sim, "emu": emu},
        ours=frozenset(ours),
        plays=machine.content != "none",
        clips=machine.content in ("clip", "ladder"),
        ladders=machine.content == "ladder",
        parameters=machine.parameters,
        tcp="transport" if "transport" in machine.parameters else tcp,
        arrivals=machine.arrivals,
        adapter=adapter,
    )
