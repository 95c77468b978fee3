"""Effects of the path on packets besides drops, as counts [flow, sample] of all flows at once.

Unlike everything else here these look at packets one by one, copies and fragments included.
"""

from __future__ import annotations

import numpy as np

from streamgauge.metrics.datagrams import CORRUPTED, MORE_FRAGMENTS
from streamgauge.metrics.frame import DOWN, Trial
from streamgauge.metrics.grid import Floats, Mask
from streamgauge.metrics.passage import NEVER

CE_MARKED = 4


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
