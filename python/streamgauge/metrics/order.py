"""Order statistics."""

from __future__ import annotations

import math

import numpy as np

from streamgauge.metrics.grid import Floats


def percentile(values: Floats, percent: float) -> float | None:
    """Returns a percentile of finite values, None of none: between the two nearest in rank in proportion
    (type 7 of Hyndman and Fan, *Sample Quantiles in Statistical Packages*, 1996, which is numpy's own)."""
    if not len(values):
        return None
    # As np.percentile, where the checks of the input cost more than the search.
    place = (len(values) - 1) * percent / 100
    above = math.ceil(place)
    parted = np.partition(values, above)
    high = float(parted[above])
    low = float(parted[:above].max()) if above > place else high
    return low + (high - low) * (place - math.floor(place))
