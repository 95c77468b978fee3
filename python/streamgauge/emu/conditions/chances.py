"""How far counts may lie from their expectation before it is no accident."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ACCIDENT = 1e-9
"""Probability of calling the count of a sound trial wrong."""
DEVIATIONS = 6.0
"""The same for a normal statistic, nearly: 2e-9."""
STAYS = 50
"""A chain's statistic is taken as normal from so many stays in each state on."""


def by_chance(hits: int, of: int, probability: float) -> bool:
    """Whether `hits` out of `of` independent draws may come of `probability`."""
    from scipy import stats  # 0.3 s, which only who needs it should wait

    return float(stats.binomtest(hits, of, probability).pvalue) >= ACCIDENT


def by_chain(lost: int, of: int, model: Mapping[str, Any]) -> bool | None:
    """Whether `lost` of `of` packets may come of a Gilbert or Gilbert-Elliott chain; None if too few.

    The losses are independent given the states, and the states' autocorrelation falls by
    r = 1 - 1/good - 1/bad a packet, so that n packets have the variance
    n (m (1 - m) + 2 v r / (1 - r)), where m is the mean ratio and v the variance between the states.
    """
    (runs,) = model.values()
    good, bad = runs["good_packets"], runs["bad_packets"]
    loss_good, loss_bad = runs.get("loss_good", 0.0), runs.get("loss_bad", 1.0)
    if of < STAYS * (good + bad):
        return None
    in_bad = bad / (good + bad)
    mean = in_bad * loss_bad + (1 - in_bad) * loss_good
    between = in_bad * (1 - in_bad) * (loss_bad - loss_good) ** 2
    r = 1 - 1 / good - 1 / bad
    variance = max(of * (mean * (1 - mean) + 2 * between * r / (1 - r)), 1.0)
    # A stay that is cut off at either end belongs to no average.
    return bool(abs(lost - of * mean) <= DEVIATIONS * math.sqrt(variance) + bad)


def drawn_from(draws: NDArray[np.int64], distribution: Mapping[str, Any]) -> bool:
    """Whether jitter, ns, may come of a distribution of the plan (Kolmogorov and Smirnov)."""
    from scipy import stats

    ((name, settings),) = distribution.items()
    match name:
        case "uniform":
            spread = settings["spread"]
            cumulative = stats.uniform(-spread, 2 * spread).cdf
        case "normal":
            cumulative = stats.norm(0, settings["deviation"]).cdf
        case "pareto":
            cumulative = stats.lomax(settings["shape"], scale=settings["scale"]).cdf
        case "gamma":
            cumulative = stats.gamma(settings["shape"], scale=settings["scale"]).cdf
        case _:
            quantiles = np.asarray(settings["quantiles"], dtype=float)
            places = np.linspace(0, 1, len(quantiles))

            def cumulative(x: Any) -> Any:
                return np.interp(x, quantiles, places)

    return float(stats.kstest(draws, cumulative).pvalue) >= ACCIDENT


def least_jitter(distribution: Mapping[str, Any]) -> int | None:
    """The least that a distribution adds to a delay, ns; None for the normal, which has no least."""
    ((name, settings),) = distribution.items()
    match name:
        case "uniform":
            return -int(settings["spread"])
        case "normal":
            return None
        case "table":
            return int(settings["quantiles"][0])
    return 0
