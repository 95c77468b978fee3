"""Cells of the table: a quantile of all seeds' pictures together, with an interval by seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge.metrics.grid import Floats

__all__ = ["CONFIDENCE", "LatencyCell", "LatencyTable", "Waits", "cell_of"]

CONFIDENCE = 0.95
"""Level of the intervals."""
_RESAMPLES = 999
_SEED = 20_200_101
_MS = 1e-3
"""Latencies are whole milliseconds, as the handshake has them."""


@dataclass(frozen=True)
class Waits:
    """The pictures of one trial."""

    waits_s: Floats
    """Least latency of each picture that was shown, in s, ascending."""
    pictures: int
    """Pictures that were due, shown or not."""


@dataclass(frozen=True)
class LatencyCell:
    """The answer for one loss and one round trip."""

    loss: str
    rtt: str
    loss_fraction: float
    rtt_s: float
    most_s: float
    """The latency of the trials: a longer one was not tried."""
    seeds: int
    pictures: int
    latency_s: float | None
    """The least latency that shows the share of pictures; None if `most_s` does not."""
    low_s: float | None
    """Lower end of the interval; None with fewer than two seeds, or where it is beyond `most_s`."""
    high_s: float | None
    """Upper end."""
    arq_s: float | None = None
    """The latency of plain ARQ by theory, in s; None with losses in bursts."""

    @property
    def round_trips(self) -> float | None:
        """Returns the latency in round trips."""
        return None if self.latency_s is None else self.latency_s / self.rtt_s

    def to_json(self) -> dict[str, Any]:
        """Returns the cell as plain values."""
        return {
            "loss_percent": 100 * self.loss_fraction,
            "rtt_s": self.rtt_s,
            "most_latency_s": self.most_s,
            "seeds": self.seeds,
            "pictures": self.pictures,
            "latency_s": self.latency_s,
            "latency_round_trips": self.round_trips,
            "interval_s": [self.low_s, self.high_s] if self.seeds > 1 else None,
            "plain_arq_s": self.arq_s,
        }


@dataclass(frozen=True)
class LatencyTable:
    """All cells, row by row: a row is a loss, a column a round trip."""

    system: str
    share: float
    burst: str | None
    seconds: float
    losses: tuple[str, ...]
    rtts: tuple[str, ...]
    cells: tuple[LatencyCell, ...]
    invalid: int = 0
    interrupted: bool = False

    def row(self, loss: str) -> list[LatencyCell]:
        """Returns the cells of a loss."""
        return [cell for cell in self.cells if cell.loss == loss]

    def to_json(self) -> dict[str, Any]:
        """Returns ``streamgauge.latency-table/1``."""
        return {
            "schema": "streamgauge.latency-table/1",
            "system": self.system,
            "shown_percent": 100 * self.share,
            "burst": self.burst,
            "seconds": self.seconds,
            "confidence_percent": 100 * CONFIDENCE,
            "cells": [cell.to_json() for cell in self.cells],
            "invalid_trials": self.invalid,
            "interrupted": self.interrupted,
        }


def cell_of(
    trials: Sequence[Waits],
    share: float,
    *,
    loss: tuple[str, float],
    rtt: tuple[str, float],
    most_s: float,
    arq_s: float | None = None,
) -> LatencyCell:
    """Returns the cell of the trials of one loss and one round trip.

    The interval is the percentile bootstrap over seeds (Efron and Tibshirani, "An Introduction to the
    Bootstrap", 1993, section 13.3): pictures of a trial are lost together, so that a seed is the unit. Its
    resamples are the same in each call.

    Args:
        trials: by seed.
        share: share of the pictures that must be shown, between 0 and 1.
        loss: as asked, and as a fraction.
        rtt: as asked, and in s.
        most_s: the latency of the trials, in s.
        arq_s: that of plain ARQ by theory, in s.
    """
    latency = _quantile(trials, share, most_s)
    low = high = None
    if len(trials) > 1:
        rng = np.random.default_rng(_SEED)
        drawn = rng.integers(0, len(trials), size=(_RESAMPLES, len(trials)))
        found = np.sort([_quantile([trials[at] for at in row], share, most_s) for row in drawn])
        tail = int((1 - CONFIDENCE) / 2 * _RESAMPLES)
        low, high = float(found[tail]), float(found[_RESAMPLES - 1 - tail])
    return LatencyCell(
        loss=loss[0],
        rtt=rtt[0],
        loss_fraction=loss[1],
        rtt_s=rtt[1],
        most_s=most_s,
        seeds=len(trials),
        pictures=sum(one.pictures for one in trials),
        latency_s=_known(latency),
        low_s=None if low is None else _known(low),
        high_s=None if high is None else _known(high),
        arq_s=arq_s,
    )


def _known(latency: float) -> float | None:
    return latency if math.isfinite(latency) else None


def _quantile(trials: Sequence[Waits], share: float, most_s: float) -> float:
    """Returns the least latency in whole ms that shows the share of all pictures; infinite if none does."""
    pictures = sum(one.pictures for one in trials)
    needed = math.ceil(share * pictures - 1e-9)
    if not pictures:
        return math.inf
    waits = np.concatenate([one.waits_s for one in trials])
    if needed > len(waits):
        return math.inf
    at = float(np.partition(waits, needed - 1)[needed - 1]) if needed else 0.0
    latency = math.ceil(at / _MS - 1e-6) * _MS
    return round(latency, 3) if latency <= most_s + 1e-9 else math.inf
