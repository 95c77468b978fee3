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
"""How many further seeds may stand for an invalid trial of emu, where nothing is said of it."""

Names = Annotated[
    list[str], typer.Argument(metavar="FILE|ID...", help="Scenario files, ids, or globs of ids.")
]
Records = Annotated[Path, typer.Argument(metavar="DIR", help="Where run or reproduce left its records.")]
RecordsAnywhere = Annotated[
    str, typer.Argument(metavar="DIR|URL", help="Where run or reproduce left its records.")
]
ModeOption = Annotated[
    Literal["sim", "emu"] | None,
    typer.Option("--mode", help="Default: the first that the scenario supports and this machine can do."),
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
        help="Where records go; a rerun resumes there. With --set, a folder below that is named by it. With "
        "--on also a URL, such as s3://bucket/run-1.",
    ),
]
OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS|FILE",
        help="Run the trials on this Dask cluster: its scheduler's address, a file that names it, or 'dask' "
        "for the one of Dask's own configuration.",
    ),
]
WayOption = Annotated[
    Literal["root", "user"] | None,
    typer.Option("--way", help="emu's sandbox: as root, or as an ordinary user. Default: by who you are."),
]
MachineOption = Annotated[
    str,
    typer.Option(
        "--machine",
        metavar="host|virtual[:SPEED]",
        help="emu: run on this machine, or in a virtual one whose time goes by the instructions that it "
        "executes (docs/virtual.md); SPEED is 1, 2 or 4 thousand million a second, and by the path's rate if "
        "left out.",
    ),
]
WithOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="DIR",
        help="--machine virtual: a folder of your own programs, libraries and files that goes along, to the "
        "same place in there. May be given more than once.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="emu: run N trials at the same time. On this machine they disturb each other: see how many are "
        "invalid. Default: 1; of virtual machines, as many as there are cores and memory for. Sim uses all "
        "cores by itself.",
    ),
]
ReplaceOption = Annotated[
    int | None,
    typer.Option(
        "--replace",
        metavar="N",
        min=0,
        help="emu: put a further seed in the place of an invalid trial, at most N times a repetition. "
        f"Each is told. Default: {REPLACE}; with --seed, which asks for that one, 0.",
    ),
]
VerifyOption = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Read the trials that are there already wholly, and run those again that are not as they were "
        "written. Without, they are trusted.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
JunitOption = Annotated[
    Path | None,
    typer.Option(
        "--junit", metavar="FILE", help="Write verdicts as JUnit XML, which CI systems show (docs/ci.md)."
    ),
]
SummaryOption = Annotated[
    Path | None,
    typer.Option(
        "--summary",
        metavar="FILE",
        help="Write the answer and a table as Markdown; to $GITHUB_STEP_SUMMARY behind what is there.",
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
    #: What goes along into a virtual machine (`EmuOptions.brought`).
    brought: tuple[Path, ...] = ()


def on_machine(
    machine: str, way: str | None, jobs: int | None, brought: Sequence[Path] | None = None
) -> OnMachine:
    """What the options --machine, --way, --jobs and --with ask for.

    Raises ScenarioError for options that do not go together, CannotRunError for more virtual machines than
    fit in this one's memory and for folders that cannot go along.
    """
    from streamgauge.campaign.layout import machine_folder
    from streamgauge.emu.options import Virtual
    from streamgauge.errors import ScenarioError

    if machine == "host":
        if brought:
            raise ScenarioError(
                "--with brings a folder into a virtual machine; on this one programs find it where it is: "
                "leave it out, or add --machine virtual"
            )
        return OnMachine(way, jobs or 1, "")
    if Virtual.of(machine) is None:
        raise ScenarioError(
            f"--machine {machine}: there is host, and virtual, also as virtual:1, virtual:2 and virtual:4"
        )
    if way is not None:
        raise ScenarioError("--way is a sandbox of this machine's; a virtual one has its own: leave it out")
    from streamgauge.emu.machine.guest_files import brought_by
    from streamgauge.emu.machine.virtual import check_room, most_at_once

    if jobs is not None:
        check_room(jobs)
    return OnMachine(machine, jobs or most_at_once(), machine_folder(machine), brought_by(brought or ()))


_M = TypeVar("_M", bound=str)


def emus(machine: str, mode: _M | None) -> _M | Literal["emu"] | None:
    """The mode, which a virtual machine says is emu. Raises ScenarioError for sim in one."""
    from streamgauge.errors import ScenarioError

    if machine == "host":
        return mode
    if mode not in (None, "emu"):
        raise ScenarioError(f"--machine is where emu runs, and --mode is {mode}; leave one of them out")
    return "emu"
