"""The samples that a trial is cut into, and the window that is measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from streamgauge.claims.dimension import TIME, UNITS
from streamgauge.errors import RecordError

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer[Any]]
"""Integers as narrow as a record holds them."""
Mask = npt.NDArray[np.bool_]

SECOND_NS = 1e9
DEFAULT_SAMPLE_S = 0.5
"""De Cicco et al. average over 0.5 s."""


@dataclass(frozen=True)
class Grid:
    """Samples from the trial's begin to its end.

    `edges_ns` are the samples' bounds, ascending; those of the measurement window are among them, so that
    sums over samples `first` to `last` (exclusive) are exactly sums over the window.
    """

    edges_ns: Ints
    first: int
    last: int
    sample_s: float

    @property
    def begin_s(self) -> float:
        """Returns the window's begin."""
        return float(self.edges_ns[self.first]) / SECOND_NS

    @property
    def end_s(self) -> float:
        """Returns the window's end, itself outside."""
        return float(self.edges_ns[self.last]) / SECOND_NS

    @property
    def starts_s(self) -> Floats:
        """Begin of each sample."""
        return self.edges_ns[:-1] / SECOND_NS

    @cached_property
    def widths_s(self) -> Floats:
        """Length of each sample."""
        return np.diff(self.edges_ns) / SECOND_NS

    def __len__(self) -> int:
        return len(self.edges_ns) - 1

    def slice(self, begin_s: float | None = None, end_s: float | None = None) -> slice:
        """Returns the samples of a stretch of time, its bounds rounded to the nearest edges; None is the
        window's.

        Raises:
            ValueError: if no sample lies in it.
        """
        edges_s = self.edges_ns / SECOND_NS
        first = self.first if begin_s is None else int(np.abs(edges_s - begin_s).argmin())
        last = self.last if end_s is None else int(np.abs(edges_s - end_s).argmin())
        if last <= first:
            low = self.begin_s if begin_s is None else begin_s
            high = self.end_s if end_s is None else end_s
            raise ValueError(
                f"{low:g} s to {high:g} s holds no sample. The trial lasts {edges_s[-1]:g} s, a sample "
                f"{self.sample_s:g} s."
            )
        return slice(first, last)

    def cuts(self, times_ns: Ints) -> Ints:
        """Returns where the grid's edges cut ascending times: sample i has those from `cuts[i]` to `cuts[i +
        1]`.

        Times before the trial's begin and after its end are in no sample.
        """
        return times_ns.searchsorted(self.edges_ns).astype(np.int64, copy=False)


def differences(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns the difference of each value from the one before it, in one dimension: as np.diff, which takes
    several times as long for the checks of its input, and a trial's metrics need a hundred."""
    found: npt.NDArray[Any] = values[1:] - values[:-1]
    return found


def grid_of(measure: Mapping[str, Any], duration_s: float) -> Grid:
    """Returns the grid that a scenario's `measure` asks for.

    Raises:
        RecordError: if a time has no unit, or the window lies outside the trial.
    """
    sample_s = seconds(measure.get("sample") or DEFAULT_SAMPLE_S)
    window = measure.get("window") or (0.0, duration_s)
    begin_s, end_s = seconds(window[0]), min(seconds(window[1]), duration_s)
    if not 0 <= begin_s < end_s or sample_s <= 0:
        raise RecordError(
            f"measure.window [{begin_s:g} s, {end_s:g} s] does not fit the trial of {duration_s:g} s "
            f"with samples of {sample_s:g} s. Choose a window inside it."
        )
    duration = round(duration_s * SECOND_NS)
    step = max(1, round(sample_s * SECOND_NS))
    begin, end = round(begin_s * SECOND_NS), round(end_s * SECOND_NS)
    # Samples are aligned with the window's begin, so that a whole number of them fills a round window.
    edges = np.arange(begin % step, duration + 1, step, dtype=np.int64)
    edges = np.unique(np.concatenate([edges, np.array([0, begin, end, duration], dtype=np.int64)]))
    first, last = np.searchsorted(edges, [begin, end])
    return Grid(edges, int(first), int(last), sample_s)


def seconds(value: Any) -> float:
    """Returns a time as a scenario may hold it: seconds as a number, text with a unit, or a quantity object.

    Raises:
        RecordError: if it is none of these.
    """
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([A-Za-zµ]*)\s*", value)
        if match and UNITS.get(match.group(2) or "s", (0, None))[1] == TIME:
            return float(match.group(1)) * UNITS[match.group(2) or "s"][0]
    for name in ("s", "seconds"):
        found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if isinstance(found, int | float):
            return float(found)
    raise RecordError(f"{value!r} is not a time; write it with a unit, such as `0.5 s`.")
