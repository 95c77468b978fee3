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
    """Say what this machine can do, why not, and the remedy. Exit status 4 if emu cannot run.

    [b]Example[/b]

      streamgauge doctor
    """
    from streamgauge.cli.looking import doctor_command

    return doctor_command(way, as_json)


def _calibrate(
    way: WayOption = None,
    machine: MachineOption = "host",
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

      streamgauge calibrate --machine virtual

      streamgauge calibrate --out calibration.png --out calibration.json
    """
    from streamgauge.cli.calibrating import calibrate_command

    return calibrate_command(on_machine(machine, way, None).way, quick, out or [], as_json)


def _crosscheck(
    what: Annotated[
        Literal["tcp", "abr", "systems"],
        typer.Argument(
            metavar="tcp|abr|systems",
            help="tcp: congestion controls; abr: players of adaptive bit rate; systems: each of ours.",
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option("--quick", help="12 to 20 s a trial and fewer of them: for looking, never for docs."),
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
            help="systems: so many drawn conditions of each. Default: 10.",
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case", metavar="GLOB", help="Only cases whose ids match, 'reno/*', 'hlsjs/*'; repeatable."
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            metavar="N",
            min=2,
            max=99,
            help="Valid real trials of each case and, in proportion, simulated ones; of mixes with BBR four "
            "times as many. Default: by case; 5 of tcp.",
        ),
    ] = None,
    with_: Annotated[
        Literal["ns3"] | None, typer.Option("--with", help="tcp: ns3, ns-3 as a third column.")
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
        typer.Option(
            "--docs",
            metavar="FILE",
            help="Fill the page's measured parts and figures; it names the cases that --case leaves out.",
        ),
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--also",
            metavar="FILE",
            help="Join what another run left there (crosscheck*.json), such as one with another --machine; "
            "repeatable. Of a case that several have, the one with most valid real trials counts.",
        ),
    ] = None,
    jobs: JobsOption = None,
    way: WayOption = None,
    machine: MachineOption = "host",
    as_json: JsonOption = False,
) -> int:
    """Hold what is simulated against the real thing: TCP against the kernel's, players and systems against
    themselves.

    The same scenarios run in both modes. Of tcp, loss, intervals between losses, RTT, the window's sawtooth,
    shares and completion times (docs/fidelity.md), of abr, chosen bit rate, changes of level, stalls and
    start-up of dash.js, hls.js and Shaka on drawn links (docs/fidelity-abr.md), of systems what each of ours
    sends, loses and shows on real sockets (docs/fidelity-systems.md) are compared by an equivalence test
    against emu's own run-to-run spread; what is wrong on purpose must be rejected. Exit status 1 if
    something of that is not, or if more than two rows differ unexplained; 2 if something cannot be told.

    [b]Examples[/b]

      streamgauge crosscheck tcp --quick --case 'reno/*'

      streamgauge crosscheck tcp --against sim --case 'cubic/*'

      streamgauge crosscheck tcp --jobs 4 --docs docs/fidelity.md

      streamgauge crosscheck tcp --machine virtual --case 'bic/*'

      streamgauge crosscheck abr --quick --case 'dashjs/*'

      streamgauge crosscheck systems --systems rtp,darwin --conditions 3
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
    return crosscheck_command(request, docs, also or [], as_json)


def _verify(
    directories: Annotated[
        list[str],
        typer.Argument(metavar="DIR|URL...", help="Records, or folders or URLs with records below."),
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
    from contextlib import ExitStack

    from streamgauge.cli.elsewhere import local_copy
    from streamgauge.cli.verifying import verify_command

    with ExitStack() as stack:
        folders = {stack.enter_context(local_copy(one, large=True)): one for one in directories}
        return verify_command(folders, replay, as_json)
