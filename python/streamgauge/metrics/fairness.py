"""M5: how evenly flows share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.metrics.grid import Floats


def jain(rates: Sequence[float] | Floats) -> float:
    """Jain's index J = (Σ x_i)² / (n Σ x_i²) of `rates` in any one unit; 1 is an even share, 1/n one taker.

    Source: Jain, Chiu and Hawe, DEC-TR-301 (1984). NaN if no flow has a rate. The index ignores that flows
    may want different rates. Averages over an experiment use each flow's mean offered rate less its mean
    loss rate, which alone reproduces all nine indices that De Cicco et al. print.

    Raises:
        ValueError: for a negative rate.
    """
    x = np.asarray(rates, dtype=np.float64)
    if (x < 0).any():
        raise ValueError(f"a rate cannot be negative: {x.min()}")
    largest = x.max(initial=0.0)
    if largest == 0:
        return float("nan")
    x = x / largest
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def jain_series(rates: Sequence[Floats], started: Sequence[Floats]) -> Floats:
    """The instantaneous index: one value per sample, over the flows that have started.

    Args:
        rates: per flow, its rate in each sample.
        started: per flow, 1 in the sample of its first packet and after, 0 before.

    Returns:
        One value per sample; NaN where fewer than two flows have started or none has a rate.
    """
    if not rates:
        return np.empty(0)
    x = np.clip(np.stack(rates), 0, None) * np.stack(started)
    count = np.stack(started).sum(axis=0)
    squares = (x**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        index = x.sum(axis=0) ** 2 / (count * squares)
    return np.where((count >= 2) & (squares > 0), index, np.nan)
