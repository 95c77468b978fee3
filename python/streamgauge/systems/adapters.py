"""The adapters by the name that a scenario calls them."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.systems.adapter import Adapter, FlowSetup
from streamgauge.systems.bulk import Bulk
from streamgauge.systems.cbr import Cbr
from streamgauge.systems.command import Command, CommandError, check_command, programs_path
from streamgauge.systems.node import Node
from streamgauge.systems.rtsp import Rtsp

ADAPTERS: dict[str, Adapter] = {
    "bulk": Bulk(),
    "cbr": Cbr(),
    "command": Command(),
    "darwin": Node(),
    "ping": Node(raw_sockets=True),
    "rtp": Node(),
    "rtsp": Rtsp(),
}


def adapter_for(flow: FlowSetup) -> Adapter:
    """The flow's adapter; CannotRunError if this version has none."""
    if flow.system not in ADAPTERS:
        raise CannotRunError(
            f"flow {flow.name}: system {flow.system} does not run in emu, which has "
            f"{', '.join(sorted(ADAPTERS))}."
        )
    return ADAPTERS[flow.system]


def check_programs(flow: FlowSetup) -> None:
    """CannotRunError naming the first program that the flow needs and this machine lacks, and its package;
    ScenarioError for a command that makes no sense."""
    adapter = adapter_for(flow)
    for program, package in adapter.programs.items():
        if program == "ffmpeg" and flow.parameters.get("player") != "ffmpeg":
            continue
        if shutil.which(program) is None:
            raise CannotRunError(
                f"flow {flow.name}: {program} is missing; install it "
                f"(Debian, Ubuntu: `apt-get install {package}`)."
            )
    for side, command in flow.commands.items():
        # A scenario made in Python comes this far unread.
        try:
            check_command(command, [*flow.variables(side), *flow.environment])
        except CommandError as error:
            raise ScenarioError(error.why, key=f"flow {flow.name}: {side}", hint=error.hint) from None
        program = shlex.split(command)[0]
        where = program
        if "/" in program and flow.working_folder is not None:
            where = str(Path(flow.working_folder) / program)
        # One that is named by a variable is known only in the sandbox.
        if "$" not in program and shutil.which(where, path=programs_path()) is None:
            raise CannotRunError(
                f"flow {flow.name}: the {side}'s program {program} is not on PATH or cannot be run; "
                "install it, or give its path from the scenario's folder."
            )
