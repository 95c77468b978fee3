"""Adaptive streaming: nginx to a third-party player, DASH or HLS over HTTP/1.1, 2 or 3."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from streamgauge.systems import javascript, nginx
from streamgauge.systems.adapter import (
    ACTIONS,
    ENDS,
    Action,
    Clock,
    Collected,
    External,
    FlowSetup,
    Process,
    Program,
)
from streamgauge.systems.events import event, last
from streamgauge.systems.machines import Excess
from streamgauge.systems.parameter import Maybe, Number, Parameter, ParameterValue
from streamgauge.systems.scripted import SYSTEM_PYTHON, ScriptedAdapter, script
from streamgauge.systems.system import System
from streamgauge.units import Rate, Time

DEFAULT = "default"
"""The rule that a player has by itself."""
FETCH = f"`{sys.executable} -m {javascript.__name__}` fetches it"
PRESENTATION = "presentation.json"

CHROMIUM = Program(
    name="chromium",
    also=("chromium-browser", "google-chrome"),
    packages="chromium",
    purpose="the browser of dash.js, hls.js and Shaka, system nginx-dash",
    version=["--version"],
    needed=lambda flow: PLAYERS[_player(flow.parameters)].library != "",
)


@dataclass(frozen=True, kw_only=True)
class Player:
    """A player that the system has."""

    #: As people call it.
    title: str
    #: Our script that starts and watches it.
    script: str
    #: Its rules, its own first.
    rules: tuple[str, ...]
    #: Its JavaScript, if it plays in a browser.
    library: str = ""
    #: Scenario parameters that it supports.
    takes: frozenset[str] = frozenset()
    #: Whether it supports pause and resume.
    holds: bool = False
    #: Whether it is started before its flow, and receives the flow's start.
    early: bool = False
    #: The side that reports the fetched level.
    levels_by: Literal["player", "server"] = "server"
    #: The latest version of HTTP that it speaks.
    http: Literal["1.1", "2", "3"] = "1.1"


_TUNED = frozenset({"buffer", "initial", "safety_factor", "cmcd"})
_IN_A_PAGE = _TUNED | {"begin_at"}
_BROWSER: dict[str, Any] = {
    "script": "browser_player.py",
    "takes": _IN_A_PAGE,
    "holds": True,
    "early": True,
    "levels_by": "player",
    "http": "3",
}

PLAYERS: dict[str, Player] = {
    "dashjs": Player(
        title="dash.js in Chromium",
        library="dashjs",
        rules=(DEFAULT, "dynamic", "throughput", "bola", "l2a", "lolp"),
        **{**_BROWSER, "takes": _IN_A_PAGE | {"fast_switch"}},
    ),
    "hlsjs": Player(title="hls.js in Chromium", library="hlsjs", rules=(DEFAULT,), **_BROWSER),
    "shaka": Player(
        title="Shaka Player in Chromium",
        library="shaka",
        rules=(DEFAULT,),
        **{**_BROWSER, "takes": _IN_A_PAGE | {"dropped_frames"}},
    ),
    "gstreamer": Player(
        title="GStreamer's playbin3",
        script="gst_dash_player.py",
        rules=(DEFAULT,),
        takes=_TUNED - {"cmcd"},
        holds=True,
        early=True,
    ),
    "vlc": Player(
        title="VLC",
        script="vlc_dash_player.py",
        rules=(DEFAULT, "predictive", "nearoptimal", "rate", "lowest", "highest"),
        takes=frozenset({"buffer"}),
    ),
    "mpv": Player(
        title="mpv",
        script="mpv_dash_player.py",
        rules=(DEFAULT, "highest", "lowest"),
        takes=frozenset({"buffer"}),
        levels_by="player",
    ),
    "ffmpeg": Player(
        title="ffmpeg",
        script="ffmpeg_dash_player.py",
        rules=(DEFAULT, "highest", "lowest"),
        levels_by="player",
    ),
}

CMCD = ("off", "query", "header")
"""The first is every player's default. With it, dash.js 5.2.1 continues to fetch segments that it gave up."""
HTTP = ("1.1", "2", "3")
BEGINNING = "0 s"


def _player(parameters: Mapping[str, Any]) -> str:
    return str(parameters.get("player", next(iter(PLAYERS))))


# Players of other origins may read all, and its times; a request with CMCD's headers asks for leave first.
_HEADERS = """\
add_header Access-Control-Allow-Origin * always;
add_header Access-Control-Allow-Headers "CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status, Range" always;
add_header Access-Control-Expose-Headers "Content-Length, Content-Range, Date" always;
add_header Access-Control-Max-Age 600 always;
add_header Cross-Origin-Resource-Policy cross-origin always;
add_header Timing-Allow-Origin * always;"""
_SERVER = """\
    listen ADDRESS;
    root "MEDIA";
    HEADERS
    location / {
      if ($request_method = OPTIONS) {
        HEADERS
        return 204;
      }
    }
"""
_TYPES = (
    "application/dash+xml mpd; application/vnd.apple.mpegurl m3u8; video/mp4 mp4 m4s; application/json json;"
)
_CMCD_HEADERS = ("object", "request", "session", "status")
_FIELDS = {
    "took": "$request_time",
    "http": '"$server_protocol"',
    **{f"cmcd_{name}": f'"$http_cmcd_{name}"' for name in _CMCD_HEADERS},
}


_GSTREAMER = """
import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
need = "playbin3 dashdemux2 qtdemux h264parse aacparse avdec_h264 avdec_aac fakesink".split()
lacking = [name for name in need if Gst.ElementFactory.find(name) is None]
if lacking:
    raise SystemExit("no element " + ", ".join(lacking))
print(Gst.version_string())
"""


class NginxDash(ScriptedAdapter):
    """The adapter of system ``nginx-dash``."""

    version = 1
    programs: Sequence[Program] = (
        nginx.program("the server of system nginx-dash"),
        Program(
            name="openssl",
            packages="openssl",
            purpose="certificates for HTTP/2 and HTTP/3, system nginx-dash",
            version=["version"],
            needed=lambda flow: _http(flow) != HTTP[0],
        ),
        Program(
            name="aioquic",
            kind="module",
            packages="",
            purpose="the server of HTTP/3, system nginx-dash",
            id="aioquic",
            remedy=f"`{sys.executable} -m pip install aioquic` installs it",
            needed=lambda flow: _http(flow) == "3",
        ),
        CHROMIUM,
        *(
            Program(
                name=str(javascript.LIBRARIES[player.library].path),
                kind="file",
                packages="",
                purpose=f"{javascript.LIBRARIES[player.library].version}, {player.title}, system nginx-dash",
                id=f"player.{name}",
                remedy=FETCH,
                needed=lambda flow, name=name: _player(flow.parameters) == name,  # type: ignore[misc]
            )
            for name, player in PLAYERS.items()
            if player.library
        ),
        Program(
            name=SYSTEM_PYTHON,
            packages="python3-gst-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good "
            "gstreamer1.0-plugins-bad gstreamer1.0-libav",
            purpose="GStreamer's playbin3 and what watches players, system nginx-dash",
            id="gstreamer.dash",
            probe=["-c", _GSTREAMER],
        ),
        *(
            Program(
                name=name,
                packages=packages,
                purpose="a player of system nginx-dash",
                version=["--version" if name != "ffmpeg" else "-version"],
                needed=lambda flow, name=name: _player(flow.parameters) == name,  # type: ignore[misc]
            )
            for name, packages in (("vlc", "vlc-bin vlc-plugin-base"), ("mpv", "mpv"), ("ffmpeg", "ffmpeg"))
        ),
    )
    external: External | None = External(
        protocols={"tcp": ("http",), "udp": ("quic",)},
        content="presentation",
        media_over=lambda parameters: "udp" if str(parameters.get("http")) == "3" else "tcp",
    )

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ACTIONS if PLAYERS[_player(parameters)].holds else ENDS

    def processes(self, flow: FlowSetup) -> list[Process]:
        return [*_serving(flow), _playing(flow)]

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        player = PLAYERS[_player(flow.parameters)]
        levels = _levels(flow) if player.levels_by == "server" else {}
        log = _Log(levels, clock)
        found.events += nginx.answers(flow, found.faults, log.answer, name=_serves(flow))
        octets = last(found.events, "total_bytes_received")
        if octets is not None:
            found.received_bytes, found.received_what = int(octets), f"bodies that {player.title} read"


def _http(flow: FlowSetup) -> str:
    return str(flow.parameters.get("http", HTTP[0]))


def _serves(flow: FlowSetup) -> str:
    """Returns the name of the process that serves; empty where it is alone on its side."""
    return {"1.1": "", "2": "nginx", "3": "aioquic"}[_http(flow)]


def _serving(flow: FlowSetup) -> list[Process]:
    """Returns the server, and from HTTP/2 on the process before it that makes its certificate."""
    name = _serves(flow)
    shared: dict[str, Any] = {"namespace": flow.sending_namespace, "early": True, "ready": "port"}
    if _http(flow) == "3":
        control = str(flow.plan.get("tcp", {}).get("congestion_control", "cubic"))
        arguments = [control]
        server = script(
            flow, "server", "http3_server.py", process=name, python=sys.executable, arguments=arguments,
            early=True, ready="port",
        )  # fmt: skip
    else:
        server = Process(
            side="server",
            name=name,
            command=nginx.command(str(flow.out("server", name))),
            files={"nginx.conf": _config(flow)},
            stop_signal=nginx.SIGQUIT,
            **shared,
        )
    if not name:
        return [server]
    certificate = script(
        flow, "server", "certificate.py", process="certificate", early=True, ready="end", may_end=True
    )
    return [certificate, server]


def _config(flow: FlowSetup) -> str:
    address = f"{flow.server_ip}:{flow.port}"
    if _http(flow) == "2":
        shared = flow.shared("server")
        address += f" ssl http2;\n    ssl_certificate {shared}/certificate.pem;"
        address += f"\n    ssl_certificate_key {shared}/key.pem"
    server = _SERVER.replace("ADDRESS", address).replace("MEDIA", str(flow.media))
    return nginx.config(
        server.replace("HEADERS", _HEADERS.replace("\n", "\n    ")), types=_TYPES, fields=_FIELDS
    )


def _settings(flow: FlowSetup) -> dict[str, Any]:
    """Returns the settings for a player's script."""
    told, name = flow.parameters, _player(flow.parameters)
    has_tls = _http(flow) != HTTP[0]
    base = f"http{'s' if has_tls else ''}://{flow.server_ip}:{flow.port}"
    buffer, initial = _given(told, "buffer"), _given(told, "initial")
    factor = _given(told, "safety_factor")
    settings: dict[str, Any] = {
        "player": name,
        "rule": told.get("rule", DEFAULT),
        "url": {"dash": f"{base}/manifest.mpd", "hls": f"{base}/master.m3u8"},
        "cmcd": told.get("cmcd", CMCD[0]),
        # The standard requires another UUID for each session (CTA-5004): this one contains the index of the
        # flow.
        "session": f"00000000-0000-4000-8000-{flow.index:012d}",
        "buffer_s": None if buffer is None else Time(buffer).s,
        "initial_bps": None if initial is None else Rate(initial).bps,
        "safety_factor": None if factor is None else float(factor),
        "fast_switch": told.get("fast_switch", DEFAULT),
        "dropped_frames": told.get("dropped_frames", DEFAULT),
        "begin_s": Time(told.get("begin_at", BEGINNING)).s,
        # Some ports of flows are X11's or IRC's, which browsers refuse by default.
        "flags": [f"--explicitly-allowed-ports={flow.port}"],
        # Digest of the server's certificate, by which the browser accepts it.
        "spki": str(flow.shared("server") / "spki") if has_tls else None,
    }
    if _http(flow) == "3":
        settings["flags"] += ["--enable-quic", f"--origin-to-force-quic-on={flow.server_ip}:{flow.port}"]
    if PLAYERS[name].library:
        settings["library"] = javascript.LIBRARIES[PLAYERS[name].library].path.name
    return settings


def _given(parameters: Mapping[str, Any], name: str) -> Any:
    value = parameters.get(name, "none")
    return None if value == "none" else value


def _playing(flow: FlowSetup) -> Process:
    name = _player(flow.parameters)
    player = PLAYERS[name]
    made = script(
        flow,
        "player",
        player.script,
        beside=[javascript.LIBRARIES[player.library].path] if player.library else [],
        arguments=["settings.json"],
        files={"settings.json": _settings(flow)},
        early=player.early,
        control=player.early,
        environment={"GSETTINGS_BACKEND": "memory"},
        may_end=True,
        acted_on=True,
    )
    return made


_SEGMENT = re.compile(r"/segment-(\d+)-(\d+)\.m4s")


def _levels(flow: FlowSetup) -> dict[str, int]:
    """Returns the rate of each representation of the pictures, bit/s, by its id. Empty where nothing was
    served."""
    if flow.media is None or not (file := Path(flow.media) / PRESENTATION).is_file():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))["representations"]
    return {one["id"]: one["bit_rate_bps"] for one in rows if one["kind"] == "video"}


class _Log:
    """Turns lines of the access log into events. For players that do not report their fetched level, it
    reports that too, at the request."""

    def __init__(self, levels: Mapping[str, int], clock: Clock) -> None:
        self.levels = levels
        self.clock = clock
        self.level: int | None = None

    def answer(self, told: Mapping[str, Any]) -> list[dict[str, Any]]:
        ended_ns = nginx.at_ns(told["t"], self.clock)
        asked_ns = ended_ns - round(float(told["took"]) * 1e9)
        made = [
            event(ended_ns, "response_sent", float(told["bytes"]), "B", nginx.answered(told)),
            *self._cmcd(told, asked_ns),
        ]
        found = _SEGMENT.search(told["request"])
        rate = self.levels.get(found[1]) if found else None
        if found and rate not in (None, self.level):
            self.level = rate
            why = f"segment {found[2]} was asked for, by the server's log"
            made.append(event(asked_ns, "level_changed", float(rate), "bit/s", why))
        return made

    @staticmethod
    def _cmcd(told: Mapping[str, Any], asked_ns: int) -> list[dict[str, Any]]:
        """Returns the player's reports about itself with a request (CTA-5004), by headers or in the query."""
        target = str(told["request"]).split(" ")[1:2]
        query = parse_qs(urlsplit(target[0]).query).get("CMCD", []) if target else []
        said = ",".join(filter(None, [*query, *(str(told[f"cmcd_{name}"]) for name in _CMCD_HEADERS)]))
        if not said:
            return []
        made = [event(asked_ns, "cmcd", None, "", said)]
        pairs = dict(part.partition("=")[::2] for part in said.split(","))
        if pairs.get("ot") != "v":
            return made
        for key, name, scale, unit in _CMCD_NUMBERS:
            if pairs.get(key, "").isdecimal():
                made.append(event(asked_ns, name, int(pairs[key]) * scale, unit, f"CMCD: {key}"))
        if "bs" in pairs:
            made.append(event(asked_ns, "cmcd_starved", None, "", "CMCD: bs, since the request before"))
        return made


_CMCD_NUMBERS = (
    ("bl", "cmcd_buffer", 1e-3, "s"),
    ("mtp", "cmcd_throughput", 1e3, "bit/s"),
    ("br", "cmcd_level", 1e3, "bit/s"),
)
"""Keys of CMCD with numbers that are recorded at requests for pictures: the event's name, its unit."""


def _unfit(values: Mapping[str, ParameterValue | None]) -> Excess | None:
    """Returns a parameter that a player does not support."""
    name = str(values["player"])
    player = PLAYERS[name]
    if values["rule"] not in player.rules:
        other = [one for one, its in PLAYERS.items() if values["rule"] in its.rules]
        return Excess(
            name="rule",
            why=f"player {name} has no rule '{values['rule']}', which {' and '.join(other)} has; "
            f"expected one of {', '.join(player.rules)}",
            hint="leave 'rule' out for the player's own",
        )
    if HTTP.index(str(values["http"])) > HTTP.index(player.http):
        able = [
            one for one, its in PLAYERS.items() if HTTP.index(its.http) >= HTTP.index(str(values["http"]))
        ]
        return Excess(
            name="http",
            why=f"player {name} does not speak HTTP/{values['http']}; expected {player.http} at most",
            hint=f"{', '.join(able)} do",
        )
    unset = (str(None), "none", DEFAULT, BEGINNING)
    for parameter in ("buffer", "initial", "safety_factor", "fast_switch", "dropped_frames", "begin_at"):
        if parameter not in player.takes and str(values[parameter]) not in unset:
            able = [one for one, its in PLAYERS.items() if parameter in its.takes]
            return Excess(
                name=parameter,
                why=f"player {name} cannot be told '{parameter}'",
                hint=f"leave it out; {', '.join(able)} can",
            )
    return None


_RULES = tuple(dict.fromkeys(rule for player in PLAYERS.values() for rule in player.rules))

SYSTEM = System(
    name="nginx-dash",
    title="Adaptive streaming from nginx",
    modes={"emu": "nginx to dash.js, hls.js, Shaka, GStreamer, VLC, mpv or ffmpeg"},
    ours=frozenset(),
    plays=True,
    ladders=True,
    tcp="always",
    parameters={
        "player": Parameter(
            name="player", kind=tuple(PLAYERS), default=next(iter(PLAYERS)), help="which program plays"
        ),
        "rule": Parameter(
            name="rule", kind=_RULES, default=DEFAULT, help="how it chooses levels, of those that it has"
        ),
        "http": Parameter(name="http", kind=HTTP, default="1.1", help="version of HTTP; from 2 on with TLS"),
        "cmcd": Parameter(
            name="cmcd",
            kind=CMCD,
            default=CMCD[0],
            help="how a browser's player reports its state to the server",
            source="CTA-5004",
        ),
        "buffer": Parameter(
            name="buffer", kind=Maybe(Time), default="none", help="media that it holds; none: its own"
        ),
        "initial": Parameter(
            name="initial",
            kind=Maybe(Rate),
            default="none",
            help="throughput that it begins with; none: its own",
        ),
        "safety_factor": Parameter(
            name="safety_factor",
            kind=Maybe(Number()),
            default="none",
            above="0",
            most="2",
            help="share of the throughput that a level may have; none: its own",
        ),
        "fast_switch": Parameter(
            name="fast_switch",
            kind=(DEFAULT, "on", "off"),
            default=DEFAULT,
            help="whether it replaces buffered segments by a higher level; default: its own way",
        ),
        "dropped_frames": Parameter(
            name="dropped_frames",
            kind=(DEFAULT, "off"),
            default=DEFAULT,
            help="whether a level is left out while the machine drops pictures; default: its own way",
        ),
        "begin_at": Parameter(
            name="begin_at", kind=Time, default=BEGINNING, help="where in the media play begins"
        ),
    },
    unfit=_unfit,
    adapter=NginxDash(),
)
