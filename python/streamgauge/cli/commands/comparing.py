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
            help="Folders of records, or scenarios by id, glob or file. A setting may follow in the same "
            "argument. With --in: names of systems. 'matrix': every system in every kind of scenario.",
        ),
    ],
    over: Annotated[
        list[str] | None,
        typer.Option(
            "--over",
            metavar="ADDRESS=V1,V2",
            help="Each value is a subject: path.down.queue=\\[droptail 20 kB,codel 20 kB]. mode=sim,emu "
            "compares the modes.",
        ),
    ] = None,
    inside: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="FILE|ID",
            help="Operands are systems. Each replaces this scenario's subject.",
        ),
    ] = None,
    commit: Annotated[
        list[str] | None,
        typer.Option(
            "--commit",
            metavar="REV",
            help="Each commit of the scenario's repository is a subject, checked out and built separately.",
        ),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(
            "--build",
            metavar="CMD",
            help="With --commit: command that builds each checkout, run in its top folder.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="NAME",
            help="The subject that others are compared with. Default: the first.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="Compare with a saved baseline."),
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option(
            "--save-baseline", metavar="FILE", help="Save the first subject's figures as a baseline."
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
            help="Differences up to this are practically equal: goodput=2%, startup_delay=50ms.",
        ),
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option("--flow", metavar="NAME", help="The subject. Default: flows with the role subject."),
    ] = None,
    mode: Annotated[
        Literal["sim", "emu", "both"] | None,
        typer.Option(
            "--mode", help="Default: the first that each scenario supports and this machine can run."
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
        int,
        typer.Option("--at-most", metavar="N", min=2, help="With --until: maximum number of repetitions."),
    ] = 40,
    alone: Annotated[
        bool,
        typer.Option(
            "--alone/--no-alone",
            help="Also run the cross traffic alone, to measure the harm to it.",
        ),
    ] = True,
    settings: SetOption = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for records; a rerun resumes there.")
    ] = Path("runs"),
    keep: Annotated[
        Keep | None,
        typer.Option(
            "--keep", help="Parts of each record to store. Default: packets; for a matrix, metrics."
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="GLOB",
            help="For a matrix: include only these kinds of scenario, such as 'tcp-*'.",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system", metavar="GLOB", help="For a matrix: include only these systems, such as 'dash-*'."
        ),
    ] = None,
    emulate: Annotated[
        int | None,
        typer.Option(
            "--emulate",
            metavar="N",
            min=1,
            help="For a matrix: also emulate a quarter of the kinds, N trials a cell (docs/matrix.md).",
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
        Path | None, typer.Option("--report", metavar="FILE", help="Also write a report of these trials.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    r"""Rank subjects by each metric, with intervals and verdicts.

    Each metric of the viewer, the flow and its neighbours has a verdict. It is better, worse, practically
    equal or undecided.

    Exit status: 0 nothing is worse, 1 a metric is worse, 2 nothing is decided.

    [b]Examples[/b]

      streamgauge compare today/rtsp-udp today/rtsp-tcp --mode sim

      streamgauge compare hessler/ftp-medium --mode sim \
        --over 'path.down.queue=droptail 20 kB,codel 20 kB'

      streamgauge compare runs/before runs/after

      streamgauge compare matrix --kind 'tcp-*' --repeat 3

      streamgauge compare rfc8867 --mode sim

      streamgauge compare my.yaml --commit main --commit HEAD --build make \
        --until decided --at-most 20
    """
    from streamgauge.cli.comparing import CompareRequest, compare_command
    from streamgauge.cli.gating import GateFiles
    from streamgauge.cli.matrix import MatrixRequest, check_options, family_file, matrix_command

    on_it = on_machine(machine, way, jobs, brought)
    family = family_file(operands[0])
    is_matrix = family is not None
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
                file=family,
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
