"""Distance of the model from measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.two_phases.model import predict
from streamgauge.two_phases.observed import QUANTITIES, ObservedStream, predicted
from streamgauge.two_phases.parameters import ModelParameters

__all__ = ["ModelError", "errors_of", "thinned_alike"]


@dataclass(frozen=True)
class ModelError:
    """Error of one quantity, over streams."""

    quantity: str
    relative: bool
    """Error as a share of the measurement; for a loss, which may be zero, the difference itself."""
    median: float
    worst: float
    worst_in: str
    """The scenario."""
    streams: int


def errors_of(seen: Sequence[ObservedStream], parameters: ModelParameters) -> list[ModelError]:
    """Returns a row for each of `QUANTITIES` that was measured."""
    made = [predict(one.inputs, parameters) for one in seen]
    found = []
    for quantity in QUANTITIES:
        relative = not quantity.endswith("loss")
        rows: list[tuple[float, str]] = []
        for one, model in zip(seen, made, strict=True):
            measured = one.values.get(quantity)
            if measured is None or (relative and measured == 0):
                continue
            off = abs(predicted(model, quantity) - measured)
            rows.append((off / measured if relative else off, one.scenario))
        if rows:
            worst, worst_in = max(rows)
            median = float(np.median([off for off, _ in rows]))
            found.append(ModelError(quantity, relative, median, worst, worst_in, len(rows)))
    return found


def thinned_alike(seen: Sequence[ObservedStream], parameters: ModelParameters) -> int:
    """Returns the number of streams for which the model predicts correctly whether most trials took less
    later."""
    return sum(predict(one.inputs, parameters).is_thinned == (one.thinned >= 0.5) for one in seen)
