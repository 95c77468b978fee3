"""The commands and their options."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamgauge import __version__
from streamgauge.cli.serving import add_streaming
from streamgauge.errors import ScenarioError

__all__ = ["command"]

_APP_HELP = """Measure how streaming media behaves when the network gets tight.

A scenario is one experiment as data: a path, the flows on it, and what is expected. It runs in [b]sim[/b]
(virtual time, any machine) or [b]emu[/b] (real servers and players through our link emulator), and both leave
the same record.

[b]Examples[/b]

  streamgauge run hessler/ftp-heavy
  streamgauge run my.yaml --set path.down.rate=300kbit/s --repeat 5
  streamgauge reproduce 'hessler/*' --mode sim --mutants
  streamgauge report runs

Exit status: 0 every check passes, 1 a check failed, 2 inconclusive or more than a third of the trials
invalid, 3 bad input, 4 this machine cannot.
"""

app = typer.Typer(
    help=_APP_HELP,
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command() -> Any:
    """The command that `main` runs."""
    return typer.main.get_command(app)


Names = Annotated[
    list[str], typer.Argument(metavar="FILE|ID...", help="Scenario files, ids, or globs of ids.")
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
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Where records go; a rerun resumes there. With --set, by default a folder of its own below.",
    ),
]
KeepOption = Annotated[
    Literal["metrics", "events", "packets"], typer.Option("--keep", help="How much of each record is stored.")
]
WayOption = Annotated[
    Literal["root", "user"] | None,
    typer.Option("--way", help="emu's sandbox: as root, or as an ordinary user. Default: by who you are."),
]
CaptureOption = Annotated[
    bool, typer.Option("--capture", help="emu: keep capture.pcapng, which Wireshark opens.")
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
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"streamgauge {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command(rich_help_panel="Run")
def run(
    names: Names,
    mode: ModeOption = None,
    seed: SeedOption = None,
    repeat: RepeatOption = None,
    settings: SetOption = None,
    out: OutOption = Path("runs"),
    keep: KeepOption = "packets",
    way: WayOption = None,
    capture: CaptureOption = False,
    jobs: JobsOption = 1,
    as_json: JsonOption = False,
) -> int:
    """Run scenarios and judge their checks.

    [b]Examples[/b]

      streamgauge run hessler/ftp-no --mode sim --seed 1

      streamgauge run today/demo-rtsp-udp-medium --set path.down.rate=300kbit/s

      streamgauge run my.yaml --repeat 5 --json > result.json
    """
    from streamgauge.cli.running import Request, run_command

    return run_command(
        Request(
            names=names,
            mode=mode,
            seed=seed,
            repeat=repeat,
            settings=settings or [],
            out=out,
            keep=keep,
            way=way,
            capture=capture,
            jobs=jobs,
            as_json=as_json,
        )
    )


@app.command(rich_help_panel="Run")
def reproduce(
    names: Names,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Also remove each check's mechanism; the check must then fail.")
    ] = False,
    robust: Annotated[
        bool, typer.Option("--robust", help="Also run with what else might have been assumed.")
    ] = False,
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="Of a paper: only this reading of it. Default: all."),
    ] = None,
    mode: ModeOption = None,
    seed: SeedOption = None,
    repeat: RepeatOption = None,
    settings: SetOption = None,
    out: OutOption = Path("runs"),
    keep: Annotated[
        Literal["metrics", "events", "packets"] | None,
        typer.Option(
            "--keep",
            help="How much of each record is stored. Default: packets; of a whole paper, metrics.",
        ),
    ] = None,
    way: WayOption = None,
    jobs: JobsOption = 1,
    as_json: JsonOption = False,
) -> int:
    """Run catalogue scenarios in full and compare with what was published.

    The name of a paper alone ([b]darwin[/b]) is all of it: its tables beside ours, its figures in its own
    form, and which reading of it explains it, also as a page. Trials of the other mode in DIR stand beside.

    [b]Examples[/b]

      streamgauge reproduce darwin --mutants --robust

      streamgauge reproduce 'hessler/ftp-*' --mode sim

      streamgauge reproduce '*' --mode sim --mutants
    """
    from streamgauge.cli.reproducing import paper_of, reproduce_paper
    from streamgauge.cli.running import Request, run_command

    paper = paper_of(names)
    if paper is None and preset is not None:
        raise ScenarioError(f"--preset is for a whole paper, and '{' '.join(names)}' is none")

    def do(request: Request) -> int:
        return run_command(request) if paper is None else reproduce_paper(paper, request, preset)

    return do(
        Request(
            names=names,
            mode=mode,
            seed=seed,
            repeat=repeat,
            settings=settings or [],
            out=out,
            keep=keep or ("packets" if paper is None else "metrics"),
            way=way,
            capture=False,
            jobs=jobs,
            as_json=as_json,
            mutants=mutants,
            robust=robust,
        )
    )


# A paragraph is one line: the help breaks it to the terminal's width.
_LINK_HELP = r"""Run any command behind an emulated path, without root.

COMMAND's only way out is the path; it keeps its terminal, files, user, signals and exit status. \
A direction reads as in a scenario: [b]rate[/b], [b]queue[/b] (bytes, packets or time; drop-tail unless it \
names a discipline), [b]delay[/b], [b]jitter[/b], [b]loss[/b] and more (docs/link-command.md).

[b]What is at the far end[/b]

--server CMD runs in a fresh namespace there; its address is $STREAMGAUGE_SERVER for both. Without it \
the far end is your own namespace if you may change that: as root, where $STREAMGAUGE_SERVER is this \
machine, reached through the path, or inside another link, so that links chain. An ordinary user at top \
level has no such right: then the far end is empty, and there is no way to the internet; let --server be \
the other side. Packets leave the machine only with --internet, as root.

[b]Examples[/b]

  streamgauge link --down 'rate 1 Mbit/s, queue 10 kB, delay 20 ms' |
    --server 'python3 -m http.server' |
    -- sh -c 'curl -so /dev/null http://$STREAMGAUGE_SERVER:8000/file'

  streamgauge link --down 'delay 40 ms' -- |
    streamgauge link --down 'loss 1 %' -- bash

  sudo streamgauge link --preset lte --internet -- |
    curl -O https://example.org/file

  streamgauge link --trace lte.trace --log runs/lte |
    --server 'iperf3 -s -1' -- sh -c 'iperf3 -R -c $STREAMGAUGE_SERVER'

A summary follows on stderr. Exit status: the command's (128 + n after signal n); 3 bad input, 4 this \
machine cannot, 126 or 127 if the command cannot be run.
""".replace("\\\n", "").replace("|\n", "\\\n")


@app.command(
    rich_help_panel="Run",
    help=_LINK_HELP,
    no_args_is_help=True,
    context_settings={"allow_interspersed_args": False},
)
def link(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="The command and its arguments.")
    ],
    down: Annotated[
        str | None,
        typer.Option("--down", metavar="PATH", help="Towards the command, 'rate 1 Mbit/s, delay 20 ms'."),
    ] = None,
    up: Annotated[str | None, typer.Option("--up", metavar="PATH", help="From the command.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="A path of 'streamgauge presets'; --down and --up change parts of it.",
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", metavar="FILE|NAME", help="The down rate by a trace: a file, or one that ships."
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            "--server", metavar="CMD", help="A shell line to run at the far end, in a namespace of its own."
        ),
    ] = None,
    internet: Annotated[
        bool, typer.Option("--internet", help="Let packets out of this machine (root, nftables).")
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="DIR", help="Keep the record, which 'streamgauge report DIR' draws."),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option("--capture", metavar="FILE", help="Keep a capture that Wireshark opens.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random loss and jitter.")] = 1,
    preflight: Annotated[
        bool, typer.Option("--preflight/--no-preflight", help="Measure the empty path first.")
    ] = True,
    drain: Annotated[
        bool,
        typer.Option("--drain/--no-drain", help="Let what is in flight arrive when the command has ended."),
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks and no summary.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The summary as one line of JSON, the last on stderr.")
    ] = False,
) -> int:
    from streamgauge.cli.linking import link_command

    return link_command(
        command,
        down=down,
        up=up,
        preset=preset,
        trace=trace,
        server=server,
        internet=internet,
        log=log,
        capture=capture,
        seed=seed,
        preflight=preflight,
        drain=drain,
        quiet=quiet,
        as_json=as_json,
    )


add_streaming(app)


@app.command("list", rich_help_panel="Look")
def list_(
    pattern: Annotated[str, typer.Argument(metavar="[GLOB]", help="Only ids that match.")] = "*",
    as_json: JsonOption = False,
) -> None:
    """List the catalogue.

    [b]Example[/b]

      streamgauge list 'today/*'
    """
    from streamgauge.cli.looking import list_command

    list_command(pattern, as_json)


@app.command(rich_help_panel="Look")
def show(
    name: Annotated[str, typer.Argument(metavar="FILE|ID", help="A scenario file or an id.")],
    settings: SetOption = None,
    plan: Annotated[
        Literal["sim", "emu"] | None,
        typer.Option("--plan", help="Print the plan of a trial in this mode instead, as JSON."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The plan's seed.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Show a scenario: in words, normalised as JSON, or lowered to a trial's plan.

    [b]Examples[/b]

      streamgauge show hessler/ftp-heavy

      streamgauge show my.yaml --plan sim --seed 3
    """
    from streamgauge.cli.looking import show_command

    show_command(name, settings or [], plan, seed, as_json)


@app.command(rich_help_panel="Look")
def systems(as_json: JsonOption = False) -> None:
    """List the systems and traffic that flows may name, with their parameters.

    [b]Example[/b]

      streamgauge systems --json
    """
    from streamgauge.cli.looking import systems_command

    systems_command(as_json)


@app.command(rich_help_panel="Look")
def presets(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show this one in full.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the paths that ship, or show one: what it is, where its figures come from and what was assumed.

    [b]Examples[/b]

      streamgauge presets

      streamgauge presets lte
    """
    from streamgauge.cli.presets import presets_command

    presets_command(name, as_json)


@app.command(rich_help_panel="Look")
def doctor(way: WayOption = None, as_json: JsonOption = False) -> int:
    """Say what this machine can do, why not, and the remedy. Exit status 4 if emu cannot run.

    [b]Example[/b]

      streamgauge doctor
    """
    from streamgauge.cli.looking import doctor_command

    return doctor_command(way, as_json)


@app.command(rich_help_panel="Look")
def calibrate(
    way: WayOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="A third of the time, and wider intervals.")] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", metavar="FILE", help="Also write .png, .svg, .pdf, .html or .json; repeatable."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Measure the link emulator here and now, in about a minute, by kernel stamps at its two ends.

    Rate, delay, jitter, queue limit, loss statistics and packet-rate ceiling against what was asked for. The
    result is kept as this machine's certificate, which every emu trial and report then carries. Exit status 1
    if a bound is not kept, 2 if one cannot be told.

    [b]Examples[/b]

      streamgauge calibrate

      streamgauge calibrate --quick --json

      streamgauge calibrate --out calibration.png --out calibration.json
    """
    from streamgauge.cli.calibrating import calibrate_command

    return calibrate_command(way, quick, out or [], as_json)


@app.command(rich_help_panel="Look")
def schema() -> None:
    """Print the JSON Schema of scenario files.

    [b]Example[/b]

      streamgauge schema > scenario.schema.json
    """
    from streamgauge.scenario import json_schema

    json.dump(json_schema(), sys.stdout, indent=2)
    print()


@app.command(rich_help_panel="Look")
def verify(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Records, or folders with records below.")
    ],
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Also let the packets enter the path again: each must fare the same."),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Check that records hold what was written, and with --replay that the path did what its plan says.

    Exit status 3 if a record is damaged, 1 if one does not replay.

    [b]Example[/b]

      streamgauge verify runs --replay
    """
    from streamgauge.cli.verifying import verify_command

    return verify_command(directories, replay, as_json)


@app.command(rich_help_panel="Look")
def quality(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where run or reproduce left its records.")
    ],
    flow: Annotated[
        str | None, typer.Option("--flow", metavar="NAME", help="This flow alone. Default: all that play.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Judge the pictures that players showed against the source: SSIM and PSNR, from what arrived in time.

    For systems rtp and darwin, of records from either mode. Needs ffmpeg. What it compares with what is in
    docs/quality.md. With --json also frame by frame.

    [b]Examples[/b]

      streamgauge quality runs

      streamgauge quality runs --flow qt --json
    """
    from streamgauge.cli.judging import quality_command

    return quality_command(directory, flow, as_json)


@app.command(rich_help_panel="Run")
def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where run or reproduce left its records.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page. Default: DIR/report.html.")
    ] = None,
) -> None:
    """Write one self-contained HTML page about the trials in a folder.

    [b]Example[/b]

      streamgauge report runs --out ftp.html
    """
    from streamgauge.cli.looking import report_command

    if not directory.is_dir():
        raise ScenarioError("there is no such folder", file=directory)
    report_command(directory, out)


@app.command(rich_help_panel="Look")
def crosscheck(
    what: Annotated[Literal["tcp"], typer.Argument(metavar="tcp", help="What is compared.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="15 s a trial and fewer of them: for looking, never for docs.")
    ] = False,
    case: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="GLOB", help="Only cases whose ids match, 'reno/*'; repeatable."),
    ] = None,
    with_: Annotated[
        Literal["ns3"] | None, typer.Option("--with", help="ns3: ns-3 as a third column.")
    ] = None,
    against: Annotated[
        Literal["emu", "sim"],
        typer.Option(
            "--against",
            help="sim: the simulator against itself with other seeds, which tests the comparison.",
        ),
    ] = "emu",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where records go; a rerun resumes there.")
    ] = Path("runs/crosscheck"),
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="FILE", help="Fill the page's measured parts and figures (full run)."),
    ] = None,
    jobs: JobsOption = 1,
    way: WayOption = None,
    as_json: JsonOption = False,
) -> int:
    """Hold the simulated TCP against the kernel's, on what tells congestion controls apart.

    The same scenarios run in both modes. Loss, intervals between losses, RTT, the window's sawtooth, shares
    and completion times are compared by an equivalence test against emu's own run-to-run spread; simulated
    TCPs that are wrong on purpose must be rejected (docs/fidelity.md). Exit status 1 if one is not, or if
    more than two rows differ unexplained; 2 if something cannot be told.

    [b]Examples[/b]

      streamgauge crosscheck tcp --quick --case 'reno/*'

      streamgauge crosscheck tcp --against sim --case 'cubic/*'

      streamgauge crosscheck tcp --jobs 4 --docs docs/fidelity.md
    """
    del what
    from streamgauge.campaign import EmuSettings
    from streamgauge.cli.crosschecking import crosscheck_command
    from streamgauge.crosscheck import Request

    request = Request(
        out=out,
        patterns=case or [],
        quick=quick,
        ns3=with_ == "ns3",
        reference=against,
        emu=EmuSettings(way=way, jobs=jobs),
    )
    return crosscheck_command(request, docs, as_json)
