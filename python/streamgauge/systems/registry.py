"""What can run on a flow: systems (server and player) and traffic, with their parameters and modes.

A scenario is checked against this table before anything starts, and ``streamgauge systems`` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from streamgauge.systems import darwin
from streamgauge.systems.parameter import Parameter, ParameterValue, Several, Windows
from streamgauge.systems.tcp import HYSTARTS, LINUX_DELAYED_ACK, MECHANISMS
from streamgauge.units import Frequency, Packets, Size, Time

__all__ = [
    "ACTIONS",
    "COMMAND_ACTIONS",
    "SYSTEMS",
    "TRAFFIC",
    "Action",
    "Mode",
    "Parameter",
    "ParameterValue",
    "Several",
    "System",
    "Windows",
]

Mode = Literal["sim", "emu"]
Action = Literal["pause", "resume", "stop"]

#: What a scenario can do to a flow while it runs. Our own machines take all of them, in both modes.
ACTIONS: tuple[Action, ...] = ("pause", "resume", "stop")
#: What it can do to a system that is given as commands: a program can be ended, but not told to hold.
COMMAND_ACTIONS: tuple[Action, ...] = ("stop",)

_SMALLEST_MGEN_PACKET = 28


@dataclass(frozen=True, kw_only=True)
class System:
    """A streaming technology (server and player) or a kind of traffic."""

    name: str
    title: str
    #: What carries it in each mode: our own machine, or the third-party programs named here.
    modes: dict[Mode, str]
    #: Modes in which we wrote both ends; results say so.
    ours: frozenset[Mode]
    #: Plays a clip, which the flow must name.
    plays: bool
    parameters: dict[str, Parameter]
    #: Runs over TCP: always, never, or if the parameter ``transport`` is ``tcp``.
    tcp: Literal["always", "never", "transport"] = "never"
    #: Programs that emu needs on PATH.
    programs: tuple[str, ...] = field(default=())

    def written_by_us(self, mode: Mode, parameters: dict[str, ParameterValue]) -> bool:
        """Whether both ends are our own programs in a flow with these parameters; results say so."""
        if self.name == "cbr" and mode == "emu":
            # mgen sends no bursts, and needs room for its own header in every packet.
            size, burst = self.value(parameters, "size"), self.value(parameters, "burst")
            assert isinstance(size, Size) and isinstance(burst, Packets)
            return burst.amount > 1 or size.bytes < _SMALLEST_MGEN_PACKET
        return mode in self.ours

    def actions(self, mode: Mode, parameters: dict[str, ParameterValue]) -> tuple[Action, ...]:
        """What a scenario can do to a flow with these parameters while it runs. Nowhere else is it said."""
        if self.written_by_us(mode, parameters):
            return ACTIONS
        # GStreamer's player has its server hold (RTSP's PAUSE); iperf3, mgen and ffmpeg can only be ended.
        holds = self.name == "rtsp" and self.value(parameters, "player") == "gstreamer"
        return ACTIONS if holds else COMMAND_ACTIONS

    def over_tcp(self, parameters: dict[str, ParameterValue]) -> bool:
        """Whether a flow with these parameters has a congestion control to choose."""
        if self.tcp != "transport":
            return self.tcp == "always"
        transport = parameters.get("transport", self.parameters["transport"].default)
        return transport == "tcp"

    def value(self, parameters: dict[str, ParameterValue], name: str) -> ParameterValue | None:
        """The value of a parameter, its default filled in."""
        if name in parameters:
            return parameters[name]
        default = self.parameters[name].default
        return None if default is None else self.parameters[name].parse(default)


def _named(*parameters: Parameter) -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in parameters}


_TRANSPORT = Parameter(
    name="transport",
    kind=("udp", "tcp"),
    default="udp",
    help="RTP over UDP, or interleaved on one TCP connection (RFC 2326 section 10.12)",
)
_TCP = (
    Parameter(
        name="receive_window",
        kind=Size,
        default="3 MiB",
        least="1 kB",
        help="limit of the player's TCP receive window; the default is what Linux grows to",
    ),
    Parameter(
        name="send_buffer",
        kind=Size,
        default="4 MiB",
        least="2 kB",
        help="limit of the server's TCP send buffer; the default is what Linux grows to",
    ),
    Parameter(
        name="mss",
        kind=Size,
        default="1448 B",
        least="88 B",
        help="largest TCP payload of a segment; the default fills 1500 B with timestamps on",
    ),
    Parameter(
        name="initial_window",
        kind=Packets,
        default="10 packets",
        least="1 packet",
        most="1000 packets",
        help="initial congestion window in segments (RFC 6928)",
    ),
    Parameter(
        name="delayed_ack",
        kind=Time,
        default=LINUX_DELAYED_ACK,
        most="500 ms",
        help="how long an acknowledgement may wait for a second segment; emu: Linux's, or 0 s for not at all",
    ),
    Parameter(
        name="hystart",
        kind=HYSTARTS,
        default=HYSTARTS[0],
        help="how cubic leaves slow start before a loss: as Linux, by RFC 9406, or not; emu: as Linux",
    ),
    Parameter(
        name="window",
        kind=Size,
        default=None,
        help="the window that congestion control fixed keeps; sim only",
    ),
    Parameter(
        name="without",
        kind=Several(MECHANISMS),
        default=None,
        help="mechanisms of TCP that are switched off, to see what they do; sim only",
    ),
)

_EVERYWHERE: frozenset[Mode] = frozenset({"sim", "emu"})
_OUR_STREAMING: dict[Mode, str] = {
    "sim": "our server and player",
    "emu": "our server and player on real sockets",
}

#: Streaming systems by name.
SYSTEMS: dict[str, System] = {
    "rtsp": System(
        name="rtsp",
        title="RTSP video from gst-rtsp-server",
        modes={"emu": "gst-rtsp-server to GStreamer rtspsrc or ffmpeg"},
        ours=frozenset(),
        plays=True,
        tcp="transport",
        parameters=_named(
            Parameter(
                name="player", kind=("gstreamer", "ffmpeg"), default="gstreamer", help="which program plays"
            ),
            _TRANSPORT,
        ),
        programs=("gst-launch-1.0",),
    ),
    "rtp": System(
        name="rtp",
        title="A clip paced out as RTP with RTCP reports and no congestion response",
        modes=_OUR_STREAMING,
        ours=_EVERYWHERE,
        plays=True,
        tcp="transport",
        parameters=_named(
            _TRANSPORT,
            Parameter(
                name="max_payload",
                kind=Size,
                default="1388 B",
                least="100 B",
                help="largest RTP payload of a packet; GStreamer's by default (1400 B with the RTP header)",
            ),
            Parameter(
                name="rtcp_interval",
                kind=Time,
                default="5 s",
                least="10 ms",
                help="mean time between RTCP reports (RFC 3550 section 6.2)",
            ),
            Parameter(
                name="playout_delay",
                kind=Time,
                default="2 s",
                help="how long the player holds a frame before it is due; the default is rtspsrc's",
            ),
            *_TCP,
        ),
    ),
    "darwin": System(
        name="darwin",
        title="A clip by RTSP and RTP from a server as Apple's, by Reliable UDP where the player asks for it",
        modes=_OUR_STREAMING,
        ours=_EVERYWHERE,
        plays=True,
        tcp="transport",
        parameters=_named(
            Parameter(
                name="preset",
                kind=darwin.PRESETS,
                default=darwin.PRESETS[0],
                help="the server's constants: what De Cicco et al. state, or what the public server does",
            ),
            Parameter(
                name="player",
                kind=darwin.PLAYERS,
                default=darwin.PLAYERS[0],
                help="the player's constants: quicktime asks for Reliable UDP, vlc does not",
            ),
            _TRANSPORT,
            *darwin.CONSTANTS,
            *_TCP,
        ),
    ),
}

#: Kinds of traffic by name.
TRAFFIC: dict[str, System] = {
    "bulk": System(
        name="bulk",
        title="Greedy TCP, as FTP",
        modes={"sim": "our TCP", "emu": "iperf3"},
        ours=frozenset({"sim"}),
        plays=False,
        tcp="always",
        parameters=_named(
            *_TCP,
            Parameter(
                name="bytes", kind=Size, default=None, least="1 B", help="how much; no end if left out"
            ),
        ),
        programs=("iperf3",),
    ),
    "cbr": System(
        name="cbr",
        title="Constant bit rate UDP, as mgen",
        modes={"sim": "our sender", "emu": "mgen, or our sender for bursts and tiny packets"},
        ours=frozenset({"sim"}),
        plays=False,
        parameters=_named(
            Parameter(
                name="rate",
                kind=Frequency,
                default=None,
                required=True,
                least="0.001 packets/s",
                help="packets per second",
            ),
            Parameter(name="size", kind=Size, default="1000 B", least="8 B", help="UDP payload of a packet"),
            Parameter(
                name="burst",
                kind=Packets,
                default="1 packet",
                least="1 packet",
                help="packets sent back to back at each tick",
            ),
            Parameter(
                name="windows",
                kind=Windows,
                default=None,
                help="[on, off] times since the trial's start; always on if left out",
            ),
            Parameter(
                name="ecn",
                kind=("no", "ect0", "ect1"),
                default="no",
                help="the ECN field of its packets (RFC 3168); ect1 names L4S traffic (RFC 9331)",
            ),
        ),
        programs=("mgen",),
    ),
    "ping": System(
        name="ping",
        title="ICMP echo",
        modes={"sim": "our probe", "emu": "our probe on a raw socket"},
        ours=_EVERYWHERE,
        plays=False,
        parameters=_named(
            Parameter(name="interval", kind=Time, default="1 s", least="1 ms", help="time between requests"),
            Parameter(
                name="size", kind=Size, default="56 B", least="16 B", help="bytes above the ICMP header"
            ),
        ),
    ),
}
