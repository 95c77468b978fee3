"""Systems of ours for the self-comparison of ``crosscheck systems``: the clip of each, and a deliberate
fault, in sim alone, which its real trials must detect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from streamgauge.systems.parameter import ParameterValue

__all__ = ["COMPARED", "ComparedSystem", "WrongParameter"]

Told = Mapping[str, ParameterValue]

_PLAIN: Final = {"source": "carphone", "rate": "242 kbit/s", "duration": "60 s"}
_REAL: Final = {
    "source": "carphone",
    "ladder": ["64k", "134k", "209k", "334k"],
    "audio": "16 kbit/s",
    "segment": "4 s",
    "duration": "60 s",
}
_WINDOWS: Final = {
    "source": "carphone",
    "ladder": ["84k", "126k", "224k", "304k"],
    "audio": "18 kbit/s",
    "segment": "8 s",
    "duration": "60 s",
}
_LADDER: Final = {
    "source": "carphone",
    "ladder": ["100k", "250k", "500k", "800k"],
    "segment": "2 s",
    "duration": "60 s",
}


@dataclass(frozen=True, kw_only=True)
class WrongParameter:
    """A mechanism that is off, or set otherwise."""

    name: str
    #: The deliberate fault.
    words: str
    told: Told


@dataclass(frozen=True, kw_only=True)
class ComparedSystem:
    """One system of ours with the settings in which it is compared."""

    system: str
    clip: Mapping[str, Any]
    #: Highest media rate of the clip, bit/s.
    asks_bps: int
    #: The bottleneck's rate is drawn between these shares of that.
    rates: tuple[float, float]
    told: Told = field(default_factory=dict)
    wrong: tuple[WrongParameter, ...]


def _wrong(name: str, words: str, **told: ParameterValue) -> WrongParameter:
    return WrongParameter(name=name, words=words, told=told)


_SERVED_WRONG: Final = (
    _wrong("small-packets", "packets of 300 B instead of 640", packet_bytes="300 B"),
    _wrong("no-acceleration", "the buffer is filled at the level's own rate", acceleration=1),
    _wrong("deaf", "the player ignores delay and loss", heed_delay="off", heed_loss="off"),
)
_FETCHED_WRONG: Final = (
    _wrong("lowest-rule", "the player stays at the lowest level", rule="fixed", level=0),
    _wrong("short-buffer", "no request while 4 s are buffered", buffer="4 s"),
    _wrong("late-start", "6 s more are buffered before the first picture", prebuffer="8 s"),
)

COMPARED: Final[Mapping[str, ComparedSystem]] = {
    "rtp": ComparedSystem(
        system="rtp",
        clip=_PLAIN,
        asks_bps=242_000,
        rates=(0.75, 2.5),
        wrong=(
            _wrong("small-packets", "payloads of 700 B instead of 1388", max_payload="700 B"),
            _wrong("talkative", "a report each second instead of every five", rtcp_interval="1 s"),
            _wrong("late-start", "a frame is held for 4 s instead of 2", playout_delay="4 s"),
        ),
    ),
    "darwin": ComparedSystem(
        system="darwin",
        clip=_PLAIN,
        asks_bps=242_000,
        rates=(0.75, 2.5),
        wrong=(
            _wrong("plain", "plain RTP without acknowledgements or retransmission", reliable_udp="off"),
            _wrong("no-overbuffering", "media is sent at its own pace", overbuffering="off"),
            _wrong("never-again", "lost packets are not sent again", retransmission="off"),
        ),
    ),
    "realvideo-udp": ComparedSystem(
        system="realvideo",
        clip=_REAL,
        asks_bps=350_000,
        rates=(0.5, 2.0),
        told={"transport": "udp"},
        wrong=_SERVED_WRONG,
    ),
    "realvideo-tcp": ComparedSystem(
        system="realvideo",
        clip=_REAL,
        asks_bps=350_000,
        rates=(0.5, 2.0),
        told={"transport": "tcp"},
        wrong=_SERVED_WRONG,
    ),
    "windows-media-udp": ComparedSystem(
        system="windows_media",
        clip=_WINDOWS,
        asks_bps=322_000,
        rates=(1.0, 3.0),
        told={"transport": "udp"},
        wrong=(
            _wrong("short-bursts", "bursts of 0.1 s instead of half a second", burst="100 ms"),
            _wrong("small-buffer", "playback starts with 5 s buffered", buffered="5 s"),
            _wrong("never-again", "lost packets are not requested again", retransmission="off"),
        ),
    ),
    "windows-media-tcp": ComparedSystem(
        system="windows_media",
        clip=_WINDOWS,
        asks_bps=322_000,
        rates=(1.0, 3.0),
        told={"transport": "tcp"},
        wrong=(
            _wrong("no-acceleration", "the buffer is filled at the media's own rate", most_acceleration=1),
            _wrong("small-buffer", "playback starts with 5 s buffered", buffered="5 s"),
            _wrong("timid", "the link's rate is assumed to be 150 kbit/s", preference="150 kbit/s"),
        ),
    ),
    "dash": ComparedSystem(
        system="dash", clip=_LADDER, asks_bps=800_000, rates=(0.3, 1.6), wrong=_FETCHED_WRONG
    ),
    "http": ComparedSystem(
        system="http",
        clip=_PLAIN,
        asks_bps=242_000,
        rates=(0.75, 2.5),
        wrong=(
            _wrong("impatient", "playback starts with 0.2 s buffered", prebuffer="200 ms"),
            _wrong("late-start", "6 s are buffered at the start instead of 2", prebuffer="6 s"),
            _wrong("piecemeal", "requests of 20 kB each", request="20 kB"),
        ),
    ),
    "ccn": ComparedSystem(
        system="ccn",
        clip=_LADDER,
        asks_bps=800_000,
        rates=(0.5, 1.6),
        told={"preset": "ccnx-0.8", "interest_window": 5},
        wrong=(
            *_FETCHED_WRONG,
            _wrong("one-by-one", "one Interest at a time instead of five", interest_window=1),
        ),
    ),
}
"""By the name that ``--systems`` takes."""
