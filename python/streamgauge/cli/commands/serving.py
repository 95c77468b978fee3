"""``serve``, ``play`` and ``proxy``: the engine's own programs, under our name."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from streamgauge.cli.commands.register import register

if TYPE_CHECKING:
    from streamgauge.systems.machines import Machine

__all__ = ["add"]


def add(app: typer.Typer) -> None:
    """Adds the commands to `app`."""
    register(app, "Stream", "serve", _serve, no_args_is_help=True)
    register(app, "Stream", "play", _play, no_args_is_help=True)
    register(app, "Stream", "proxy", _proxy, no_args_is_help=True)


def _become(command: str, arguments: Iterable[str], options: Mapping[str, object]) -> NoReturn:
    """Replaces this process by the engine's `command`: signals, streams and exit status are the engine's.

    An option with None or False as its value is left out; True is a bare option; a list is repeated.
    CannotRunError if the engine is missing.
    """
    words = [f"streamgauge {command}", command]
    for name, value in options.items():
        if value is True:
            words.append(name)
        elif isinstance(value, list | tuple):
            words += [f"{name}={one}" for one in value]
        elif value is not None and value is not False:
            words.append(f"{name}={value}")
    from streamgauge.emu.engine import engine

    program = engine()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, [*words, "--", *arguments])


def _one_of(words: Callable[[Machine], Iterable[str]]) -> Callable[[str | None], str | None]:
    """Refuses an option that is none of the `words` of any of our systems, and lists them."""

    def check(given: str | None) -> str | None:
        if given is None:
            return None
        # Imported here alone: other commands do not wait for it.
        from streamgauge.systems.machines import MACHINES

        known = list(dict.fromkeys(word for machine in MACHINES.values() for word in words(machine)))
        if given not in known:
            raise typer.BadParameter(f"{given!r} is not one of {', '.join(known)}.")
        return given

    return check


def _serve(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A file, or a folder: .mp4, .m4v, .mov, RealMedia's .rm, Windows Media's .wmv.",
        ),
    ],
    system: Annotated[
        str,
        typer.Option(
            "--system",
            metavar="NAME",
            help="The server to behave as. An unknown name lists them.",
            callback=_one_of(lambda machine: [] if machine.server is None else [machine.name]),
        ),
    ],
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDR:PORT",
            help="Default: 0.0.0.0:8554 (RTSP; root: 554), 8080 (HTTP; root: 80) or 6363 (NDN). Port 0 picks"
            " a free port.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Constants: source (the real server's; default), paper (a paper's) or fitted (to its "
            "tables).",
            callback=_one_of(lambda machine: () if machine.server is None else machine.server.presets),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set one constant. A time has its unit, such as 250ms. Repeatable.",
        ),
    ] = None,
    max_sessions: Annotated[
        int,
        typer.Option(
            "--max-sessions",
            metavar="N",
            min=1,
            help="Maximum number of concurrent clients; further ones get 503.",
        ),
    ] = 1000,
    max_per_address: Annotated[
        int,
        typer.Option(
            "--max-per-address",
            metavar="N",
            min=1,
            help="Maximum number of concurrent clients of one address.",
        ),
    ] = 250,
    request_within: Annotated[
        float,
        typer.Option(
            "--request-within",
            metavar="S",
            help="Maximum seconds for a complete request, from the connection or its first byte.",
        ),
    ] = 30,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="S",
            help="Idle timeout for a client. Default: the preset's.",
        ),
    ] = None,
    udp_ports: Annotated[
        str, typer.Option("--udp-ports", metavar="FIRST-LAST", help="Ports of RTP and RTCP.")
    ] = "6970-14999",
    cache: Annotated[
        int, typer.Option("--cache", metavar="MIB", min=1, help="Maximum size of files in memory.")
    ] = 1024,
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="FILE|-",
            help="Write windows, cuts and retransmissions as JSON lines; - is stdout.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print sessions as JSON lines on stdout.")] = False,
) -> None:
    r"""Serve video files with the protocol of a system.

    [b]darwin[/b]: RTSP as Apple's Darwin Streaming Server, with Reliable UDP on request. [b]http[/b]:
    HTTP/1.1, whole files and ranges. [b]dash[/b]: ladders as DASH and HLS. [b]ccn[/b]: the same for NDN
    programs. [b]realvideo[/b]: RealMedia files by RDT. [b]windows_media[/b]: Windows Media files as
    Microsoft's server.

    sim runs the same server; here it uses real sockets. A URL is a path below DIR: rtsp://HOST:PORT/clip.mp4,
    http://HOST:PORT/clip.mp4 or ndn://HOST:PORT/clip/ladder/manifest.mpd. Ctrl-C ends the server
    (docs/serve.md).

    [b]Examples[/b]

      streamgauge serve --system darwin videos

      streamgauge serve --system darwin --listen 127.0.0.1:8554 \
        --preset paper videos

      streamgauge serve --system darwin --set reliable_udp=false \
        --log windows.jsonl videos

      streamgauge serve --system http --listen 127.0.0.1:8080 videos

    Exit status: 0 ended by a signal, 3 bad input, 4 occupied port or no permission.
    """
    _become(
        "serve",
        [str(directory)],
        {
            "--system": system,
            "--listen": listen,
            "--preset": preset,
            "--set": settings,
            "--max-sessions": max_sessions,
            "--max-per-address": max_per_address,
            "--request-within": request_within,
            "--timeout": timeout,
            "--udp-ports": udp_ports,
            "--cache": cache,
            "--log": log,
            "--json": as_json,
        },
    )


def _play(
    url: Annotated[str, typer.Argument(metavar="URL", help="SCHEME://HOST[:PORT]/PATH")],
    player: Annotated[
        str | None,
        typer.Option(
            "--player",
            metavar="NAME",
            help="The player. RTSP: quicktime (default) or vlc; .rm: realplayer8 (default) or realplayer10; "
            ".wmv: wmp9 (default) or wmp9-helix.",
            callback=_one_of(lambda machine: () if machine.player is None else machine.player.players),
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            "--transport",
            metavar="NAME",
            help="Transport of the media, where there is a choice. RTSP: udp (default) or tcp.",
            callback=_one_of(lambda machine: () if machine.player is None else machine.player.transports),
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option("--duration", metavar="S", help="Stop after this many seconds. Default: at the end."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set one of the player's constants. A time has its unit. Repeatable.",
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST",
            help="Another host that redirections and manifests may name; * for all. Repeatable.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write the shown media. RTP: the frames that arrived by their deadline.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option("--events", metavar="FILE", help="Write frames, stalls and buffer as JSON lines."),
    ] = None,
    udp_ports: Annotated[
        str, typer.Option("--udp-ports", metavar="FIRST-LAST", help="Ports of RTP and RTCP.")
    ] = "16384-32767",
    progress: Annotated[
        bool, typer.Option("--progress", help="Print a line a second, also without a terminal.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")] = False,
) -> None:
    r"""Play a URL without a window, and report the viewer's experience.

    sim runs the same player; here it uses real sockets. Any server works (docs/serve.md). Ctrl-C ends it and
    prints the report.

    [b]quicktime[/b] requests Apple's Reliable UDP, and [b]vlc[/b] does not. [b]realplayer8[/b] plays
    RealNetworks' RDT from .rm files. [b]wmp9[/b] plays Microsoft's streams from .wmv files.

    [b]Examples[/b]

      streamgauge play rtsp://127.0.0.1:8554/clip.mp4

      streamgauge play rtsp://127.0.0.1:8554/clip.mp4 --player vlc --json

      streamgauge play rtsp://127.0.0.1:8554/clip.mp4 --transport tcp \
        --save clip.h264

      streamgauge play rtsp://127.0.0.1:8554/film.rm --transport tcp

      streamgauge play rtsp://127.0.0.1:8554/film.wmv --save saved.wmv

      streamgauge play http://127.0.0.1:8080/clip.mp4 --set read_ahead=10s

      streamgauge play ndn://127.0.0.1:6363/clip/ladder/manifest.mpd

    Exit status: 0 played, 1 ended early, 3 bad input or missing file, 4 cannot connect.
    """
    _become(
        "play",
        [url],
        {
            "--player": player,
            "--transport": transport,
            "--duration": duration,
            "--set": settings,
            "--allow-host": allowed_hosts,
            "--save": save,
            "--events": events,
            "--udp-ports": udp_ports,
            "--progress": progress,
            "--json": as_json,
        },
    )


def _proxy(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="SCHEME://HOST[:PORT]/PATH: the forwarder to ask, and the prefix of names."
        ),
    ],
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="ADDR:PORT", help="Address for players. Port 0 picks a free port."),
    ] = "127.0.0.1:8080",
    preset: Annotated[
        str | None,
        typer.Option("--preset", metavar="NAME", help="A set of constants. An unknown name lists them."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set one constant; times have a unit, 250ms. Repeatable."
        ),
    ] = None,
    max_connections: Annotated[
        int,
        typer.Option(
            "--max-connections",
            metavar="N",
            min=1,
            help="Maximum number of concurrent connections; further ones wait.",
        ),
    ] = 200,
    max_per_address: Annotated[
        int,
        typer.Option(
            "--max-per-address",
            metavar="N",
            min=1,
            help="Maximum number of connections of one address; further ones are closed.",
        ),
    ] = 50,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="FILE|-", help="Write windows and timeouts as JSON lines; - is stdout."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print requests as JSON lines on stdout.")] = False,
) -> None:
    r"""Serve content from a network of named content to any player of HTTP.

    Each request becomes Interests for the segments below PATH. Their data becomes the response. HEAD and byte
    ranges work, and pages of any origin may read the responses.

    Errors: 404 unknown name, 502 no route, 504 timeout. Players of one proxy share its content store. Ctrl-C
    ends it (docs/ccn.md).

    [b]Examples[/b]

      streamgauge proxy ndn://127.0.0.1:6363/clip

      mpv http://127.0.0.1:8080/ladder/manifest.mpd

      streamgauge proxy ndn://127.0.0.1:6363/clip --listen 127.0.0.1:8081 \
        --set window_control=cubic --set retransmission=rto

    Exit status: 0 ended by a signal, 3 bad input, 4 cannot run: no forwarder, or an occupied port.
    """
    _become(
        "proxy",
        [url],
        {
            "--listen": listen,
            "--preset": preset,
            "--set": settings,
            "--max-connections": max_connections,
            "--max-per-address": max_per_address,
            "--log": log,
            "--json": as_json,
        },
    )
