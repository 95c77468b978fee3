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

    An option whose value is None or False is left out; True stands alone; a list is repeated.
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
        # Only here: who asks for another command does not wait for it.
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
            help="The folder with .mp4, .m4v and .mov files, of RealMedia with .rm, of Windows Media with "
            ".wmv; or one file.",
        ),
    ],
    system: Annotated[
        str,
        typer.Option(
            "--system",
            metavar="NAME",
            help="Which server it behaves as; another name lists them.",
            callback=_one_of(lambda machine: [] if machine.server is None else [machine.name]),
        ),
    ],
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDR:PORT",
            help="Default: 0.0.0.0 and as root port 554 (RTSP) or 80 (HTTP), else 8554 or 8080; of NDN 6363. "
            "Port 0: one that is free.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="NAME",
            help="Constants: what the real server has (source, the default), what a paper states (paper), "
            "or what fits its tables (fitted).",
            callback=_one_of(lambda machine: () if machine.server is None else machine.server.presets),
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One constant; times with unit, 250ms. Repeatable."),
    ] = None,
    max_sessions: Annotated[
        int, typer.Option("--max-sessions", metavar="N", min=1, help="Clients at once; others are told 503.")
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
            help="A request must be whole in this many seconds, from the connection or its first byte.",
        ),
    ] = 30,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="S",
            help="A client silent for so long has vanished. Default: as the preset has it.",
        ),
    ] = None,
    udp_ports: Annotated[
        str, typer.Option("--udp-ports", metavar="FIRST-LAST", help="Ports of RTP and RTCP.")
    ] = "6970-14999",
    cache: Annotated[
        int, typer.Option("--cache", metavar="MIB", min=1, help="Most of the files in memory.")
    ] = 1024,
    log: Annotated[
        str | None,
        typer.Option(
            "--log", metavar="FILE|-", help="Windows, cuts, retransmissions as JSON lines; - is stdout."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Sessions as JSON lines on stdout.")] = False,
) -> None:
    r"""Serve video files as one of our systems does.

    With [b]--system darwin[/b] by RTSP, as Apple's Darwin Streaming Server: any RTSP player can play them,
    and one that asks for Apple's Reliable UDP gets it; with [b]--system http[/b] by HTTP/1.1, whole and by
    ranges; with [b]--system dash[/b] ladders as DASH and HLS; with [b]--system ccn[/b] the same by names, to
    NDN programs; with [b]--system realvideo[/b] RealMedia files by RDT; with [b]--system windows_media[/b]
    those of Windows Media as Microsoft's server. The server is the machine that sim runs, on real sockets.
    URLs are paths beneath DIR: rtsp://HOST:PORT/clip.mp4, http://HOST:PORT/clip.mp4, and beneath the prefix
    of all names ndn://HOST:PORT/clip/ladder/manifest.mpd. Ctrl-C ends it
    (docs/serve.md).

    [b]Examples[/b]

      streamgauge serve --system darwin videos

      streamgauge serve --system darwin --listen 127.0.0.1:8554 \
        --preset paper videos

      streamgauge serve --system darwin --set reliable_udp=false \
        --log windows.jsonl videos

      streamgauge serve --system http --listen 127.0.0.1:8080 videos

    Exit status: 0 ended by a signal, 3 bad input, 4 this machine cannot (the port is taken).
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
            help="Which player, where there are several: of RTSP quicktime (the default), vlc, realplayer8 "
            "(of .rm) or realplayer10, wmp9 (of .wmv) or wmp9-helix.",
            callback=_one_of(lambda machine: () if machine.player is None else machine.player.players),
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            "--transport",
            metavar="NAME",
            help="What carries the media, where that can be chosen: of RTSP, udp (the default) or tcp.",
            callback=_one_of(lambda machine: () if machine.player is None else machine.player.transports),
        ),
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", metavar="S", help="Stop after so long. Default: at its end.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="One of the player's constants; times with unit. Repeatable."
        ),
    ] = None,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST",
            help="Another host that redirections and manifests may lead to; * for all. Repeatable.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write what was shown: of RTP the frames that arrived by their deadline, as they decode.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option("--events", metavar="FILE", help="Frames, stalls, buffer as JSON lines."),
    ] = None,
    udp_ports: Annotated[
        str, typer.Option("--udp-ports", metavar="FIRST-LAST", help="Ports of RTP and RTCP.")
    ] = "16384-32767",
    progress: Annotated[
        bool, typer.Option("--progress", help="A line a second, also where stderr is no terminal.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON on stdout.")] = False,
) -> None:
    r"""Play a URL without a window, and report what a viewer would have seen.

    The player is the machine that sim runs, on real sockets. Of RTSP, [b]quicktime[/b] asks for Apple's
    Reliable UDP, [b]vlc[/b] does not, [b]realplayer8[/b] plays RealNetworks' RDT, which is usual of .rm, and
    [b]wmp9[/b] what Microsoft's server sends, which is usual of .wmv.
    Any server will do (docs/serve.md). Ctrl-C ends it, with the report.

    [b]Examples[/b]

      streamgauge play rtsp://127.0.0.1:8554/clip.mp4

      streamgauge play rtsp://127.0.0.1:8554/clip.mp4 --player vlc --json

      streamgauge play rtsp://127.0.0.1:8554/clip.mp4 --transport tcp \
        --save clip.h264

      streamgauge play rtsp://127.0.0.1:8554/film.rm --transport tcp

      streamgauge play rtsp://127.0.0.1:8554/film.wmv --save saved.wmv

      streamgauge play http://127.0.0.1:8080/clip.mp4 --set read_ahead=10s

      streamgauge play ndn://127.0.0.1:6363/clip/ladder/manifest.mpd

    Exit status: 0 played, 1 it ended early, 3 bad input or no such file there, 4 cannot connect.
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
        typer.Argument(metavar="URL", help="SCHEME://HOST[:PORT]/PATH: whom it asks, and beneath what."),
    ],
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="ADDR:PORT", help="Where players come; port 0: one that is free."),
    ] = "127.0.0.1:8080",
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="NAME", help="Constants; another name lists the sets.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One constant; times with unit, 250ms. Repeatable."),
    ] = None,
    max_connections: Annotated[
        int,
        typer.Option("--max-connections", metavar="N", min=1, help="Connections at once; others wait."),
    ] = 200,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE|-", help="Windows, timeouts as JSON lines; - is stdout."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Requests as JSON lines on stdout.")] = False,
) -> None:
    r"""Let any player of HTTP play what a network of named content has.

    Each request becomes Interests for the segments of what it names, beneath PATH, and what they bring its
    answer; each is told in a line. HEAD and byte ranges work, pages of any origin may read the answers, a
    name that nobody has is 404, no route 502, what does not come in time 504. Players of one proxy share its
    content store. Ctrl-C ends it (docs/ccn.md).

    [b]Examples[/b]

      streamgauge proxy ndn://127.0.0.1:6363/clip

      mpv http://127.0.0.1:8080/ladder/manifest.mpd

      streamgauge proxy ndn://127.0.0.1:6363/clip --listen 127.0.0.1:8081 \
        --set window_control=cubic --set retransmission=rto

    Exit status: 0 ended by a signal, 3 bad input, 4 this machine cannot (nobody is there, the port is taken).
    """
    _become(
        "proxy",
        [url],
        {
            "--listen": listen,
            "--preset": preset,
            "--set": settings,
            "--max-connections": max_connections,
            "--log": log,
            "--json": as_json,
        },
    )
