"""One stage's rows of `packets.parquet` as columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

DELIVERED, DROPPED = 0, 1
QUEUE_FULL, RANDOM_LOSS, BLOCKED, TOO_BIG = 1, 2, 4, 5
PROBE, OTHER = 4, 6
CORRUPTED, MORE_FRAGMENTS = 8, 16
"""Codes of crates/plan's legend."""

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_COLUMNS = (
    *("pkt", "copy", "flow", "kind", "t_in", "t_out", "fate", "cause"),
    *("wire_bytes", "ip_bytes", "payload_bytes", "flags", "fragment_offset", "queue_bytes", "queue_packets"),
)


@dataclass(frozen=True)
class Rows:
    """One row for each packet, in order of arrival. `t_out` is -1 for a packet that did not leave. Times in
    ns."""

    pkt: Numbers
    copy: Numbers
    flow: Numbers
    kind: Numbers
    t_in: Numbers
    t_out: Numbers
    fate: Numbers
    cause: Numbers
    wire_bytes: Numbers
    ip_bytes: Numbers
    payload_bytes: Numbers
    flags: Numbers
    fragment_offset: Numbers
    queue_bytes: Numbers
    queue_packets: Numbers

    def __len__(self) -> int:
        return len(self.pkt)

    @classmethod
    def of(cls, packets: pl.DataFrame, stage: int) -> Rows:
        """Those of one stage, by its code."""
        rows = packets.filter(pl.col("stage") == stage).sort("t_in", "t_out", "pkt", nulls_last=True)
        # A record of the first version has whole packets only.
        lacks = [pl.lit(0).alias(name) for name in _COLUMNS if name not in rows.columns]
        rows = rows.with_columns(lacks).with_columns(pl.col("t_out").fill_null(-1))
        return cls(**{name: rows[name].cast(pl.Int64).to_numpy() for name in _COLUMNS})

    def between(self, begin: int, end: int) -> Mask:
        """Selects arrivals after `begin` and before `end`."""
        return np.asarray((self.t_in > begin) & (self.t_in < end))

    @property
    def delivered(self) -> Mask:
        return np.asarray(self.fate == DELIVERED)

    def dropped(self, cause: int) -> Mask:
        """Selects packets that were dropped for this reason."""
        return np.asarray((self.fate == DROPPED) & (self.cause == cause))

    @property
    def cut_here(self) -> Mask:
        """Selects fragments that arrived as one packet: several of one packet at one time."""
        order = np.lexsort((self.t_in, self.copy, self.pkt))
        same = np.ones(max(len(self) - 1, 0), dtype=np.bool_)
        for column in (self.pkt, self.copy, self.t_in):
            same &= column[order][1:] == column[order][:-1]
        found = np.zeros(len(self), dtype=np.bool_)
        found[order[1:][same]] = found[order[:-1][same]] = True
        return found

    @property
    def protocol(self) -> NDArray[np.str_]:
        """Returns the protocol of each above IP, by its header bytes: UDP and ICMP echo have 28 with those of
        IP, TCP at least 40. "" for housekeeping and for parts of datagrams."""
        headers = self.ip_bytes - self.payload_bytes
        whole = (self.fragment_offset == 0) & (self.flags & MORE_FRAGMENTS == 0)
        known = whole & (self.kind != OTHER)
        found = np.full(len(self), "", dtype="<U4")
        found[known & (self.kind != PROBE) & (headers == 28)] = "udp"
        found[known & (headers >= 40)] = "tcp"
        found[whole & (self.kind == PROBE)] = "icmp"
        return found
