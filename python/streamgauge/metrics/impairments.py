"""Effects of the path on packets besides drops, as counts [flow, sample] of all flows, and as metrics.

Unlike everything else here these look at packets one by one, copies and fragments included.
"""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import PACKETS, PERCENT
from streamgauge.metrics.datagrams import CORRUPTED, MORE_FRAGMENTS
from streamgauge.metrics.frame import CE_MARKED, DOWN, StageInfo, Trial
from streamgauge.metrics.grid import Floats, Mask
from streamgauge.metrics.passage import NEVER
from streamgauge.metrics.queueing import crossing
from streamgauge.metrics.rates import sent_packets
from streamgauge.metrics.result import Series


def marked_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """Packets on which a stage set congestion experienced (RFC 3168 section 5), when they arrived there."""
    return _count(trial, trial.table["flags"] & CE_MARKED != 0, direction, "t_in")


def corrupted_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """Packets that left the path with a bit flipped; the receiving host throws them away."""
    return _count(trial, trial.leaving & (trial.table["flags"] & CORRUPTED != 0), direction, "t_out")


def fragment_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """Returns fragments of datagrams (RFC 791 section 3.2) that left the path, from any host or stage."""
    parts = (trial.table["fragment_offset"] > 0) | (trial.table["flags"] & MORE_FRAGMENTS != 0)
    return _count(trial, trial.leaving & parts, direction, "t_out")


def duplicate_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """Packets that arrived again: sound copies beyond the first of each (RFC 5560 section 2.4, less one)."""
    table = trial.table
    again = np.zeros(len(table["pkt"]), dtype=np.bool_)
    if table["copy"].any():
        rows = np.flatnonzero(trial.leaving & (table["flags"] & CORRUPTED == 0))
        rows = rows[np.lexsort((table["t_out"][rows], table["fragment_offset"][rows], table["pkt"][rows]))]
        pkt, part = table["pkt"][rows], table["fragment_offset"][rows]
        again[rows[1:][(pkt[1:] == pkt[:-1]) & (part[1:] == part[:-1])]] = True
    return _count(trial, again, direction, "t_out")


def _count(trial: Trial, rows: Mask, direction: int, at: str) -> Floats:
    if not rows.any():
        return np.zeros((len(trial.flows) + 1, len(trial.grid)))
    rows = rows & (trial.table["dir"] == direction) & (trial.table[at] != NEVER)
    return trial.passage(rows, at=at).total()


def flow_impairments(trial: Trial, flow: int) -> dict[str, Series]:
    """Returns how many packets of a flow were marked, came again, were corrupted or in fragments, and the
    share of its packets that was marked."""
    marked = trial.row(marked_packets, flow)
    return {
        "mark_rate": Series(marked, trial.row(sent_packets, flow)),
        "marked_packets": Series(marked),
        "duplicate_packets": Series(trial.row(duplicate_packets, flow)),
        "corrupted_packets": Series(trial.row(corrupted_packets, flow)),
        "fragment_packets": Series(trial.row(fragment_packets, flow)),
    }


def stage_marks(trial: Trial, stage: StageInfo) -> dict[str, Series]:
    """Returns how many packets a bottleneck marked, and which share of those that arrived there."""
    passed = trial.once(crossing, stage)
    marked = passed.marked.sum(axis=0)
    return {
        "mark_rate": Series(marked, passed.arrivals.total().sum(axis=0)),
        "marked_packets": Series(marked),
    }


METRICS = (
    Metric(
        "mark_rate",
        PERCENT,
        "flow or stage",
        "Packets marked CE",
        formula=(
            "100 · packets marked CE by a stage (RFC 3168) / packets offered; of a bottleneck, by it "
            "/ packets that arrived there"
        ),
        flow=flow_impairments,
        stage=stage_marks,
        number="M3",
    ),
    Metric(
        "marked_packets",
        PACKETS,
        "flow or stage",
        "Packets marked CE",
        formula="those marks",
        flow=flow_impairments,
        stage=stage_marks,
        number="M3",
        json="marked_packets",
    ),
    Metric(
        "duplicate_packets",
        PACKETS,
        "flow",
        "Packets that arrived again",
        formula="sound arrivals at the end of the path beyond the first of each packet (RFC 5560)",
        flow=flow_impairments,
        number="M8",
        json="duplicate_packets",
    ),
    Metric(
        "corrupted_packets",
        PACKETS,
        "flow",
        "Packets that arrived corrupted",
        formula="arrivals at the end of the path that the receiving host discards for their checksum",
        flow=flow_impairments,
        number="M3",
        json="corrupted_packets",
    ),
    Metric(
        "fragment_packets",
        PACKETS,
        "flow",
        "Fragments that arrived",
        formula="arrivals at the end of the path that are fragments",
        flow=flow_impairments,
        number="M8",
        json="fragment_packets",
    ),
)
