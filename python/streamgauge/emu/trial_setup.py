"""A trial as the worker takes it, from a scenario and its plan: media made, commands with their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.emu.trial_request import TrialRequest
from streamgauge.media import (
    ClipEncoding,
    contents_of,
    prepare,
    prepare_ladder,
    prepare_own_ladder,
    prepare_presentation,
)
from streamgauge.scenario.clips import media_clip, media_ladder
from streamgauge.scenario.lower import as_drawn
from streamgauge.scenario.media_files import segment_s
from streamgauge.systems.adapter import SIDES, CommandLine, FlowSetup, Side
from streamgauge.systems.adapters import external_of
from streamgauge.systems.relay import RelaySetup
from streamgauge.systems.tcp import planned_tcp
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.emu.options import EmuOptions
    from streamgauge.scenario import Scenario


def flow_setups(scenario: Scenario, plan: Mapping[str, Any]) -> list[FlowSetup]:
    """The flows as their adapters see them, without addresses and folders. Encodes the media that they play.

    Raises MediaError.
    """
    flows = as_drawn(scenario, "emu", plan["seed"]).in_mode("emu").flows
    setups = []
    for index, planned in enumerate(plan["flows"]):
        name = planned["name"]
        flow = flows[name]
        commands: dict[Side, Sequence[CommandLine]] = {}
        environment: dict[str, str] = {}
        folder = None
        if flow.registered is not None:
            system = flow.registered.name
            parameters = {
                key: str(value)
                for key in flow.registered.parameters
                if (value := flow.registered.value(flow.parameters, key)) is not None
            }
        else:
            system, parameters = "command", {key: str(value) for key, value in flow.parameters.items()}
            command = flow.system
            assert command is not None and not isinstance(command, str)
            commands = {side: command.lines(side) for side in SIDES}
            environment, folder = dict(command.env), command.folder
        external = external_of({"system": flow.system, "traffic": flow.traffic})
        handed = "none" if external is None else external.content
        setups.append(
            FlowSetup(
                name=name,
                index=index,
                system=system,
                parameters=parameters,
                media=_handed(flow.clip, plan, handed) if flow.clip is not None else None,
                commands=commands,
                environment=environment,
                working_folder=folder,
                plan=planned,
                trial=plan,
            )
        )
    return setups


def relay_setups(plan: Mapping[str, Any]) -> list[RelaySetup]:
    """The relays as their adapter sees them, without addresses and folders."""
    setups = []
    for nth, planned in enumerate(plan.get("relays") or ()):
        (system,) = planned["app"]
        setups.append(
            RelaySetup(
                name=planned["name"],
                index=len(plan["flows"]) + nth,
                system=system,
                plan=planned,
                trial=plan,
            )
        )
    return setups


def _as_data(line: CommandLine) -> dict[str, Any]:
    """A command for a worker, which runs in another folder."""
    return asdict(line) | {"helpers": [str(Path(helper).absolute()) for helper in line.helpers]}


def _handed(clip: Any, plan: Mapping[str, Any], content: str) -> Path | None:
    """Returns a flow's view of its clip (`External.content`)."""
    match content:
        case "none":
            return None
        case "presentation":
            return prepare_presentation(_media(clip, plan))
    return _media(clip, plan)


def _media(clip: Any, plan: Mapping[str, Any]) -> Path:
    """The clip's file, or the ladder's folder."""
    if getattr(clip, "files", None) is not None:
        return prepare_own_ladder([Path(file) for file in clip.files], segment_s=segment_s(clip))
    duration = Time.of(plan["duration"])
    if getattr(clip, "ladder", None) is not None:
        return prepare_ladder(media_ladder(clip, duration))
    found = media_clip(clip, duration)
    assert isinstance(found, ClipEncoding)
    return prepare(found)


def to_request(
    setups: list[FlowSetup],
    relays: list[RelaySetup],
    plan: Mapping[str, Any],
    directory: Path,
    engine: Path,
    options: EmuOptions,
    own_controls: Mapping[str, str],
) -> TrialRequest:
    """The job of a trial, which registers `own_controls` (`controls.names`)."""
    return TrialRequest(
        plan=dict(plan),
        directory=str(directory.resolve()),
        engine=str(engine),
        way=options.chosen_way,
        fifo_priority=options.fifo_priority,
        spin=options.spins,
        capture=options.capture,
        sabotage=list(options.sabotage),
        live_fd=options.live_fd,
        contents={digest: one.to_json() for digest, one in contents_of(plan, directory).items()},
        own_controls=dict(own_controls),
        relays=[{"name": relay.name, "index": relay.index, "system": relay.system} for relay in relays],
        flows=[
            {
                "name": setup.name,
                "index": setup.index,
                "system": setup.system,
                "parameters": dict(setup.parameters),
                "media": None if setup.media is None else str(setup.media),
                "commands": {
                    side: [_as_data(line) for line in lines] for side, lines in setup.commands.items()
                },
                "environment": dict(setup.environment),
                "working_folder": setup.working_folder,
            }
            for setup in setups
        ],
    )


def planned_controls(flows: Iterable[FlowSetup], relays: Iterable[RelaySetup]) -> list[tuple[str, str]]:
    """Returns the congestion control of each TCP: ``("flow a", "cubic")``."""
    found = []
    for kind, some in (("flow", flows), ("relay", relays)):
        for setup in some:
            if (tcp := planned_tcp(setup.plan)) is not None:
                found.append((f"{kind} {setup.name}", tcp["congestion_control"]))
    return found
