"""The quantities of one contribution, taken from its metrics and its events."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from streamgauge.campaign.stored import load_metrics
from streamgauge.crosscheck.compared import Found
from streamgauge.crosscheck.contribution.cases import FLOW, ContributionCase
from streamgauge.crosscheck.contribution.quantities import EVENTS, METRICS
from streamgauge.crosscheck.taken import is_taken, keep
from streamgauge.errors import RecordError
from streamgauge.record import Record

__all__ = ["SCHEMA", "keep_contribution"]

SCHEMA: Final = "streamgauge.crosscheck-contribution-trial/1"
"""Raised when a quantity is computed otherwise: older files are then made again."""


class ContributionKeeper:
    """Takes a contribution's quantities; see `campaign.plan.Extra`."""

    @property
    def key(self) -> str:
        """Returns the inputs of the result besides the record."""
        return SCHEMA

    def take(self, directory: Path) -> None:
        """Computes and keeps them."""
        record = Record.open(directory)
        measure: dict[str, Any] = record.trial["scenario"].get("measure", {})
        metrics = load_metrics(directory, measure)
        if metrics is None:
            raise RecordError(f"{directory}: its metrics are not those of its measure.")
        flow = metrics.flow_json(FLOW)
        found: Found = {name: flow.get(metric) for name, metric in METRICS.items()}
        for name, event in EVENTS.items():
            found[name] = float(len(record.told[event, FLOW][0])) if (event, FLOW) in record.told else 0.0
        keep(directory, {"schema": SCHEMA, "key": self.key, "quantities": found})

    def has(self, directory: Path) -> bool:
        """Returns whether it was taken, and by the same rule."""
        return is_taken(directory, self.key)


def keep_contribution(case: ContributionCase) -> ContributionKeeper:
    """Returns the keeper of a trial's quantities for the case."""
    del case
    return ContributionKeeper()
