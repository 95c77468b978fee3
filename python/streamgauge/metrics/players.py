"""How players that choose among bit rates share a bottleneck."""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import NUMBER
from streamgauge.metrics.capacity import carried_bits
from streamgauge.metrics.fairness import jain_series
from streamgauge.metrics.frame import StageInfo, Trial
from streamgauge.metrics.levels import levels
from streamgauge.metrics.queueing import crossing
from streamgauge.metrics.result import Series
from streamgauge.metrics.shares import departed_bits


def sharing(trial: Trial, stage: StageInfo) -> dict[str, Series]:
    """Returns how even the levels of players with media across a bottleneck are, and the capacity that they
    leave unused.

    Jiang, Sekar and Zhang (FESTIVE, CoNEXT 2012) define both at a time; here they are of each sample, with
    each player's mean level in it, over the players that show a level then. `unfairness` is sqrt(1 - J) of
    Jain's index J, of two players or more. `inefficiency` is |sum of levels - C| / C, where C is the capacity
    of the bottleneck less the bits that leave it for flows that are no such players; samples in which these
    leave nothing have none. Over a stretch unfairness is the mean over time, inefficiency bits over bits.
    """
    shown = [trial.once(levels, row).series.get("level") for row in range(len(trial.flows))]
    players = [
        row
        for row, level in enumerate(shown)
        if level is not None and trial.flows[row].direction == stage.direction
    ]
    if not players:
        return {}
    grid = trial.grid
    mine = [shown[row] for row in players]
    bits = np.array([level.numerator for level in mine if level is not None])
    there_s = np.array([level.denominator for level in mine if level is not None])
    found = {}
    if len(players) > 1:
        means = bits / np.where(there_s > 0, there_s, 1.0)
        index = jain_series(list(means), list((there_s > 0).astype(np.float64)))
        weight = np.where(np.isfinite(index), grid.widths_s, 0.0)
        # An even share is 1 but for rounding.
        uneven = np.sqrt(np.clip(1 - np.nan_to_num(index, nan=1.0), 0, None))
        found["unfairness"] = Series(uneven * weight, weight)
    capacity = carried_bits(stage.settings.get("rate") or {}, grid)
    if capacity is not None:
        others = np.delete(departed_bits(stage, trial.once(crossing, stage)), players, axis=0).sum(axis=0)
        left = np.where((there_s > 0).any(axis=0), np.clip(capacity - others, 0, None), 0.0)
        found["inefficiency"] = Series(np.where(left > 0, np.abs(bits.sum(axis=0) - left), 0.0), left)
    return found


METRICS = (
    Metric(
        "unfairness",
        NUMBER,
        "stage",
        "Unfairness among the levels of players",
        formula="mean over time of √(1 − J), J Jain's index of the R of two players or more",
        stage=sharing,
        better="less",
        reads=(
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        section="players",
    ),
    Metric(
        "inefficiency",
        NUMBER,
        "stage",
        "Capacity that the levels of players miss",
        formula="Σ |Σ R − C| / Σ C over samples",
        stage=sharing,
        better="less",
        reads=(
            "level_changed",
            "level_shown",
            "segment_shown",
            "media_end",
        ),
        section="players",
    ),
)
