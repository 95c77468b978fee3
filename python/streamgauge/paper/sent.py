"""Data that figures of single packets need of a trial, kept beside its metrics: the times at which a flow's
own were sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from streamgauge.campaign.stored import has_metrics
from streamgauge.input_files import UnfitInputError, check_file
from streamgauge.metrics.activity import own_packets
from streamgauge.metrics.frame import DOWN, RETRANSMIT, prepare
from streamgauge.metrics.grid import SECOND_NS, Floats, Ints, Mask
from streamgauge.paper.published import Paper, scenarios_of
from streamgauge.record import Record
from streamgauge.record.schema import PACKETS

__all__ = ["FILE", "SentPackets", "SentTimes", "flows_of_packets", "sent_packets"]

FILE = "sent.parquet"
_COLUMNS = ("flow", "time", "seq", "again")
_OF_PACKETS = ("gaps", "sequence")
"""Figures that are drawn of packets."""


@dataclass(frozen=True)
class SentTimes:
    """A flow's own packets in the order in which they are offered to the path."""

    times_s: Floats
    numbers: Ints
    """The sequence number that each shows, -1 of one that shows none."""
    again: Mask
    """Whether it was sent before."""


@dataclass(frozen=True)
class SentPackets:
    """Keeps the packets of these flows when a trial's record is thinned out (`streamgauge.campaign`'s
    extra)."""

    flows: tuple[str, ...]

    def take(self, directory: Path) -> None:
        """Reads the record in a folder and leaves `FILE` there."""
        _taken(directory, self.flows).write_parquet(directory / FILE, compression="zstd")

    def has(self, directory: Path) -> bool:
        """Returns whether they are known, by that file or by the packets themselves, beside metrics."""
        return has_metrics(directory) and ((directory / PACKETS).exists() or _read(directory) is not None)


def flows_of_packets(paper: Paper) -> dict[str, tuple[str, ...]]:
    """Returns the flows with packets that the paper's figures show, by scenario."""
    found: dict[str, tuple[str, ...]] = {}
    for figure in paper.figures:
        if figure.draw in _OF_PACKETS:
            for panel in figure.more["panels_of"]:
                for one in panel.get("curves") or panel["points"]:
                    for scenario in scenarios_of(one):
                        found[scenario] = tuple(dict.fromkeys((*found.get(scenario, ()), one["flow"])))
    return found


def sent_packets(directory: Path, flow: str) -> SentTimes | None:
    """Returns a flow's packets in a trial's folder; None if nothing of packets was kept there."""
    table = _read(directory)
    if table is None:
        if not (directory / PACKETS).exists():
            return None
        table = _taken(directory, [flow])
    mine = table.filter(pl.col("flow") == flow)
    times, numbers = mine["time"].to_numpy() / SECOND_NS, mine["seq"].to_numpy()
    return SentTimes(times, numbers, mine["again"].to_numpy())


def _read(directory: Path) -> pl.DataFrame | None:
    try:
        check_file(directory / FILE)
        table = pl.read_parquet(directory / FILE)
    except (OSError, UnfitInputError, pl.exceptions.PolarsError):
        return None
    return table if table.columns == list(_COLUMNS) else None


def _taken(directory: Path, flows: Sequence[str]) -> pl.DataFrame:
    """Returns the packets of a record in a row each, in the order of `_COLUMNS`."""
    trial = prepare(Record.open(directory), None, None)
    offered, own = trial.offered[DOWN], own_packets(trial)
    tables = []
    for row, info in enumerate(trial.flows):
        if info.name in flows:
            # At equal times, by their numbers, which is the record's own order of sending.
            mine = own[row][np.lexsort((offered["pkt"][own[row]], offered.times_ns[own[row]]))]
            tables.append(
                pl.DataFrame(
                    {
                        "flow": np.full(len(mine), info.name),
                        "time": offered.times_ns[mine],
                        "seq": offered["seq"][mine].astype(np.int64),
                        "again": (offered["flags"][mine] & RETRANSMIT) != 0,
                    },
                    schema={"flow": pl.String, "time": pl.Int64, "seq": pl.Int64, "again": pl.Boolean},
                )
            )
    return pl.concat(tables)
