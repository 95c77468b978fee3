"""A video call between two Chromiums: libwebrtc as it ships, its estimate by GCC or by SCReAM v2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.systems.adapter import (
    ACTIONS,
    SIDES,
    Action,
    Clock,
    Collected,
    External,
    FlowSetup,
    Process,
    Program,
    Side,
)
from streamgauge.systems.events import event, last, read_events
from streamgauge.systems.parameter import Parameter, ParameterValue
from streamgauge.systems.scripted import SYSTEM_PYTHON, ScriptedAdapter, script
from streamgauge.systems.system import System
from streamgauge.units import Rate

__all__ = ["SYSTEM", "WebrtcChromium"]

CONTROLLERS = ("gcc", "scream")
CODECS = ("vp8", "vp9")
STAND_IN = "webrtc"
"""Hosted machine that replaces the system in sim."""
BROWSER = "browser"
MOST_RATE = "1.5 Mbit/s"

CAMERA_S = 20
CAMERA_BYTES = 500_000_000
"""Bounds of the camera's film without compression, which Chromium repeats."""
RTP_HZ = 90_000
"""Clock of RTP times of pictures (RFC 3551, section 5); they count modulo 2^32."""
_RTP = re.compile(r"rtp (\d+)")


class WebrtcChromium(ScriptedAdapter):
    """The adapter of system ``webrtc-chromium``."""

    version = 1
    programs: Sequence[Program] = (
        Program(
            name="chromium",
            also=("chromium-browser", "google-chrome"),
            packages="chromium",
            purpose="both ends of a call, system webrtc-chromium",
            id="chromium.call",
            version=["--version"],
        ),
        Program(
            name="ffmpeg",
            packages="ffmpeg",
            purpose="the camera of a call, system webrtc-chromium",
            id="ffmpeg.call",
            version=["-version"],
        ),
        Program(
            name=SYSTEM_PYTHON,
            packages="",
            remedy="install the distribution's python3",
            purpose="steers the browsers of system webrtc-chromium",
            id="python.call",
            version=["--version"],
        ),
    )
    external: External | None = External(
        protocols={"udp": ("rtp",)},
        content="file",
        media_over=lambda parameters: "udp",
        is_camera=True,
        cores=0.5,
    )

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ACTIONS

    def processes(self, flow: FlowSetup) -> list[Process]:
        return [_camera(flow), *(_end(flow, side) for side in SIDES)]

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        for side in SIDES:
            found.events += read_events(flow, side, clock, found.faults, name=_name(side))
        self.read(flow, clock, found)
        return found

    def read(self, flow: FlowSetup, clock: Clock, found: Collected) -> None:
        found.faults += _faults(flow, found.events)
        found.events = _numbered(found.events)


def _name(side: Side) -> str:
    """Returns the name of a side's browser; the player's side has no other process."""
    return BROWSER if side == "server" else ""


def _camera_file(flow: FlowSetup) -> str:
    return str(flow.shared("server") / "camera.y4m")


def _camera(flow: FlowSetup) -> Process:
    """Returns the process that makes the clip a film without compression, as Chromium's camera reads it."""
    command = ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-i", str(flow.media)]
    command += ["-an", "-t", str(CAMERA_S), "-fs", str(CAMERA_BYTES), "-pix_fmt", "yuv420p"]
    return Process(
        side="server",
        name="camera",
        command=[*command, "-f", "yuv4mpegpipe", _camera_file(flow)],
        namespace=flow.namespace("server"),
        early=True,
        ready="end",
        may_end=True,
    )


def _end(flow: FlowSetup, side: Side) -> Process:
    """Returns the browser of a side."""
    settings = {
        "side": side,
        "controller": str(flow.parameters.get("controller", CONTROLLERS[0])),
        "codec": str(flow.parameters.get("codec", CODECS[0])),
        "most_rate_bps": round(Rate(flow.parameters.get("most_rate", MOST_RATE)).bps),
        "camera": _camera_file(flow),
    }
    return script(
        flow,
        side,
        "browser_call.py",
        process=_name(side),
        arguments=["settings.json"],
        files={"settings.json": settings},
        early=True,
        control=True,
        signals=True,
        acted_on=True,
    )


def _faults(flow: FlowSetup, events: Sequence[dict[str, Any]]) -> list[str]:
    """Returns why a call was not the requested one. The browser's counters are the proof, not its flags."""
    sent, marked = last(events, "packets_sent"), last(events, "packets_sent_with_ect1")
    if not any(one["name"] == "connected" for one in events):
        failed = next(
            (one["reason"] for one in events if one["name"] == "call_failed"), "no check was answered"
        )
        return [f"the two ends of the call never met: ICE found no path ({failed})"]
    if not sent:
        return ["the call sent no packet of media"]
    asked = str(flow.parameters.get("controller", CONTROLLERS[0]))
    if asked == "scream" and not marked:
        return [
            "controller scream was asked for, and no packet was sent with ECT(1): this Chromium lacks the "
            "field trial WebRTC-Bwe-ScreamV2, or gets no feedback by RFC 8888; use Chromium 156"
        ]
    if asked == "gcc" and marked:
        return [f"controller gcc was asked for, and {marked:g} packets were sent with ECT(1)"]
    return []


def _numbered(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the events with the camera's numbers of shown pictures, and the latency of each.

    RTP times are those of the camera. The picture that left the encoder first after its capture joins both
    clocks: latencies are too small by the time that it took, a few ms.
    """
    rate = last(events, "camera")
    encoded = [(rtp, one["t_monotonic_ns"]) for one in events if (rtp := _rtp(one, *_ENCODED)) is not None]
    if not rate or not encoded:
        return list(events)
    first = encoded[0][0]
    zero_ns = min(at_ns - _since_ns(rtp, first) for rtp, at_ns in encoded)
    numbers: dict[int, int] = {}
    number = -1
    for rtp, _ in encoded:
        # A camera's pictures are not evenly spaced: two may be nearest to one place.
        number = numbers[rtp] = max(number + 1, round(_since_ns(rtp, first) * rate / 1e9))
    found = []
    for one in events:
        found.append(one)
        rtp = _rtp(one, "frame_shown")
        if rtp is not None and rtp in numbers:
            one["value"] = numbers[rtp]
            latency_s = (one["t_monotonic_ns"] - zero_ns - _since_ns(rtp, first)) / 1e9
            found.append(event(one["t_monotonic_ns"], "live_latency", latency_s, "s", one["reason"]))
    return found


_ENCODED = ("key_frame", "frame_encoded")


def _rtp(one: Mapping[str, Any], *names: str) -> int | None:
    """Returns the RTP time of an event of those names; None of another."""
    found = _RTP.search(one["reason"]) if one["name"] in names else None
    return None if found is None else int(found[1]) % 2**32


def _since_ns(rtp: int, first: int) -> int:
    """Returns the media time from `first` to `rtp`; negative before it."""
    ticks = (rtp - first + 2**31) % 2**32 - 2**31
    return round(ticks * 1e9 / RTP_HZ)


def _as_hosted(values: Mapping[str, ParameterValue | None]) -> dict[str, str]:
    """Returns parameters by which the hosted library calls as the browsers do."""
    return {"most_rate": str(values["most_rate"])}


SYSTEM = System(
    name="webrtc-chromium",
    title="A video call between two Chromiums",
    modes={"emu": "Chromium to Chromium"},
    ours=frozenset(),
    plays=True,
    parameters={
        "controller": Parameter(
            name="controller",
            kind=CONTROLLERS,
            default=CONTROLLERS[0],
            help="congestion control: Chromium's own, or SCReAM v2 with ECT(1) by field trials",
            source="draft-ietf-ccwg-rfc8298bis-screamv2",
        ),
        "codec": Parameter(name="codec", kind=CODECS, default=CODECS[0], help="how pictures are encoded"),
        "most_rate": Parameter(
            name="most_rate",
            kind=Rate,
            default=MOST_RATE,
            above="0 bit/s",
            help="highest rate of the encoder",
        ),
    },
    stood_in_by={STAND_IN: _as_hosted},
    added_by="today/call-chromium-no",
    adapter=WebrtcChromium(),
)
