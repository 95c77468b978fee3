"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "REPLACE",
    "JobsOption",
    "JsonOption",
    "JunitOption",
    "Keep",
    "ModeOption",
    "Names",
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
JobsOption = Annotated[
    int,
    typer.Option(
        "--jobs",
        metavar="N",
        min=1,
        help="emu: run N trials at the same time. They disturb each other: see how many are invalid. "
        "Sim uses all cores by itself.",
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
