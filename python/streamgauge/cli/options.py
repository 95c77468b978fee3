"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

__all__ = [
    "REPLACE",
    "JobsOption",
    "JsonOption",
    "JunitOption",
    "Keep",
    "LiveOption",
    "LivePortOption",
    "MachineOption",
    "ModeOption",
    "Names",
    "OnMachine",
    "OnOption",
    "OutOption",
    "Records",
    "RecordsAnywhere",
    "RepeatOption",
    "ReplaceOption",
    "SeedOption",
    "SetOption",
    "SummaryOption",
    "VerifyOption",
    "WayOption",
    "emus",
    "on_machine",
]

Keep = Literal["metrics", "events", "packets"]
REPLACE = 2
"""Default number of further seeds that may replace an invalid trial of emu."""

Names = Annotated[
    list[str], typer.Argument(metavar="FILE|ID...", help="Scenario files, ids, or globs of ids.")
]
Records = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder with the records of run or reproduce.")
]
RecordsAnywhere = Annotated[
    str, typer.Argument(metavar="DIR|URL", help="The folder with the records of run or reproduce.")
]
ModeOption = Annotated[
    Literal["sim", "emu"] | None,
    typer.Option("--mode", help="Default: the first that the scenario supports and this machine can run."),
]
LiveOption = Annotated[
    str | None,
    typer.Option(
        "--live",
        metavar="[=page|terminal]",
        help="Watch the trial and steer its path, on a page or in the terminal.",
    ),
]
LivePortOption = Annotated[
    int,
    typer.Option("--live-port", metavar="N", min=0, max=65535, help="Port of the page; 0 picks a free one."),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Seed of the first repetition; one trial if --repeat is not given."),
]
RepeatOption = Annotated[
    int | None,
    typer.Option("--repeat", min=1, help="Repetitions, each with the next seed. Default: the scenario's."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="ADDRESS=VALUE", help="Change the scenario, such as path.down.rate=300kbit/s."
    ),
]
OutOption = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="DIR|URL",
        help="Folder for records; a rerun resumes there. --set adds a folder below it. With --on also a URL:"
        " s3://bucket/run-1.",
    ),
]
OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS|FILE",
        help="Run on a Dask cluster: a scheduler's address or file, or 'dask' for Dask's configuration.",
    ),
]
WayOption = Annotated[
    Literal["root", "user"] | None,
    typer.Option(
        "--way",
        help="emu: run the sandbox as root or as an ordinary user. Default: root if you are root, otherwise "
        "user.",
    ),
]
MachineOption = Annotated[
    str,
    typer.Option(
        "--machine",
        metavar="host|virtual[:SPEED]",
        help="emu: run on this machine or in a virtual machine (docs/virtual.md). SPEED is 1, 2 or 4 GHz; "
        "default: by the path's rate.",
    ),
]
WithOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="DIR",
        help="--machine virtual: copy a folder of yours to the same path in the virtual machine. Repeatable.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="emu: run N trials at once. On this machine they disturb each other, and more may be "
        "invalid. Default: 1; for virtual machines as cores and memory allow. sim uses all cores.",
    ),
]
ReplaceOption = Annotated[
    int | None,
    typer.Option(
        "--replace",
        metavar="N",
        min=0,
        help="emu: retry an invalid trial with a new seed, at most N times a repetition. "
        f"Each retry is printed. Default: {REPLACE}; with --seed, 0.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Check every byte of the trials on disk, and run damaged ones again. Without it they are "
        "trusted.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
JunitOption = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write verdicts as JUnit XML for CI systems (docs/ci.md)."),
]
SummaryOption = Annotated[
    Path | None,
    typer.Option(
        "--summary",
        metavar="FILE",
        help="Write the answer and a table as Markdown. $GITHUB_STEP_SUMMARY is appended to.",
    ),
]


@dataclass(frozen=True)
class OnMachine:
    """Where emu runs, as the options ask for it."""

    #: Emu's (`EmuOptions.way`).
    way: str | None
    #: How many trials run at once.
    jobs: int
    #: A folder below the campaign's: trials of a virtual machine lie beside those of this one.
    folder: str
    #: Files copied into a virtual machine (`EmuOptions.brought`).
    brought: tuple[Path, ...] = ()


def on_machine(
    machine: str, way: str | None, jobs: int | None, brought: Sequence[Path] | None = None
) -> OnMachine:
    """Returns the settings in the options --machine, --way, --jobs and --with.

    Raises ScenarioError for options that do not go together, CannotRunError for more virtual machines than
    fit in this one's memory and for folders that cannot go along.
    """
    from streamgauge.campaign.layout import machine_folder
    from streamgauge.emu.options import Virtual
    from streamgauge.errors import ScenarioError

    if machine == "host":
        if brought:
            raise ScenarioError(
                "--with copies a folder into a virtual machine, and this trial has none; "
                "remove --with, or add --machine virtual"
            )
        return OnMachine(way, jobs or 1, "")
    if Virtual.of(machine) is None:
        raise ScenarioError(
            f"--machine {machine}: there is host, and virtual, also as virtual:1, virtual:2 and virtual:4"
        )
    if way is not None:
        raise ScenarioError("--way is for this machine; a virtual machine has its own sandbox: remove --way")
    from streamgauge.emu.machine.guest_files import brought_by
    from streamgauge.emu.machine.virtual import check_room, most_at_once

    if jobs is not None:
        check_room(jobs)
    return OnMachine(machine, jobs or most_at_once(), machine_folder(machine), brought_by(brought or ()))


_M = TypeVar("_M", bound=str)


def emus(machine: str, mode: _M | None) -> _M | Literal["emu"] | None:
    """Returns the mode, which is emu in a virtual machine. Raises ScenarioError for sim in one."""
    from streamgauge.errors import ScenarioError

    if machine == "host":
        return mode
    if mode not in (None, "emu"):
        raise ScenarioError(f"--machine is where emu runs, and --mode is {mode}; leave one of them out")
    return "emu"
