"""Runs of lost and of delivered packets between two captures: whether losses come in bursts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from streamgauge.record import Record

__all__ = ["gilbert_words", "loss_runs"]

FEWEST_RUNS: Final = 20
"""Bursts that are needed to fit a model."""
_BURSTY: Final = 1.3
"""Independent losses have runs of 1 / (1 - loss) packets on the mean; bursts are so many times longer."""
Row = Mapping[str, Any]


def loss_runs(directory: Path) -> dict[str, dict[str, float]]:
    """Returns for each direction, `main` and `back`, mean lengths of runs in order of arrival, and the bad
    ones."""
    packets = Record.open(directory).packets
    found = {}
    for key, stage in (("main", "bottleneck"), ("back", "up.bottleneck")):
        own = packets.filter(pl.col("stage") == stage, pl.col("copy") == 0).sort("t_in")
        runs = (own["fate"] == "dropped").rle().struct.unnest()
        bad, good = (runs.filter(pl.col("value") == lost)["len"] for lost in (True, False))
        if len(bad) and len(good):
            found[key] = {"good": float(good.mean()), "bad": float(bad.mean()), "bursts": len(bad)}  # type: ignore[arg-type]
    return found


def gilbert_words(row: Row, runs: Row | None) -> str | None:
    """The loss of a direction as Gilbert's model (1960), in words. None where losses are independent,
    too few, or those of a full queue."""
    if runs is None or runs["bursts"] < FEWEST_RUNS or row["queue_bytes"] is not None:
        return None
    loss = runs["bad"] / (runs["bad"] + runs["good"])
    if runs["bad"] < _BURSTY / (1 - loss):
        return None
    return f"{{gilbert: {{good: {runs['good']:.4g} packets, bad: {runs['bad']:.4g} packets}}}}"
