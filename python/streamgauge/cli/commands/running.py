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
    LiveOption,
    LivePortOption,
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
    reading: Annotated[
        str | None,
        typer.Option(
            "--reading", metavar="NAME", help="Run a paper's scenarios under this reading (docs/papers.md)."
        ),
    ] = None,
    settings: SetOption = None,
    out: OutOption = "runs",
    on: OnOption = None,
    keep: Annotated[Keep, typer.Option("--keep", help="Parts of each record to store.")] = "packets",
    way: WayOption = None,
    machine: MachineOption = "host",
    brought: WithOption = None,
    qlog: Annotated[
        bool, typer.Option("--qlog", help="Write each flow's congestion control as qlog, for qvis.")
    ] = False,
    capture: Annotated[
        bool, typer.Option("--capture", help="Keep capture.pcapng, which Wireshark opens.")
    ] = False,
    jobs: JobsOption = None,
    replace: ReplaceOption = None,
    verify: VerifyOption = False,
    live: LiveOption = None,
    live_port: LivePortOption = 0,
    pace: Annotated[
        float, typer.Option("--pace", metavar="X", help="sim with --live: seconds of the trial in a second.")
    ] = 1.0,
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

      streamgauge run today/demo-rtsp-udp-medium --live

      streamgauge run my.yaml --junit junit.xml --summary summary.md
      streamgauge run my.yaml --repeat 1000 \
        --on tcp://scheduler:8786 --out s3://bucket/run-1
    """
    from streamgauge.cli.elsewhere import placed
    from streamgauge.cli.gating import GateFiles
    from streamgauge.cli.running import RunRequest, run_command, under_reading

    on_it = on_machine(machine, way, jobs, brought)
    if live is not None:
        from streamgauge.cli.showing import run_shown

        return run_shown(
            names,
            emus(machine, mode),
            live,
            port=live_port,
            pace=pace,
            seed=seed,
            repeat=repeat,
            settings=under_reading(names, settings or [], reading),
            out=out,
            way=on_it.way,
            capture=capture,
            elsewhere=on,
        )
    with placed(on, out, jobs=1 if jobs is None else jobs) as (folder, elsewhere):
        return run_command(
            RunRequest(
                names=names,
                mode=emus(machine, mode),
                seed=seed,
                repeat=repeat,
                settings=under_reading(names, settings or [], reading),
                out=folder,
                machine=on_it.folder,
                keep=keep,
                way=on_it.way,
                brought=on_it.brought,
                capture=capture,
                qlog=qlog,
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
            "--mutants",
            help="Also run the mutants of each check. A check must fail on its mutants.",
        ),
    ] = False,
    robust: Annotated[
        bool, typer.Option("--robust", help="Also run with the other plausible assumptions.")
    ] = False,
    reading: Annotated[
        str | None,
        typer.Option(
            "--reading",
            metavar="NAME|all",
            help="Run only this preset of a paper (docs/papers.md). Default: sources, and the best preset.",
        ),
    ] = None,
    mode: Annotated[
        Literal["sim", "emu", "both"] | None,
        typer.Option(
            "--mode",
            help="Default: the first that the scenario supports and this machine can run. For a paper also "
            "both: sim, then emu.",
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
            help="Parts of each record to store. Default: packets; for a whole paper, metrics.",
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
    """Run catalogue scenarios in full and compare them with published results.

    The name of a paper ([b]darwin[/b], [b]ccn[/b]) selects all of it. Its tables and figures appear beside
    ours, also as a page (docs/papers.md). Trials of the other mode and machine in DIR are shown too. Several
    papers make one table of all claims.

    [b]Examples[/b]

      streamgauge reproduce darwin --mutants --robust

      streamgauge reproduce darwin --mode both --machine virtual

      streamgauge reproduce darwin --reading paper

      streamgauge reproduce hessler darwin realvideo windows-media ccn --mode sim

      streamgauge reproduce 'hessler/ftp-*' --mode sim

      streamgauge reproduce '*' --mode sim --mutants
    """
    from streamgauge.cli.elsewhere import placed
    from streamgauge.cli.gating import GateFiles
    from streamgauge.cli.reproducing import ALL, papers_of, readings_to_run, reproduce_paper, reproduce_papers
    from streamgauge.cli.running import RunRequest, run_command, under_reading
    from streamgauge.errors import ScenarioError

    papers = papers_of(names)
    if papers:
        readings_to_run(papers, reading)
    elif reading == ALL:
        raise ScenarioError(
            f"--reading all is for whole papers, and '{' '.join(names)}' is none", hint="name one reading"
        )
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
            settings=(settings or []) if papers else under_reading(names, settings or [], reading),
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
                return reproduce_paper(paper, request, reading, both=both)
            case _:
                return reproduce_papers(papers, request, reading)


def _worker(
    on: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS|FILE", help="The Dask scheduler, as --on of run and reproduce takes it."
        ),
    ],
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", metavar="N", min=1, help="Number of processes. Default: one for each processor."
        ),
    ] = None,
    emu: Annotated[
        bool | None,
        typer.Option(
            "--emu/--no-emu",
            help="Accept emu trials, one at a time. Default: if doctor finds that emu can run.",
        ),
    ] = None,
) -> int:
    """Give this machine's processors to a Dask cluster until Ctrl-C.

    One worker runs emu trials. A plain [b]dask worker[/b] is enough for sim (docs/cluster.md).

    [b]Example[/b]

      streamgauge worker tcp://scheduler:8786
    """
    from streamgauge.cli.working import worker_command

    return worker_command(on, processes, emu)
