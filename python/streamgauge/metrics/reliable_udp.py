"""The state of Reliable UDP as its server reports it: window, timeout, repairs, and abandoned packets."""

from __future__ import annotations

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import DATA, NUMBER, PACKETS, TIME
from streamgauge.metrics.course import counted, stepped
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.metrics.result import Series

STATES = {"rudp_cwnd": 8.0, "rudp_rto": 1.0, "overbuffer": 1.0, "thinning": 1.0}
"""Events with a value that holds until the next, with canonical units in one of theirs."""
OCCURRENCES = ("rudp_cut", "rudp_retransmit", "rudp_expired", "rudp_given_up", "stale_drop")
"""Events that each count one action."""


def reported(trial: Trial, flow: int) -> dict[str, Series]:
    """Returns a flow's server reports; empty if it never reported its window.

    States are means over time of a value that holds until the next report (at most every 50 ms, and at every
    cut); occurrences are counts.
    """
    said = trial.said
    found = {}
    over = [round(trial.duration_s * SECOND_NS), *said.of("media_end", flow)[0].tolist()]
    for name, scale in STATES.items():
        if said.has(name, flow):
            found[name] = stepped(trial.grid, said.of(name, flow), int(min(over)), scale)
    if said.has("rudp_cwnd", flow):
        found |= {name: Series(counted(trial.grid, said.of(name, flow)[0])) for name in OCCURRENCES}
    elif said.has("stale_drop", flow):
        found["stale_drop"] = Series(counted(trial.grid, said.of("stale_drop", flow)[0]))
    return found


METRICS = (
    Metric(
        "rudp_cwnd",
        DATA,
        "flow",
        "Congestion window of Reliable UDP",
        formula="congestion window",
        flow=reported,
        reads=(
            "media_end",
            "rudp_cwnd",
        ),
        json={"rudp_cwnd_mean_bytes": "mean", "rudp_cwnd_min_bytes": "min", "rudp_cwnd_max_bytes": "max"},
        whole=False,
        section="reliable-udp",
    ),
    Metric(
        "rudp_rto",
        TIME,
        "flow",
        "Retransmission timeout of Reliable UDP",
        formula="retransmission timeout",
        flow=reported,
        reads=(
            "media_end",
            "rudp_rto",
        ),
        json="rudp_rto_mean_s",
        section="reliable-udp",
    ),
    Metric(
        "rudp_cut",
        NUMBER,
        "flow",
        "Window reductions of Reliable UDP",
        formula="window reductions",
        flow=reported,
        reads=(
            "rudp_cwnd",
            "rudp_cut",
        ),
        json="rudp_cuts",
        whole=True,
        section="reliable-udp",
    ),
    Metric(
        "rudp_retransmit",
        PACKETS,
        "flow",
        "Packets retransmitted by Reliable UDP",
        formula="retransmissions",
        flow=reported,
        reads=(
            "rudp_cwnd",
            "rudp_retransmit",
        ),
        section="reliable-udp",
    ),
    Metric(
        "rudp_expired",
        PACKETS,
        "flow",
        "Packets whose time was over before they were acknowledged",
        formula="packets without acknowledgement at their timeout",
        flow=reported,
        reads=(
            "rudp_cwnd",
            "rudp_expired",
        ),
        section="reliable-udp",
    ),
    Metric(
        "rudp_given_up",
        PACKETS,
        "flow",
        "Packets held for lost and not repeated",
        formula="packets presumed lost and not repeated, with `retransmission: off`",
        flow=reported,
        reads=(
            "rudp_cwnd",
            "rudp_given_up",
        ),
        section="reliable-udp",
    ),
    Metric(
        "stale_drop",
        PACKETS,
        "flow",
        "Packets too late to be sent",
        formula="packets that were too late to be sent",
        flow=reported,
        better="less",
        reads=(
            "rudp_cwnd",
            "stale_drop",
        ),
        section="reliable-udp",
    ),
    Metric(
        "overbuffer",
        TIME,
        "flow",
        "Sent ahead of its time",
        formula="time by which media is sent ahead",
        flow=reported,
        signed=True,
        reads=(
            "media_end",
            "overbuffer",
        ),
        json={"overbuffer_mean_s": "mean", "overbuffer_max_s": "max"},
        section="reliable-udp",
    ),
    Metric(
        "thinning",
        NUMBER,
        "flow",
        "Thinning level",
        formula="level of thinning, 0 for none",
        flow=reported,
        reads=(
            "media_end",
            "thinning",
        ),
        json="thinning_mean",
        section="reliable-udp",
    ),
)
