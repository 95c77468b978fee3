"""The adapters by the name that a scenario calls them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.systems.adapter import (
    Adapter,
    CommandLine,
    External,
    FlowSetup,
    Program,
    Side,
    spoken,
)
from streamgauge.systems.bulk import agrees_first
from streamgauge.systems.command import CommandAdapter, CommandError, check_command, programs_path
from streamgauge.systems.parameter import ParameterValue
from streamgauge.systems.processes import ProcessError, check_processes
from streamgauge.systems.registry import SYSTEMS, TRAFFIC, Mode, System
from streamgauge.systems.relay import RelayAdapter, RelaySetup

COMMANDS = "command"
"""Whatever a scenario gives by its commands."""

_OF_COMMANDS: Adapter = CommandAdapter()


class _Adapters(Mapping[str, Adapter]):
    """Those of the registry's systems that run in emu, and that of commands."""

    def __getitem__(self, name: str) -> Adapter:
        if name == COMMANDS:
            return _OF_COMMANDS
        system = SYSTEMS.get(name) or TRAFFIC[name]
        if "emu" not in system.modes:
            raise KeyError(name)
        return system.adapter

    def __iter__(self) -> Iterator[str]:
        yield COMMANDS
        yield from (name for name, system in {**SYSTEMS, **TRAFFIC}.items() if "emu" in system.modes)

    def __len__(self) -> int:
        return sum(1 for _ in self)


ADAPTERS: Mapping[str, Adapter] = _Adapters()


def adapter_for(flow: FlowSetup) -> Adapter:
    """Returns the adapter of a flow or relay; CannotRunError if this version has none."""
    if isinstance(flow, RelaySetup):
        return RelayAdapter()
    if flow.system not in ADAPTERS:
        raise CannotRunError(
            f"flow {flow.name}: system {flow.system} does not run in emu, which has "
            f"{', '.join(sorted(ADAPTERS))}."
        )
    adapter = ADAPTERS[flow.system]
    return (adapter.of_arrivals or adapter) if flow.has_arrivals else adapter


def external_of(asked: Mapping[str, Any]) -> External | None:
    """Returns the facts about a flow of a scenario (normalised) that no machine of the plan describes; None
    if one does. Programs that the registry does not list are the user's commands."""
    name = asked.get("system") or asked.get("traffic")
    return ADAPTERS[str(name) if is_shipped(asked) else COMMANDS].external


def has_camera(asked: Mapping[str, Any]) -> bool:
    """Returns whether the clip of a flow of a scenario (normalised) is a camera's picture, which its server
    encodes anew at rates of its own."""
    external = external_of(asked)
    return external is not None and external.is_camera


def is_shipped(asked: Mapping[str, Any]) -> bool:
    """Returns whether a flow of a scenario (normalised) is of a system in the registry, and not of the user's
    own commands."""
    name = asked.get("system") or asked.get("traffic")
    return isinstance(name, str) and name in ADAPTERS and name != COMMANDS


def versions(
    flows: Iterable[tuple[System | None, Mapping[str, ParameterValue], bool]], mode: Mode
) -> dict[str, dict[str, int]]:
    """Returns the versions of all systems of a trial's flows (`System.versions`), by the names of the
    systems.

    A flow is its system (None is one that is given as commands), its parameters, and whether it has arrivals.
    """
    found: dict[str, dict[str, int]] = {}
    for system, parameters, arrivals in flows:
        if system is not None:
            told = system.versions(mode, parameters, arrivals=arrivals)
            found[system.name] = found.get(system.name, {}) | told
        elif mode == "emu":
            found[COMMANDS] = {"adapter": ADAPTERS[COMMANDS].version}
    return dict(sorted(found.items()))


def rides_on_tcp(flow: FlowSetup) -> bool:
    """Returns whether the media of a flow rides on TCP by its system's description; False if that is silent
    on it."""
    external = adapter_for(flow).external
    return external is not None and external.media_over(flow.parameters) == "tcp"


def begins_with_control(flow: Mapping[str, Any]) -> bool:
    """Returns whether the first connection of a plan's flow carries none of its data in emu."""
    return agrees_first(flow)


def programs_of(flow: FlowSetup) -> list[Program]:
    """Returns the programs that the flow needs."""
    return [program for program in adapter_for(flow).programs if program.needed(flow)]


def check_programs(flow: FlowSetup) -> None:
    """CannotRunError naming the first program that the flow needs and this machine lacks, and its package;
    ScenarioError for a command, and for a list of processes, that makes no sense."""
    for program in programs_of(flow):
        if program.find() is None:
            remedy = program.remedy or f"install it (Debian, Ubuntu: `apt-get install {program.packages}`)"
            raise CannotRunError(f"flow {flow.name}: {program.name} is missing; {remedy}.")
    for side, lines in flow.commands.items():
        for line in lines:
            _check_line(flow, side, line)
    check_processes_of(flow)


def check_processes_of(flow: FlowSetup) -> None:
    """ScenarioError for a list of processes that makes no sense."""
    try:
        check_processes(adapter_for(flow).processes(flow))
    except ProcessError as error:
        key = f"flow {flow.name}: {'.'.join(error.key)}"
        raise ScenarioError(error.why, key=key, hint=error.hint) from None


def _check_line(flow: FlowSetup, side: Side, line: CommandLine) -> None:
    # A scenario made in Python is not validated up to here.
    try:
        check_command(line.command, [*flow.variables(side), *flow.environment])
    except CommandError as error:
        key = ".".join(filter(None, (side, line.name)))
        raise ScenarioError(error.why, key=f"flow {flow.name}: {key}", hint=error.hint) from None
    called = shlex.split(line.command)[0]
    where = called
    if "/" in called and flow.working_folder is not None:
        where = str(Path(flow.working_folder) / called)
    # One that is named by a variable is known only in the sandbox.
    if "$" not in called and shutil.which(where, path=programs_path()) is None:
        raise CannotRunError(
            f"flow {flow.name}: the {spoken(side, line.name)}'s program {called} is not on PATH or cannot "
            "be run. Install it, or give its path from the scenario's folder."
        )
