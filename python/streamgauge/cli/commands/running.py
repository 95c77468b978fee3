"""``run``, ``reproduce`` and ``worker``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import (
    JobsOption,
    JsonOption,
    JunitOption,
    Keep,
    MachineOption,
    ModeOption,
    Names,
    OnOption,
    OutOption,
    RepeatOption,
    ReplaceOption,
    SeedOption,
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
    """Adds the commands to `app`."""
    register(app, "Run experiments", "run", _run)
    register(app, "Run experiments", "reproduce", _reproduce)
    register(app, "Run experiments", "worker", _worker)


def _run(
    names: Names,
    mode: ModeOption = None,
    seed: SeedOption = None,
    repeat: RepeatOption = None,
    settings: SetOption = None,
    out: OutOption = "runs",
    on: OnOption = None,
    keep: Annotated[Keep, typer.Option("--keep", help="How much of each record is stored.")] = "packets",
    way: WayOption = None,
    machine: MachineOption = "host",
    brought: WithOption = None,
    capture: Annotated[
        bool, typer.Option("--capture", help="emu: keep capture.pcapng, which Wireshark opens.")
    ] = False,
    jobs: JobsOption = None,
    replace: ReplaceOption = None,
    verify: VerifyOption = False,
    junit: JunitOption = None,
    summary: SummaryOption = None,
    as_json: JsonOption = False,
) -> int:
    r"""Run scenarios and judge their checks.

    [b]Examples[/b]

      streamgauge run hessler/ftp-no --mode sim --seed 1

      streamgauge run today/demo-rtsp-udp-medium --set path.down.rate=300kbit/s

      streamgauge run my.yaml --repeat 5 --json > result.json

      streamgauge run today/demo-rtsp-udp-medium --mode emu --machine virtual

      streamgauge run my.yaml --junit junit.xml --summary summary.md
      streamgauge run my.yaml --repeat 1000 \
        --on tcp://scheduler:8786 --out s3://bucket/run-1
    """
    from streamgauge.cli.elsewhere import placed
    from streamgauge.cli.gating import GateFiles
    from streamgauge.cli.running import RunRequest, run_command

    on_it = on_machine(machine, way, jobs, brought)
    with placed(on, out, jobs=1 if jobs is None else jobs) as (folder, elsewhere):
        return run_command(
            RunRequest(
                names=names,
                mode=emus(machine, mode),
                seed=seed,
                repeat=repeat,
                settings=settings or [],
                out=folder,
                machine=on_it.folder,
                keep=keep,
                way=on_it.way,
                brought=on_it.brought,
                capture=capture,
                jobs=on_it.jobs,
                replace=replace,
                verify=verify,
                as_json=as_json,
                files=GateFiles(junit, summary),
                elsewhere=elsewhere,
            )
        )


def _reproduce(
    names: Names,
    mutants: Annotated[
        bool,
        typer.Option(
            "--mutants", help="Also run with the mechanism removed that a check is about: it must then fail."
        ),
    ] = False,
    robust: Annotated[
        bool, typer.Option("--robust", help="Also run with what else might have been assumed.")
    ] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", metavar="NAME", help="Of a paper: only this reading of it. Default: all compared."
        ),
    ] = None,
    mode: Annotated[
        Literal["sim", "emu", "both"] | None,
        typer.Option(
            "--mode",
            help="Default: the first that the scenario supports and this machine can do. Of a paper also "
            "both: sim, then emu of what can be emulated.",
        ),
    ] = None,
    seed: SeedOption = None,
    repeat: RepeatOption = None,
    settings: SetOption = None,
    out: OutOption = "runs",
    on: OnOption = None,
    keep: Annotated[
        Keep | None,
        typer.Option(
            "--keep",
            help="How much of each record is stored. Default: packets; of a whole paper, metrics.",
        ),
    ] = None,
    way: WayOption = None,
    machine: MachineOption = "host",
    jobs: JobsOption = None,
    replace: ReplaceOption = None,
    verify: VerifyOption = False,
    junit: JunitOption = None,
    summary: SummaryOption = None,
    as_json: JsonOption = False,
) -> int:
    """Run catalogue scenarios in full and compare with what was published.

    The name of a paper alone ([b]darwin[/b], [b]ccn[/b]) is all of it: its tables beside ours, its figures
    in its own form, and which reading of it explains it, also as a page (docs/papers.md). Trials of the other
    mode in DIR, and those of the other machine, stand beside. The names of several papers are all that they
    claim, in one table.

    [b]Examples[/b]

      streamgauge reproduce darwin --mutants --robust

      streamgauge reproduce darwin --mode both --machine virtual

      streamgauge reproduce hessler darwin realvideo windows-media ccn --mode sim

      streamgauge reproduce 'hessler/ftp-*' --mode sim

      streamgauge reproduce '*' --mode sim --mutants
    """
    from streamgauge.cli.elsewhere import placed
    from streamgauge.cli.gating import GateFiles
    from streamgauge.cli.reproducing import check_preset, papers_of, reproduce_paper, reproduce_papers
    from streamgauge.cli.running import RunRequest, run_command
    from streamgauge.errors import ScenarioError

    papers = papers_of(names)
    if preset is not None:
        check_preset(papers, preset, names)
    both = mode == "both"
    if both and len(papers) != 1:
        raise ScenarioError(
            f"--mode both is for one whole paper, and '{' '.join(names)}' is none"
            if not papers
            else f"--mode both is for one paper, and '{' '.join(names)}' are {len(papers)}",
            hint="run it with --mode sim and again with --mode emu",
        )
    on_it = on_machine(machine, way, jobs)
    with placed(on, out, jobs=1 if jobs is None else jobs) as (folder, elsewhere):
        request = RunRequest(
            names=names,
            mode=emus(machine, None if mode == "both" else mode),
            seed=seed,
            repeat=repeat,
            settings=settings or [],
            out=folder,
            machine=on_it.folder,
            keep=keep or ("metrics" if papers else "packets"),
            way=on_it.way,
            jobs=on_it.jobs,
            replace=replace,
            verify=verify,
            as_json=as_json,
            files=GateFiles(junit, summary),
            mutants=mutants,
            robust=robust,
            elsewhere=elsewhere,
        )
        match papers:
            case []:
                return run_command(request)
            case [paper]:
                return reproduce_paper(paper, request, preset, both=both)
            case _:
                return reproduce_papers(papers, request)


def _worker(
    on: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS|FILE", help="The Dask scheduler, as --on of run and reproduce takes it."
        ),
    ],
    processes: Annotated[
        int | None,
        typer.Option("--processes", metavar="N", min=1, help="How many. Default: one a processor."),
    ] = None,
    emu: Annotated[
        bool | None,
        typer.Option(
            "--emu/--no-emu",
            help="Whether emu trials may come, one at a time. Default: if doctor says that they can run.",
        ),
    ] = None,
) -> int:
    """Give this machine's processors to a Dask cluster until Ctrl-C, one of its workers for emu trials.

    A plain [b]dask worker[/b] does for sim as well (docs/cluster.md).

    [b]Example[/b]

      streamgauge worker tcp://scheduler:8786
    """
    from streamgauge.cli.working import worker_command

    return worker_command(on, processes, emu)
