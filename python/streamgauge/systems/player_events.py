"""The events that metrics are computed from, with their units and the metrics of each."""

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
    #: Metrics that it changes.
    feeds: tuple[str, ...]
    #: The consequence if a third-party player never reports it.
    absence: str
    #: Other units that its value may be in.
    also: tuple[str, ...] = ()
    #: Its heading in docs/player-events.md.
    group: str = ""

    def takes(self, unit: str) -> bool:
        """Returns whether a value may have that unit, as records have it. A value without a unit has the
        event's; events with plain numbers accept every unit."""
        return self.unit in ("", "1") or unit in ("", self.unit, *self.also)


_STALLS = ("stall_count", "stall_time", "rebuffer_ratio")
_FREEZES = ("freeze_count", "freeze_time", "frozen_share")
_FRAMES = ("frames_shown", "frames_lost")
_WORTH = ("qoe_lin", "qoe_log")
_LEVELS = (
    "level", "shown_level", "lowest_level", "level_changes", "level_step", "instability", *_WORTH,
    "unfairness", "inefficiency",
)  # fmt: skip
_TRANSFERS = ("transfers", "transfers_failed", "completion_time", "completion_time_p95")

_PHASES = ("filling_time", "filling_rate", "filling_loss", "playing_time", "playing_rate", "playing_loss")

_PLAYER = (
    MeasuredEvent(
        "playout_start",
        "s",
        "Once, when the first picture is shown. Value: the time since the request to play.",
        ("startup_delay", "buffering_start", "buffering_end", *_PHASES, *_STALLS, "shown_level",
         "lowest_level", *_WORTH),
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
        (*_FRAMES, *_FREEZES, *_STALLS, "startup_delay", "live_latency", "shown_level", "lowest_level",
         *_WORTH),
        "Frames, freezes and `live_latency` are unknown. Without its value only `live_latency` is unknown.",
    ),
    MeasuredEvent(
        "frame_late",
        "",
        "At each picture that was complete only after it was due, and was not shown.",
        (*_FRAMES, *_FREEZES),
        "`frames_lost` counts `frame_incomplete` only; without both it is unknown.",
    ),
    MeasuredEvent(
        "frame_incomplete",
        "",
        "At each picture that was never complete, when it was due.",
        (*_FRAMES, *_FREEZES),
        "`frames_lost` counts `frame_late` only; without both it is unknown.",
    ),
    MeasuredEvent(
        "dropped_frames",
        "1",
        "About every second, or at each such picture. It is for players that report each `frame_shown` and "
        "count the pictures that they had and did not show, as browsers do. Value: their number since play "
        "began.",
        ("frames_lost",),
        "`frames_lost` counts `frame_late` and `frame_incomplete` only.",
    ),
    MeasuredEvent(
        "stall",
        "",
        "Whenever play has begun and stops for lack of media.",
        (*_STALLS, *_FREEZES, "shown_level", "lowest_level", *_WORTH),
        "Stall metrics are unknown, unless the player reports `stall_count`.",
    ),
    MeasuredEvent(
        "resume",
        "",
        "Whenever play continues after a `stall`.",
        (*_STALLS, *_FREEZES, "shown_level", "lowest_level", *_WORTH),
        "A stall lasts to the media's end, and includes later ones.",
    ),
    MeasuredEvent(
        "stall_count",
        "",
        "Once at the start is enough, with 0. It promises a report of every stall.",
        (*_STALLS, "shown_level", *_WORTH),
        "In a trial without a `stall`, the number of stalls is unknown.",
    ),
    MeasuredEvent(
        "level_changed",
        "bit/s",
        "At the choice of the first level, and at each change. Value: the bit rate of the encoding that is "
        "played or fetched from then on. A level's number, in unit 1, only counts changes.",
        (*_LEVELS, "clip_levels", "lowest_clip_level"),
        "Levels are unknown, unless the player reports `segment_shown` or `level_shown`.",
        also=("1",),
    ),
    MeasuredEvent(
        "level_shown",
        "bit/s",
        "When the first level is shown, and at each change. It is for players that report `level_changed` at "
        "the choice. Value: the bit rate of the encoding.",
        _LEVELS,
        "Levels are those of `level_changed`.",
    ),
    MeasuredEvent(
        "segment_shown",
        "bit/s",
        "When the first picture of a segment is shown. Value: the bit rate of its encoding. Its reason is "
        "`segment` and the segment's number, from 0.",
        _LEVELS,
        "Levels are those of `level_changed`. For `qoe_lin` and `qoe_log` played media count as segments of "
        "the clip's length. `streamgauge quality` judges no segments.",
    ),
    MeasuredEvent(
        "estimate",
        "bit/s",
        "At each new estimate of the player. Value: the expected throughput.",
        ("estimate",),
        "`estimate` is unknown.",
    ),
    MeasuredEvent(
        "live_latency",
        "s",
        "About every half second, for a live stream. Value: the time since the capture of the shown media.",
        ("live_latency",),
        "`live_latency` is computed from the numbers of `frame_shown`.",
    ),
    MeasuredEvent(
        "buffer",
        "s",
        "About every half second. Value: buffered media, from the play position to the newest "
        "playable media.",
        ("buffer",),
        "`buffer` is unknown.",
    ),
    MeasuredEvent(
        "media_end",
        "",
        "When nothing more will be shown: the media have ended, or the player gives up.",
        (*_FREEZES, "stall_time", "rebuffer_ratio", "level", "shown_level", "lowest_level", "instability",
         *_WORTH, "unfairness", "inefficiency", "max_min_share", "rudp_cwnd", "rudp_rto", "overbuffer",
         "thinning"),
        "The session lasts to the flow's `stop`, or to the trial's end.",
    ),
    MeasuredEvent(
        "rtt",
        "s",
        "At each measurement. Value: the round-trip time.",
        ("rtt", "loss_event_rate"),
        "`rtt` is that of the path (`rtt_source`: `path`).",
    ),
)  # fmt: skip

_TRANSFER = (
    MeasuredEvent(
        "transfer_complete",
        "s",
        "When all of a transfer has arrived. Value: the time since its connection was opened.",
        _TRANSFERS,
        "Transfer metrics are unknown, except for flows with `arrivals` and for `bulk` with `bytes`.",
    ),
    MeasuredEvent(
        "transfer_failed",
        "",
        "When a transfer ends before it is complete.",
        _TRANSFERS[:3],
        "None failed, if the player reports `transfer_complete`.",
    ),
)

_TCP = (
    MeasuredEvent(
        "tcp_cwnd", "B", "The congestion window of the sending end.", ("cwnd",), "`cwnd` is unknown."
    ),
    MeasuredEvent(
        "tcp_srtt",
        "s",
        "The smoothed round-trip time of the sending end (RFC 6298).",
        ("srtt",),
        "`srtt` is unknown.",
    ),
)

_CALL = (
    MeasuredEvent(
        "unrepaired",
        "packets",
        "Whenever the receiver gives packets up, since neither they nor a repetition arrived in time. "
        "Value: their number.",
        ("loss_after_repair",),
        "`loss_after_repair` is unknown, unless the player reports `discarded`.",
    ),
    MeasuredEvent(
        "discarded",
        "packets",
        "Whenever packets arrive too late for their picture. Value: their number.",
        ("discarded",),
        "`discarded` is unknown, unless the player reports `unrepaired`.",
    ),
)

_NO_WINDOW = "Without `rudp_cwnd` unknown; with it, 0."
_RELIABLE_UDP = (
    MeasuredEvent(
        "rudp_cwnd",
        "B",
        "The congestion window, at each change.",
        ("rudp_cwnd", "rudp_cut", "rudp_retransmit", "rudp_expired", "rudp_given_up", "stale_drop"),
        "Only metrics with an event of their own are known.",
    ),
    MeasuredEvent("rudp_rto", "s", "The retransmission timeout, at each change.", ("rudp_rto",), "Unknown."),
    MeasuredEvent("overbuffer", "s", "The time by which media is sent ahead.", ("overbuffer",), "Unknown."),
    MeasuredEvent("thinning", "1", "The level of thinning, 0 for none.", ("thinning",), "Unknown."),
    MeasuredEvent("rudp_cut", "", "Each reduction of the window.", ("rudp_cut",), _NO_WINDOW),
    MeasuredEvent("rudp_retransmit", "", "Each retransmitted packet.", ("rudp_retransmit",), _NO_WINDOW),
    MeasuredEvent(
        "rudp_expired",
        "",
        "Each packet without acknowledgement at its timeout.",
        ("rudp_expired",),
        _NO_WINDOW,
    ),
    MeasuredEvent(
        "rudp_given_up",
        "",
        "Each packet presumed lost and not retransmitted.",
        ("rudp_given_up",),
        _NO_WINDOW,
    ),
    MeasuredEvent("stale_drop", "", "Each packet that was too late to be sent.", ("stale_drop",), _NO_WINDOW),
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
