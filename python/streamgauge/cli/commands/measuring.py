"""``doctor``, ``calibrate``, ``crosscheck``, ``verify``: how far the instrument can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamgauge.cli.commands.register import register
from streamgauge.cli.options import JobsOption, JsonOption, MachineOption, WayOption, on_machine

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the commands to `app`."""
    register(app, "Instrument", "doctor", _doctor)
    register(app, "Instrument", "calibrate", _calibrate)
    register(app, "Instrument", "crosscheck", _crosscheck)
    register(app, "Instrument", "verify", _verify)


def _doctor(way: WayOption = None, as_json: JsonOption = False) -> int:
    """List the abilities of this machine, with reasons and remedies. Exit status 4 if emu cannot run.

    [b]Example[/b]

      streamgauge doctor
    """
    from streamgauge.cli.looking import doctor_command

    return doctor_command(way, as_json)


def _calibrate(
    way: WayOption = None,
    machine: MachineOption = "host",
    quick: Annotated[
        bool, typer.Option("--quick", help="Take a third of the time, with wider intervals.")
    ] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", metavar="FILE", help="Also write .png, .svg, .pdf, .html or .json; repeatable."
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Measure with a live page open, and keep no certificate.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Measure the link emulator on this machine, in about a minute, by kernel time stamps.

    It compares rate, delay, jitter, queue limit, loss and packet rate with the request. The result is this
    machine's certificate, and later emu trials and reports carry it.

    Exit status: 0 within all bounds, 1 outside a bound, 2 undecided.

    [b]Examples[/b]

      streamgauge calibrate

      streamgauge calibrate --quick --json

      streamgauge calibrate --machine virtual

      streamgauge calibrate --live

      streamgauge calibrate --out calibration.png --out calibration.json
    """
    from streamgauge.cli.calibrating import calibrate_command

    return calibrate_command(on_machine(machine, way, None).way, quick, out or [], as_json, live=live)


def _crosscheck(
    what: Annotated[
        Literal["tcp", "abr", "systems", "contribution"],
        typer.Argument(
            metavar="tcp|abr|systems|contribution",
            help="tcp: congestion controls; abr: players; systems: ours; contribution: programs of others.",
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Run fewer and shorter trials, 12 to 20 s each. Not for docs."),
    ] = False,
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems", metavar="NAME,...", help="systems: only these, such as 'rtp,realvideo-udp'."
        ),
    ] = None,
    conditions: Annotated[
        int | None,
        typer.Option(
            "--conditions",
            metavar="N",
            min=1,
            max=99,
            help="systems: number of drawn conditions of each. Default: 10.",
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case", metavar="GLOB", help="Only cases with a matching id: 'reno/*', 'hlsjs/*'. Repeatable."
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            metavar="N",
            min=2,
            max=99,
            help="Valid real trials of each case, and simulated ones in proportion. Mixes with BBR run four "
            "times as many. Default: by case; tcp: 5.",
        ),
    ] = None,
    with_: Annotated[
        Literal["ns3"] | None, typer.Option("--with", help="tcp: ns3 adds ns-3 as a third column.")
    ] = None,
    against: Annotated[
        Literal["emu", "sim"],
        typer.Option(
            "--against",
            help="sim: compare the simulator with itself under other seeds, as a test of the comparison.",
        ),
    ] = "emu",
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for records; a rerun resumes there.")
    ] = Path("runs/crosscheck"),
    docs: Annotated[
        Path | None,
        typer.Option(
            "--docs",
            metavar="FILE",
            help="Fill the page's measured parts and figures. Cases that --case excludes are listed.",
        ),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--also",
            metavar="FILE",
            help="Merge the result of another run (crosscheck*.json), such as one with another --machine. "
            "Repeatable. Among several results of a case, most valid real trials win.",
        ),
    ] = None,
    real: Annotated[
        list[Path] | None,
        typer.Option(
            "--real",
            metavar="FILE",
            help="abr: take the real trials of an earlier run from its crosscheck-abr.json; repeatable, and "
            "trials of a case count together.",
        ),
    ] = None,
    jobs: JobsOption = None,
    way: WayOption = None,
    machine: MachineOption = "host",
    as_json: JsonOption = False,
) -> int:
    """Compare the simulator with reality: TCP with the kernel's, players and systems with themselves.

    The same scenarios run in both modes. An equivalence test compares them, by emu's own run-to-run spread.
    Deliberate errors must be rejected.

    [b]tcp[/b] compares loss, RTT, window, shares and completion times (docs/fidelity.md). [b]abr[/b] compares
    levels, stalls and start-up of dash.js, hls.js and Shaka (docs/fidelity-abr.md). [b]systems[/b] compares
    our systems on real sockets (docs/fidelity-systems.md), and for libsrt's and librist's programs
    (docs/fidelity-contribution.md).

    Exit status: 0 equivalent, 1 unexplained differences or an accepted error, 2 undecided.

    [b]Examples[/b]

      streamgauge crosscheck tcp --quick --case 'reno/*'

      streamgauge crosscheck tcp --against sim --case 'cubic/*'

      streamgauge crosscheck tcp --jobs 4 --docs docs/fidelity.md

      streamgauge crosscheck tcp --machine virtual --case 'bic/*'

      streamgauge crosscheck abr --quick --case 'dashjs/*'

      streamgauge crosscheck abr --real runs/crosscheck/crosscheck-abr.json

      streamgauge crosscheck systems --systems rtp,darwin --conditions 3

      streamgauge crosscheck contribution --machine virtual --case 'srt-libsrt/0*'
    """
    from streamgauge.campaign import EmuSettings
    from streamgauge.cli.crosschecking import asked_of, crosscheck_command
    from streamgauge.crosscheck import CrosscheckRequest

    on_it = on_machine(machine, way, jobs)
    matter, patterns = asked_of(what, case or [], systems, conditions)
    request = CrosscheckRequest(
        out=out / on_it.folder,
        matter=matter,
        patterns=patterns,
        quick=quick,
        trials=trials,
        ns3=with_ == "ns3",
        reference=against,
        emu=EmuSettings(way=on_it.way, jobs=on_it.jobs),
    )
    return crosscheck_command(request, docs, also or [], as_json, real or [])


def _verify(
    directories: Annotated[
        list[str],
        typer.Argument(metavar="DIR|URL...", help="Records, or folders or URLs with records below."),
    ],
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Also send the packets through the path again. Each must have the same fate."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Check that records are undamaged, and with --replay that the path followed its plan.

    Exit status: 3 if a record is damaged, 1 if a record does not replay.

    [b]Example[/b]

      streamgauge verify runs --replay
    """
    from contextlib import ExitStack

    from streamgauge.cli.elsewhere import local_copy
    from streamgauge.cli.verifying import verify_command

    with ExitStack() as stack:
        folders = {stack.enter_context(local_copy(one, large=True)): one for one in directories}
        return verify_command(folders, replay, as_json)
