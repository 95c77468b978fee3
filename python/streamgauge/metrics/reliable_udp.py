"""The state of Reliable UDP as its server reports it: window, timeout, repairs, and abandoned packets."""

from __future__ import annotations

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
