"""The quantities of one session, taken from its metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from streamgauge.campaign.stored import load_metrics
from streamgauge.crosscheck.compared import Found
from streamgauge.crosscheck.systems.cases import FLOW, RIVAL, SystemsCase
from streamgauge.crosscheck.systems.quantities import METRICS, OF_LADDERS, OF_RIVALS
from streamgauge.crosscheck.taken import is_taken, keep
from streamgauge.errors import RecordError
from streamgauge.record import Record

__all__ = ["SCHEMA", "keep_system"]

SCHEMA: Final = "streamgauge.crosscheck-system/1"
"""Raised when a quantity is computed otherwise: older files are then made again."""
STEP_S: Final = 0.5
"""Step of the received rate over time that is kept for figures."""


class SystemKeeper:
    """Takes a session's quantities; see `campaign.plan.Extra`."""

    def __init__(self, case: SystemsCase) -> None:
        self.case = case

    @property
    def key(self) -> str:
        """Returns the inputs of the result besides the record."""
        return f"{SCHEMA} {self.case.chooses}"

    def take(self, directory: Path) -> None:
        """Computes and keeps them, and ``"received": [bit/s in each half second, ...]``."""
        record = Record.open(directory)
        measure: dict[str, Any] = record.trial["scenario"].get("measure", {})
        metrics = load_metrics(directory, measure)
        if metrics is None:
            raise RecordError(f"{directory}: its metrics are not those of its measure.")
        found: Found = {}
        flows = self.case.scenario.flows
        for name, metric in METRICS.items():
            if (name in OF_RIVALS and RIVAL not in flows) or (name in OF_LADDERS and not self.case.chooses):
                continue
            told = metrics.flow_json(RIVAL if name in OF_RIVALS else FLOW)
            found[name] = told.get(metric)
        keep(directory, {"schema": SCHEMA, "key": self.key, "quantities": found})

    def has(self, directory: Path) -> bool:
        """Returns whether it was taken, and by the same rule."""
        return is_taken(directory, self.key)


def keep_system(case: SystemsCase) -> SystemKeeper:
    """Returns the keeper of a trial's quantities for the case."""
    return SystemKeeper(case)
