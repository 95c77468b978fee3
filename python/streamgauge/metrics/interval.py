"""Mean and 95 % interval over repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Interval:
    """A mean over `n` repetitions with the half-width of its 95 % interval.

    `half_width` is None for fewer than two repetitions. `no_variation` means that all repetitions agree: the
    interval then has no width because nothing varied, which is no sign of confidence.
    """

    mean: float
    half_width: float | None
    n: int
    no_variation: bool

    @property
    def low(self) -> float | None:
        """Returns the interval's lower end."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Returns the interval's upper end."""
        return None if self.half_width is None else self.mean + self.half_width

    def words(self) -> str:
        """Returns the kind of interval: ``95 % interval, n = 10``, ``no variation, n = 10``, ``n = 1``."""
        if self.n < 2:
            return f"n = {self.n}"
        return f"no variation, n = {self.n}" if self.no_variation else f"95 % interval, n = {self.n}"


def interval(values: Sequence[float]) -> Interval:
    """Mean ± t(0.975, n - 1) · s / √n of independent repetitions, by Student's t distribution.

    Values that agree to a relative 1e-12 show no variation.

    Raises:
        ValueError: if there are no values, or one is not finite.
    """
    x = np.asarray(values, dtype=np.float64)
    if len(x) == 0 or not np.isfinite(x).all():
        raise ValueError(f"an interval needs finite values, not {list(values)}")
    mean = float(x.mean())
    if len(x) < 2:
        return Interval(mean, None, len(x), False)
    if float(np.ptp(x)) <= 1e-12 * float(np.abs(x).max()):
        return Interval(mean, 0.0, len(x), True)
    # scipy.special alone: scipy.stats would add a second to every start of the program.
    from scipy.special import stdtrit

    half = float(stdtrit(len(x) - 1, 0.975)) * float(x.std(ddof=1)) / float(np.sqrt(len(x)))
    return Interval(mean, half, len(x), False)
