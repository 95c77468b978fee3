"""Numbers of one trial that distinguish a repair of losses from a similar one, with their margins.

The packets are those on the wire, by the record of the path. The receiver reports skipped packets and
pictures: our machine in sim, and in emu the program of others and our reader of its stream.
"""

from __future__ import annotations

from typing import Final

from streamgauge.crosscheck.compared import ComparedQuantity

__all__ = ["EVENTS", "METRICS", "QUANTITIES", "quantity"]

_OF_METRICS = (
    (ComparedQuantity("sent_bytes", "kB", "sent", 0.05, 10_000, 1e-3), "sent_bytes"),
    (ComparedQuantity("sent_packets", "", "datagrams sent", 0.05, 20), "sent_packets"),
    (ComparedQuantity("loss_percent", "%", "lost", 0.15, 0.7), "loss_percent"),
    (ComparedQuantity("retransmitted_percent", "%", "sent again", 0.15, 0.7), "retransmitted_percent"),
    (
        ComparedQuantity("unrepaired_percent", "%", "lost after repair", 0.25, 0.3),
        "loss_after_repair_percent",
    ),
    (ComparedQuantity("delay_s", "ms", "one-way delay, mean", 0.1, 0.003, 1e3), "path_delay_mean_s"),
)
_OF_EVENTS = (
    (ComparedQuantity("pictures_shown", "", "pictures shown", 0.03, 4), "frame_shown"),
    (ComparedQuantity("pictures_lost", "", "pictures lost", 0.25, 4), "frame_incomplete"),
)
QUANTITIES: Final = {one.name: one for one, _ in (*_OF_METRICS, *_OF_EVENTS)}
METRICS: Final = {one.name: metric for one, metric in _OF_METRICS}
"""The metric, as JSON has it, that each is."""
EVENTS: Final = {one.name: name for one, name in _OF_EVENTS}
"""The event whose number each is."""


def quantity(metric: str) -> ComparedQuantity:
    """Returns the quantity of a row's metric."""
    return QUANTITIES[metric]
