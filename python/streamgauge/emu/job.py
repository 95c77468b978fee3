"""What the launcher tells the worker: a trial as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.emu import controls
from streamgauge.media import Clip, prepare
from streamgauge.scenario.semantics import media_clip
from streamgauge.systems.adapter import FlowSetup
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.emu.options import EmuOptions
    from streamgauge.scenario import Scenario

FIRST_PORT = 6000
"""Of programs that are told one, above the ports that our own machines have."""
DEFAULT_CONTROL = "cubic"
"""For every TCP connection whose flow does not choose: Linux's default, whatever this machine's is."""
PORTS_PER_FLOW = 20
"""Programs that bind every address still do not meet another flow's."""


@dataclass(kw_only=True)
class Job:
    """A trial for the worker. Paths are the launcher's; the worker maps them into the sandbox."""

    plan: dict[str, Any]
    directory: str
    engine: str
    way: str
    fifo_priority: int | None
    spin: bool
    capture: bool
    sabotage: list[str]
    #: One per flow of the plan: the fields of FlowSetup that a scenario decides.
    flows: list[dict[str, Any]] = field(default_factory=list)
    #: User id that players run as in root's way.
    player_uid: int = 65534
    #: Congestion controls to register for this trial: Linux name to the name of the trial's own.
    own_controls: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Reads `to_json`."""
        return cls(**json.loads(text))


def flow_setups(scenario: Scenario, plan: Mapping[str, Any]) -> list[FlowSetup]:
    """The flows as their adapters see them, without addresses and folders. Encodes the media that they play.

    Raises MediaError.
    """
    flows = scenario.in_mode("emu").flows
    setups = []
    for index, planned in enumerate(plan["flows"]):
        name = planned["name"]
        flow = flows[name]
        commands: dict[str, str] = {}
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
            commands = {"server": command.server, "player": command.player}
            environment, folder = dict(command.env), command.folder
        needs_file = flow.clip is not None and system not in ("darwin", "rtp")
        setups.append(
            FlowSetup(
                name=name,
                index=index,
                system=system,
                parameters=parameters,
                congestion_control=flow.congestion_control or _planned_control(planned) or DEFAULT_CONTROL,
                ecn=bool(flow.ecn),
                media=prepare(_clip(flow.clip, plan)) if flow.clip is not None and needs_file else None,
                commands=commands,  # type: ignore[arg-type]
                environment=environment,
                working_folder=folder,
                plan=planned,
                trial=plan,
            )
        )
    return setups


def _planned_control(planned: Mapping[str, Any]) -> str | None:
    """The plan's own choice for a flow that the scenario leaves open."""
    app = planned["app"]
    if isinstance(app, str):
        return None
    settings = next(iter(app.values()))
    tcp = settings.get("tcp") if isinstance(settings, dict) else None
    return tcp["congestion_control"] if tcp else None


def _clip(clip: Any, plan: Mapping[str, Any]) -> Clip:
    found = media_clip(clip, Time.of(plan["duration"]))
    assert isinstance(found, Clip)
    return found


def to_job(
    setups: list[FlowSetup], plan: Mapping[str, Any], directory: Path, engine: Path, options: EmuOptions
) -> Job:
    """The job of a trial."""
    return Job(
        plan=dict(plan),
        directory=str(directory.resolve()),
        engine=str(engine),
        way=options.chosen_way,
        fifo_priority=options.fifo_priority,
        spin=options.spins,
        capture=options.capture,
        sabotage=list(options.sabotage),
        own_controls=controls.names(setup.congestion_control for setup in setups),
        flows=[
            {
                "name": setup.name,
                "index": setup.index,
                "system": setup.system,
                "parameters": dict(setup.parameters),
                "congestion_control": setup.congestion_control,
                "ecn": setup.ecn,
                "media": None if setup.media is None else str(setup.media),
                "commands": dict(setup.commands),
                "environment": dict(setup.environment),
                "working_folder": setup.working_folder,
            }
            for setup in setups
        ],
    )
