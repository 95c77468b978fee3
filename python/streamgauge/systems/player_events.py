"""The events that metrics are made of: what a player, or who else speaks for a flow, may say."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["MEASURED", "MeasuredEvent"]


@dataclass(frozen=True, slots=True)
class MeasuredEvent:
    """An event by whose name metrics know it."""

    name: str
    #: Of its value, as records have it: ``s``, ``B``, ``bit/s``, or ``1`` for a number. Empty where the value
    #: is not looked at.
    unit: str
    #: When to say it, and what its value is.
    says: str
    #: Metrics that it changes.
    feeds: tuple[str, ...]
    #: What follows where a third-party player never says it.
    absence: str
    #: Other units that its value may be in.
    also: tuple[str, ...] = ()
    #: The heading that it stands under in docs/player-events.md.
    group: str = ""

    def takes(self, unit: str) -> bool:
        """Whether a value may be in that unit, as records have it. Without one it is taken to be in the
        event's; numbers are not looked at so closely."""
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
        "Once, when the first picture is shown. Value: the time since play was asked for.",
        ("startup_delay", "buffering_start", "buffering_end", *_PHASES, *_STALLS, "shown_level",
         "lowest_level", *_WORTH),
        "`buffering_start`, `buffering_end` and what is between and after them are not known, without its "
        "value the first of them. "
        "`startup_delay` is from the flow's first packet to the first `frame_shown`. Without either of the "
        "two it is not known, nor is `rebuffer_ratio`, `shown_level`, `qoe_lin` or `qoe_log`.",
    ),
    MeasuredEvent(
        "frame_shown",
        "1",
        "At each picture, when it is shown. Value: the frame's number in the clip, from 0, which runs on "
        "where the clip begins again and leaves out what is not shown.",
        (*_FRAMES, *_FREEZES, *_STALLS, "startup_delay", "live_latency", "shown_level", "lowest_level",
         *_WORTH),
        "Nothing of frames and freezes is known, nor `live_latency`. Without its value `live_latency` alone "
        "is not known.",
    ),
    MeasuredEvent(
        "frame_late",
        "",
        "At each picture that came whole after it was due and was not shown.",
        (*_FRAMES, *_FREEZES),
        "`frames_lost` counts `frame_incomplete` alone; without both it is not known.",
    ),
    MeasuredEvent(
        "frame_incomplete",
        "",
        "At each picture that was due and never came whole, when it was due.",
        (*_FRAMES, *_FREEZES),
        "`frames_lost` counts `frame_late` alone; without both it is not known.",
    ),
    MeasuredEvent(
        "dropped_frames",
        "1",
        "Every second or so, or at each, by a player that counts the pictures that it had and did not show, "
        "as browsers do, and says each `frame_shown`. Value: how many there were since play began.",
        ("frames_lost",),
        "`frames_lost` counts `frame_late` and `frame_incomplete` alone.",
    ),
    MeasuredEvent(
        "stall",
        "",
        "Whenever play stops because nothing is there to be shown, after it has begun.",
        (*_STALLS, *_FREEZES, "shown_level", "lowest_level", *_WORTH),
        "What is of stalls is not known, unless `stall_count` is said.",
    ),
    MeasuredEvent(
        "resume",
        "",
        "Whenever play goes on after a `stall`.",
        (*_STALLS, *_FREEZES, "shown_level", "lowest_level", *_WORTH),
        "A stall goes on to the media's end, and others within it are one with it.",
    ),
    MeasuredEvent(
        "stall_count",
        "",
        "Once at the start is enough, with 0: stalls will be told if there are any.",
        (*_STALLS, "shown_level", *_WORTH),
        "Of a trial without a `stall` it is not known that there was none.",
    ),
    MeasuredEvent(
        "level_changed",
        "bit/s",
        "When the first level is chosen, and whenever another is. Value: the bit rate of the encoding that "
        "is played, or fetched, from then on; a level's number, in unit 1, counts changes alone.",
        (*_LEVELS, "clip_levels", "lowest_clip_level"),
        "Nothing of levels is known, unless `segment_shown` or `level_shown` is said.",
        also=("1",),
    ),
    MeasuredEvent(
        "level_shown",
        "bit/s",
        "When the first level is shown, and whenever another is, by a player that says `level_changed` when "
        "it chooses one. Value: the bit rate of the encoding.",
        _LEVELS,
        "Levels are those of `level_changed`.",
    ),
    MeasuredEvent(
        "segment_shown",
        "bit/s",
        "When the first picture of a segment is shown. Value: the bit rate of its encoding; the reason is "
        "`segment` and its number, from 0.",
        _LEVELS,
        "Levels are those of `level_changed`; for `qoe_lin` and `qoe_log` what is played counts as segments "
        "as long as the clip's. `streamgauge quality` judges no segments.",
    ),
    MeasuredEvent(
        "estimate",
        "bit/s",
        "Whenever the player reckons it anew. Value: the throughput that it expects.",
        ("estimate",),
        "`estimate` is not known.",
    ),
    MeasuredEvent(
        "live_latency",
        "s",
        "Every half a second or so, of a live stream. Value: how long ago what is shown was captured.",
        ("live_latency",),
        "`live_latency` is reckoned by the numbers of `frame_shown`.",
    ),
    MeasuredEvent(
        "buffer",
        "s",
        "Every half a second or so. Value: media held, from where play is to the newest that can be played.",
        ("buffer",),
        "`buffer` is not known.",
    ),
    MeasuredEvent(
        "media_end",
        "",
        "When nothing more will be shown: the media has ended, or the player gives up.",
        (*_FREEZES, "stall_time", "rebuffer_ratio", "level", "shown_level", "lowest_level", "instability",
         *_WORTH, "unfairness", "inefficiency", "max_min_share", "rudp_cwnd", "rudp_rto", "overbuffer",
         "thinning"),
        "The session lasts to the flow's `stop`, or to the trial's end.",
    ),
    MeasuredEvent(
        "rtt",
        "s",
        "Whenever it is measured. Value: the round-trip time.",
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
        "Of a flow that is no short transfers, and no `bulk` of a stated size, nothing of transfers is "
        "known.",
    ),
    MeasuredEvent(
        "transfer_failed",
        "",
        "When a transfer ends before.",
        _TRANSFERS[:3],
        "None failed, if `transfer_complete` is said.",
    ),
)

_TCP = (
    MeasuredEvent(
        "tcp_cwnd", "B", "The congestion window of the sending end.", ("cwnd",), "`cwnd` is not known."
    ),
    MeasuredEvent(
        "tcp_srtt",
        "s",
        "The smoothed round-trip time of the sending end (RFC 6298).",
        ("srtt",),
        "`srtt` is not known.",
    ),
)

_NO_WINDOW = "Without `rudp_cwnd` not known; with it, 0."
_RELIABLE_UDP = (
    MeasuredEvent(
        "rudp_cwnd",
        "B",
        "The congestion window, whenever it is another.",
        ("rudp_cwnd", "rudp_cut", "rudp_retransmit", "rudp_expired", "rudp_given_up", "stale_drop"),
        "Nothing of Reliable UDP is known but what is told by its own event.",
    ),
    MeasuredEvent("rudp_rto", "s", "The retransmission timeout, likewise.", ("rudp_rto",), "Not known."),
    MeasuredEvent(
        "overbuffer", "s", "How far ahead of its time media is sent.", ("overbuffer",), "Not known."
    ),
    MeasuredEvent("thinning", "1", "The level of thinning, 0 for none.", ("thinning",), "Not known."),
    MeasuredEvent("rudp_cut", "", "Each reduction of the window.", ("rudp_cut",), _NO_WINDOW),
    MeasuredEvent("rudp_retransmit", "", "Each packet sent again.", ("rudp_retransmit",), _NO_WINDOW),
    MeasuredEvent(
        "rudp_expired",
        "",
        "Each packet that was not acknowledged when its time was over.",
        ("rudp_expired",),
        _NO_WINDOW,
    ),
    MeasuredEvent(
        "rudp_given_up",
        "",
        "Each packet held for lost and not sent again.",
        ("rudp_given_up",),
        _NO_WINDOW,
    ),
    MeasuredEvent("stale_drop", "", "Each packet that was too late to be sent.", ("stale_drop",), _NO_WINDOW),
)

MEASURED: dict[str, MeasuredEvent] = {
    event.name: replace(event, group=group)
    for group, events in (
        ("Of a player", _PLAYER),
        ("Of transfers", _TRANSFER),
        ("Of TCP", _TCP),
        ("Of Reliable UDP", _RELIABLE_UDP),
    )
    for event in events
}
"""Every event that metrics are made of, by its name, in the order that people read."""
