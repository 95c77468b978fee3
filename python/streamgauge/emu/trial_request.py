"""The launcher's request to the worker: a trial as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from streamgauge.systems.adapter import CommandLine, Side

WORKER = "streamgauge.emu.worker"
"""The module that takes it, in a sandbox."""
FIRST_PORT = 6000
"""The first port for programs that need one, above the ports of our own machines."""
PORTS_PER_FLOW = 20
"""Programs that bind every address still do not meet another flow's."""


@dataclass(kw_only=True)
class TrialRequest:
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
    #: One per relay of the plan: its "name", "index" and "system".
    relays: list[dict[str, Any]] = field(default_factory=list)
    #: The content that the plan names, by digest, as `Content.to_json` has it.
    contents: dict[str, Any] = field(default_factory=dict)
    #: The socket on which the emulator shows the trial.
    live_fd: int | None = None
    #: User id that players run as in root's way.
    player_uid: int = 65534
    #: Congestion controls to register for this trial: Linux name to the name of the trial's own.
    own_controls: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> TrialRequest:
        """Reads `to_json`."""
        return cls(**json.loads(text))


def command_lines(setup: Mapping[str, Any]) -> dict[Side, list[CommandLine]]:
    """The commands of one of `TrialRequest.flows`."""
    return {side: [CommandLine(**line) for line in lines] for side, lines in setup["commands"].items()}
