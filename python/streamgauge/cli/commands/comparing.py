"""``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import (
    JobsOption,
    JsonOption,
    JunitOption,
    Keep,
    MachineOption,
    ReplaceOption,
    SetOption,
    SummaryOption,
    VerifyOption,
    WayOption,
    WithOption,
    emus,
    on_machine,
)

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the command to `app`."""
    register(app, "Compare and report", "compare", _compare)


def _compare(
    operands: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="Folders of records; scenarios by id, glob or file, each with settings behind it in the "
            "same argument; with --in names of systems. 'matrix': every system in every kind of scenario, "
            "and behind it scenarios whose systems join them.",
        ),
    ],
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="ADDRESS=V1,V2",
            help="Each value is a subject, such as path.down.queue=\\[droptail 20 kB,codel 20 kB]; "
            "mode=sim,emu compares the modes.",
        ),
    ] = None,
    inside: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="FILE|ID",
            help="Operands are systems, put in place of this scenario's under test.",
        ),
    ] = None,
    commit: Annotated[
        list[str] | None,
        typer.Option(
            "--commit",
            metavar="REV",
            help="Each commit of the repository in which the scenario's file lies is a subject, checked out "
            "and built apart.",
        ),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(
            "--build", metavar="CMD", help="With --commit: builds each, in the top of its checkout."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="NAME", help="What the others are held against. Default: the first."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="Hold them against a baseline that was saved."),
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option(
            "--save-baseline", metavar="FILE", help="Save the first subject's numbers, to compare with later."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Only these metrics. Default: all that are known (docs/compare.md).",
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            "--margin",
            metavar="METRIC=VALUE",
            help="What counts as practically equal, such as goodput=2% or startup_delay=50ms.",
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option("--flow", metavar="NAME", help="The flow under test. Default: those of role subject."),
    ] = None,
    mode: Annotated[
        Literal["sim", "emu", "both"] | None,
        typer.Option(
            "--mode", help="Default: the first that each scenario supports and this machine can do."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the first repetition.")] = 1,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat", min=1, help="Repetitions, each with the next seed. Default: the scenario's."
        ),
    ] = None,
    until: Annotated[
        Literal["decided"] | None,
        typer.Option(
            "--until", help="Repeat until every difference is decided, or --at-most repetitions are done."
        ),
    ] = None,
    at_most: Annotated[
        int, typer.Option("--at-most", metavar="N", min=2, help="With --until: so many repetitions at most.")
    ] = 40,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone/--no-alone",
            help="Run the flows beside it alone as well, to tell what harm is done to them.",
        ),
    ] = True,
    settings: SetOption = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where records go; a rerun resumes there.")
    ] = Path("runs"),
    keep: Annotated[
        Keep | None,
        typer.Option(
            "--keep", help="How much of each record is stored. Default: packets; of matrix metrics."
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", metavar="GLOB", help="Of matrix only these kinds of scenario, such as 'tcp-*'."
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="GLOB", help="Of matrix only these systems, such as 'dash-*'."),
    ] = None,
    emulate: Annotated[
        int | None,
        typer.Option(
            "--emulate",
            metavar="N",
            min=1,
            help="Of matrix also emulate a quarter of the kinds, N trials of each cell (docs/matrix.md), on "
            "--machine.",
        ),
    ] = None,
    way: WayOption = None,
    machine: MachineOption = "host",
    brought: WithOption = None,
    jobs: JobsOption = None,
    replace: ReplaceOption = None,
    verify: VerifyOption = False,
    junit: JunitOption = None,
    summary: SummaryOption = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Also write the page of these trials.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    r"""Say which of several behaves best, by how much, with what confidence.

    Every metric of the viewer, the flow and its neighbours is compared with the baseline's: better, worse,
    practically equal or undecided. Exit status 0: nothing is worse; 1: something is; 2: nothing is decided.

    [b]Examples[/b]

      streamgauge compare today/rtsp-udp today/rtsp-tcp --mode sim

      streamgauge compare hessler/ftp-medium --mode sim \
        --over 'path.down.queue=droptail 20 kB,codel 20 kB'

      streamgauge compare runs/before runs/after

      streamgauge compare matrix --kind 'tcp-*' --repeat 3

      streamgauge compare my.yaml --commit main --commit HEAD --build make \
        --until decided --at-most 20
    """
    from streamgauge.cli.comparing import CompareRequest, compare_command
    from streamgauge.cli.gating import GateFiles
    from streamgauge.cli.matrix import MATRIX, MatrixRequest, check_options, matrix_command

    on_it = on_machine(machine, way, jobs, brought)
    is_matrix = operands[0] == MATRIX
    check_options(
        is_matrix,
        {"--kind": kind, "--system": system, "--emulate": emulate},
        {
            "--over": over, "--in": inside, "--commit": commit, "--build": build, "--baseline": baseline,
            "--against": against, "--save-baseline": save_baseline, "--metric": metric, "--margin": margin,
            "--flow": flow, "--until": until, "--no-alone": not alone, "--junit": junit, "--summary": summary,
        },
    )  # fmt: skip
    if is_matrix:
        return matrix_command(
            MatrixRequest(
                own=operands[1:],
                kinds=kind or [],
                systems=system or [],
                settings=settings or [],
                mode=mode if emulate else emus(machine, mode),
                seed=seed,
                repeat=repeat,
                out=Path(out) if emulate else Path(out) / on_it.folder,
                keep=keep or "metrics",
                way=on_it.way,
                brought=on_it.brought,
                jobs=on_it.jobs,
                replace=replace,
                verify=verify,
                report=report,
                emulate=emulate,
                emulated_out=Path(out) / on_it.folder,
                as_json=as_json,
            )
        )
    return compare_command(
        CompareRequest(
            operands=operands,
            over=over or [],
            inside=inside,
            commits=commit or [],
            build=build,
            baseline=baseline,
            against=against,
            save_baseline=save_baseline,
            metrics=metric or [],
            margins=margin or [],
            flow=flow,
            mode=emus(machine, mode),
            seed=seed,
            repeat=repeat,
            until_decided=until is not None,
            at_most=at_most,
            alone=alone,
            settings=settings or [],
            out=Path(out) / on_it.folder,
            keep=keep or "packets",
            way=on_it.way,
            brought=on_it.brought,
            jobs=on_it.jobs,
            replace=replace,
            verify=verify,
            files=GateFiles(junit, summary),
            report=report,
            as_json=as_json,
        )
    )
