"""What a system is to everybody who asks: its description, and its adapter in emu.

A system that has a machine of ours (crates/systems) is described by that (`of_machine`); one of somebody
else's programs is described beside its adapter.
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


def says_rates_alone(system: str) -> bool:
    """Whether the server of that machine says at which rate it sends, and never from where in the media."""
    return system in _RATES_ALONE


@dataclass(frozen=True, kw_only=True)
class System:
    """A streaming technology (server and player) or a kind of traffic."""

    name: str
    title: str
    #: What carries it in each mode: our own machine, or the third-party programs named here.
    modes: dict[Mode, str]
    #: Modes in which we wrote both ends; results say so.
    ours: frozenset[Mode]
    #: Plays a clip, which the flow must name.
    plays: bool
    #: The clip may be a ladder.
    ladders: bool = False
    parameters: dict[str, Parameter]
    #: Runs over TCP: always, never, or if the parameter ``transport`` is ``tcp``.
    tcp: Literal["always", "never", "transport"] = "never"
    #: A flow of it may be many short transfers that arrive at random.
    arrivals: bool = False
    #: The first of these parameters that does not go with another, of a system without a machine.
    unfit: Callable[[Mapping[str, ParameterValue | None]], Excess | None] | None = None
    #: What a machine of ours that stands in for it does as its programs do, by that machine's name:
    #: parameters for a flow with these values of its own. What a scenario says of its stand-in comes first.
    stood_in_by: Mapping[str, Callable[[Mapping[str, ParameterValue | None]], Mapping[str, str]]] = field(
        default_factory=dict
    )
    #: What starts and reads it in emu.
    adapter: Adapter

    def written_by_us(
        self, mode: Mode, parameters: Mapping[str, ParameterValue], *, arrivals: bool = False
    ) -> bool:
        """Whether both ends are our own programs in a flow with these parameters; results say so."""
        return self._adapter(arrivals).ours(self.values(parameters)) if mode == "emu" else mode in self.ours

    def actions(
        self, mode: Mode, parameters: dict[str, ParameterValue], *, arrivals: bool = False
    ) -> tuple[Action, ...]:
        """What a scenario can do to a flow with these parameters while it runs."""
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
        """The versions of its parts in a flow with these parameters: its ``machine`` (crates/systems), and in
        emu its ``adapter``, or ``node`` where our machine on real sockets runs in place of that.

        A trial is what would be run today only if none of them has changed.
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
        """Whether a flow with these parameters has a congestion control to choose."""
        if self.tcp != "transport":
            return self.tcp == "always"
        return is_on_tcp(parameters.get("transport", self.parameters["transport"].default))

    def excess(self, parameters: Mapping[str, ParameterValue], blamed: Collection[str] = ()) -> Excess | None:
        """The first of these parameters that is beyond another one, as its machine says, or does not go with
        it; None if none is. Of the two one of `blamed` is named."""
        machine = MACHINES.get(self.name)
        if machine is None:
            return None if self.unfit is None else self.unfit(self.values(parameters))
        return machine.excess(parameters, blamed)

    def values(self, parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue | None]:
        """The values of all parameters, defaults filled in."""
        return {name: self.value(parameters, name) for name in self.parameters}

    def value(self, parameters: Mapping[str, ParameterValue], name: str) -> ParameterValue | None:
        """The value of a parameter, its default filled in."""
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
    """A system that has a machine of ours, as that describes itself.

    Args:
        name: the machine's.
        sim: what carries it in sim, in words.
        emu: what carries it in emu, in words.
        adapter: what runs it in emu; the same machine on real sockets if left out.
    """
    machine = MACHINES[name]
    adapter = adapter or NodeAdapter()
    ours: set[Mode] = {"sim", "emu"} if isinstance(adapter, NodeAdapter) else {"sim"}
    tcp: Literal["always", "never", "transport"] = "always" if machine.media_over == "tcp" else "never"
    return System(
        name=name,
        title=machine.title,
        modes={"sim": sim, "emu": emu},
        ours=frozenset(ours),
        plays=machine.content != "none",
        ladders=machine.content == "ladder",
        parameters=machine.parameters,
        tcp="transport" if "transport" in machine.parameters else tcp,
        arrivals=machine.arrivals,
        adapter=adapter,
    )
