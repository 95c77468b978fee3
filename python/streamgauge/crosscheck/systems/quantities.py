"""Numbers of one trial that distinguish a system from a similar one: all of them are metrics of every trial
(docs/metrics.md), of the session or of the flow beside it."""

from __future__ import annotations

from typing import Final

from streamgauge.crosscheck.compared import ComparedQuantity

__all__ = ["METRICS", "OF_LADDERS", "OF_RIVALS", "QUANTITIES", "quantity"]

_ALL = (
    (ComparedQuantity("sent_bps", "kbit/s", "sent", 0.05, 2000, 1e-3), "throughput_bps"),
    (ComparedQuantity("received_bps", "kbit/s", "received", 0.05, 2000, 1e-3), "receiver_rate_bps"),
    (ComparedQuantity("loss_percent", "%", "lost", 0.1, 0.5), "loss_percent"),
    (ComparedQuantity("packet_bytes", "B", "mean packet", 0.05, 10), "mean_packet_bytes"),
    (ComparedQuantity("retransmitted_percent", "%", "sent again", 0.1, 0.5), "retransmitted_percent"),
    (ComparedQuantity("delay_s", "ms", "one-way delay, mean", 0.1, 0.003, 1e3), "path_delay_mean_s"),
    (ComparedQuantity("up_bps", "kbit/s", "sent by the player", 0.1, 200, 1e-3), "up_throughput_bps"),
    (ComparedQuantity("startup_s", "s", "start-up", 0.1, 0.1), "startup_delay_s"),
    (ComparedQuantity("stall_time_s", "s", "stalled", 0.2, 1), "stall_time_s"),
    (ComparedQuantity("frames_shown", "", "pictures shown", 0.1, 10), "frames_shown"),
    (ComparedQuantity("buffer_s", "s", "media held, mean", 0.1, 0.3), "buffer_mean_s"),
    (ComparedQuantity("level_bps", "kbit/s", "rate shown, mean", 0.1, 0, 1e-3), "level_mean_bps"),
    (ComparedQuantity("level_changes", "", "changes of level", 0.2, 1.5), "level_changes"),
    (ComparedQuantity("beside_bps", "kbit/s", "received beside it", 0.05, 2000, 1e-3), "receiver_rate_bps"),
)
QUANTITIES: Final = {one.name: one for one, _ in _ALL}
METRICS: Final = {one.name: metric for one, metric in _ALL}
"""The metric, as JSON has it, that each is."""
OF_LADDERS: Final = ("level_bps", "level_changes")
"""Only where a player chooses among levels."""
OF_RIVALS: Final = ("beside_bps",)
"""Metrics of the flow beside it, if there is one."""


def quantity(metric: str) -> ComparedQuantity:
    """Returns the quantity of a row's metric."""
    return QUANTITIES[metric]
