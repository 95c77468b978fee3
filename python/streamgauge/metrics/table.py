"""Our own metrics, in the order for readers. Each stands in the module that measures it."""

from __future__ import annotations

from collections.abc import Mapping

from streamgauge.claims.declaration import Metric, declared
from streamgauge.metrics import (
    activity,
    buffering,
    bursts,
    calls,
    delay,
    fairness,
    impairments,
    levels,
    live,
    players,
    queueing,
    rates,
    reliable_udp,
    runs,
    shares,
    smoothness,
    tcp,
    transfers,
    viewer,
)

__all__ = ["OWN"]

_MODULES = (
    rates, activity, smoothness, buffering, delay, tcp, queueing, runs, impairments, bursts, shares, fairness,
    viewer, live, calls, levels, players, transfers, reliable_udp,
)  # fmt: skip

OWN: Mapping[str, Metric] = declared(*(metric for module in _MODULES for metric in module.METRICS))
