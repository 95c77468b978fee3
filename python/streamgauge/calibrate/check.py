"""A row of a calibration, and its verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Bound = float | tuple[float | None, float | None]
RowVerdict = Literal["pass", "fail", "inconclusive", "skipped"]


@dataclass(frozen=True, kw_only=True)
class CalibrationRow:
    """The configured value, the measured one, and their largest valid distance.

    `error` is measured - asked, in `error_unit`, or relative where that is a percentage. `bound` is its
    largest magnitude, or a (least, largest) pair with None for no limit.
    """

    id: str
    what: str
    unit: str
    asked: float | None
    measured: float | None
    bound: Bound
    relative: bool = False
    """The error is a percentage of the configured value."""
    resolution: float | None = None
    """Standard error of the error, in its unit; None where counts are exact or the bound has it in it."""
    n: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    skipped: str | None = None
    """Why it could not be measured."""

    @property
    def error(self) -> float | None:
        """In `error_unit`; None if there is nothing to compare."""
        if self.asked is None or self.measured is None or math.isnan(self.measured):
            return None
        difference = self.measured - self.asked
        return 100 * difference / self.asked if self.relative else difference

    @property
    def error_unit(self) -> str:
        """Returns the unit of the error, the bound and the resolution."""
        return "%" if self.relative else self.unit

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Returns the bound as least and largest error."""
        if isinstance(self.bound, tuple):
            return self.bound
        return (-self.bound, self.bound)

    @property
    def verdict(self) -> RowVerdict:
        """Returns pass if the error is within the bound; inconclusive if the resolution is too coarse."""
        if self.skipped is not None:
            return "skipped"
        error = self.error
        if error is None:
            return "fail"
        low, high = self.interval
        widths = [abs(edge) for edge in (low, high) if edge is not None]
        if self.resolution is not None and 2 * self.resolution > min(widths, default=math.inf):
            return "inconclusive"
        inside = (low is None or error >= low) and (high is None or error <= high)
        return "pass" if inside else "fail"

    def to_json(self) -> dict[str, Any]:
        """As in ``checks`` of a calibration."""
        low, high = self.interval
        symmetric = low is not None and high is not None and low == -high
        return {
            "id": self.id,
            "what": self.what,
            "unit": self.unit,
            "asked": self.asked,
            "measured": None if self.measured is None or math.isnan(self.measured) else self.measured,
            "error": self.error,
            "error_unit": self.error_unit,
            "bound": high if symmetric else [low, high],
            "resolution": self.resolution,
            "n": self.n,
            "verdict": self.verdict,
            "skipped": self.skipped,
            "details": dict(self.details),
        }


def overall(checks: Iterable[Mapping[str, Any]]) -> Literal["pass", "fail"]:
    """Pass if no row fails and at least one was measured."""
    verdicts = [check["verdict"] for check in checks]
    return "pass" if "pass" in verdicts and "fail" not in verdicts else "fail"
