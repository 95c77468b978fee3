"""The events that metrics are computed from, with their units. Each metric declares those that it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["MEASURED", "MeasuredEvent"]


@dataclass(frozen=True, slots=True)
class MeasuredEvent:
    """Describes an event that metrics read by its name."""

    name: str
    #: The unit of its value in records: ``s``, ``B``, ``bit/s``, or ``1`` for a number. Empty if the value is
    #: ignored.
    unit: str
    #: The time to report it, and its value.
    says: str
    #: The consequence if a third-party player never reports it.
    absence: str
    #: Other units that its value may be in.
    also: tuple[str, ...] = ()
    #: Its heading in docs/player-events.md.
    group: str = ""

    @property
    def slug(self) -> str:
        """Returns the name of its group's generated table."""
        return self.group.lower().replace(" ", "-")

    def takes(self, unit: str) -> bool:
        """Returns whether a value may have that unit, as records have it. A value without a unit has the
        event's; events with plain numbers accept every unit."""
        return self.unit in ("", "1") or unit in ("", self.unit, *self.also)


_PLAYER = (
    MeasuredEvent(
        "playout_start",
        "s",
        "Once, when the first picture is shown. Value: the time since the request to play.",
        "`buffering_start`, `buffering_end` and the filling and playing metrics are unknown; without its "
        "value only `buffering_start` and the filling metrics are. "
        "`startup_delay` is from the flow's first packet to the first `frame_shown`. Without either of the "
        "two events `startup_delay`, `rebuffer_ratio`, `shown_level`, `qoe_lin` and `qoe_log` are unknown.",
    ),
    MeasuredEvent(
        "frame_shown",
        "1",
        "At each picture, when it is shown. Value: the frame's number in the clip, from 0. The number "
        "continues when the clip repeats, and skips frames that are not shown.",
        "Frames, freezes and `live_latency` are unknown. Without its value only `live_latency` is unknown.",
    ),
    MeasuredEvent(
        "frame_late",
        "",
        "At each picture that was complete only after it was due, and was not shown.",
        "`frames_lost` counts `frame_incomplete` only; without both it is unknown.",
    ),
    MeasuredEvent(
        "frame_incomplete",
        "",
        "At each picture that was never complete, when it was due.",
        "`frames_lost` counts `frame_late` only; without both it is unknown.",
    ),
    MeasuredEvent(
        "dropped_frames",
        "1",
        "About every second, or at each such picture. It is for players that report each `frame_shown` and "
        "count the pictures that they had and did not show, as browsers do. Value: their number since play "
        "began.",
        "`frames_lost` counts `frame_late` and `frame_incomplete` only.",
    ),
    MeasuredEvent(
        "stall",
        "",
        "Whenever play has begun and stops for lack of media.",
        "Stall metrics are unknown, unless the player reports `stall_count`.",
    ),
    MeasuredEvent(
        "resume",
        "",
        "Whenever play continues after a `stall`.",
        "A stall lasts to the media's end, and includes later ones.",
    ),
    MeasuredEvent(
        "stall_count",
        "",
        "Once at the start is enough, with 0. It promises a report of every stall.",
        "In a trial without a `stall`, the number of stalls is unknown.",
    ),
    MeasuredEvent(
        "level_changed",
        "bit/s",
        "At the choice of the first level, and at each change. Value: the bit rate of the encoding that is "
        "played or fetched from then on. A level's number, in unit 1, only counts changes.",
        "Levels are unknown, unless the player reports `segment_shown` or `level_shown`.",
        also=("1",),
    ),
    MeasuredEvent(
        "level_shown",
        "bit/s",
        "When the first level is shown, and at each change. It is for players that report `level_changed` at "
        "the choice. Value: the bit rate of the encoding.",
        "Levels are those of `level_changed`.",
    ),
    MeasuredEvent(
        "segment_shown",
        "bit/s",
        "When the first picture of a segment is shown. Value: the bit rate of its encoding. Its reason is "
        "`segment` and the segment's number, from 0.",
        "Levels are those of `level_changed`. For `qoe_lin` and `qoe_log` played media count as segments of "
        "the clip's length. `streamgauge quality` judges no segments.",
    ),
    MeasuredEvent(
        "estimate",
        "bit/s",
        "At each new estimate of the player. Value: the expected throughput.",
        "`estimate` is unknown.",
    ),
    MeasuredEvent(
        "live_latency",
        "s",
        "About every half second, for a live stream. Value: the time since the capture of the shown media.",
        "`live_latency` is computed from the numbers of `frame_shown`.",
    ),
    MeasuredEvent(
        "buffer",
        "s",
        "About every half second. Value: buffered media, from the play position to the newest "
        "playable media.",
        "`buffer` is unknown.",
    ),
    MeasuredEvent(
        "media_end",
        "",
        "When nothing more will be shown: the media have ended, or the player gives up.",
        "The session lasts to the flow's `stop`, or to the trial's end.",
    ),
    MeasuredEvent(
        "rtt",
        "s",
        "At each measurement. Value: the round-trip time.",
        "`rtt` is that of the path (`rtt_source`: `path`).",
    ),
)  # fmt: skip

_TRANSFER = (
    MeasuredEvent(
        "transfer_complete",
        "s",
        "When all of a transfer has arrived. Value: the time since its connection was opened.",
        "Transfer metrics are unknown, except for flows with `arrivals` and for `bulk` with `bytes`.",
    ),
    MeasuredEvent(
        "transfer_failed",
        "",
        "When a transfer ends before it is complete.",
        "None failed, if the player reports `transfer_complete`.",
    ),
)

_TCP = (
    MeasuredEvent("tcp_cwnd", "B", "The congestion window of the sending end.", "`cwnd` is unknown."),
    MeasuredEvent(
        "tcp_srtt",
        "s",
        "The smoothed round-trip time of the sending end (RFC 6298).",
        "`srtt` is unknown.",
    ),
)

_CALL = (
    MeasuredEvent(
        "unrepaired",
        "packets",
        "Whenever the receiver gives packets up, since neither they nor a repetition arrived in time. "
        "Value: their number.",
        "`loss_after_repair` is unknown, unless the player reports `discarded`.",
    ),
    MeasuredEvent(
        "discarded",
        "packets",
        "Whenever packets arrive too late for their picture. Value: their number.",
        "`discarded` is unknown, unless the player reports `unrepaired`.",
    ),
)

_NO_WINDOW = "Without `rudp_cwnd` unknown; with it, 0."
_RELIABLE_UDP = (
    MeasuredEvent(
        "rudp_cwnd",
        "B",
        "The congestion window, at each change.",
        "Only metrics with an event of their own are known.",
    ),
    MeasuredEvent("rudp_rto", "s", "The retransmission timeout, at each change.", "Unknown."),
    MeasuredEvent("overbuffer", "s", "The time by which media is sent ahead.", "Unknown."),
    MeasuredEvent("thinning", "1", "The level of thinning, 0 for none.", "Unknown."),
    MeasuredEvent("rudp_cut", "", "Each reduction of the window.", _NO_WINDOW),
    MeasuredEvent("rudp_retransmit", "", "Each retransmitted packet.", _NO_WINDOW),
    MeasuredEvent(
        "rudp_expired",
        "",
        "Each packet without acknowledgement at its timeout.",
        _NO_WINDOW,
    ),
    MeasuredEvent(
        "rudp_given_up",
        "",
        "Each packet presumed lost and not retransmitted.",
        _NO_WINDOW,
    ),
    MeasuredEvent("stale_drop", "", "Each packet that was too late to be sent.", _NO_WINDOW),
)

MEASURED: dict[str, MeasuredEvent] = {
    event.name: replace(event, group=group)
    for group, events in (
        ("Players", _PLAYER),
        ("Transfers", _TRANSFER),
        ("Calls", _CALL),
        ("TCP", _TCP),
        ("Reliable UDP", _RELIABLE_UDP),
    )
    for event in events
}
"""Every event that metrics are computed from, by its name, in the order for readers."""
