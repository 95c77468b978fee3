"""The quantities of one session, from packets on the path and its player's reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from streamgauge.campaign.stored import load_metrics
from streamgauge.crosscheck.abr.cases import FLOW, SUBJECTS, AbrCase
from streamgauge.crosscheck.abr.page_times import page_times
from streamgauge.crosscheck.abr.quantities import of_requests, requests
from streamgauge.crosscheck.compared import Found
from streamgauge.crosscheck.taken import Taken, is_taken, keep
from streamgauge.errors import RecordError
from streamgauge.record import Record

__all__ = ["SCHEMA", "keep_session"]

SCHEMA: Final = "streamgauge.crosscheck-session/3"
"""Goes up when a quantity is computed otherwise: older files are then made again."""
SHOWN: Final = "shown_bps"
_SAID: Final = {
    SHOWN: "shown_level_bps",
    "stall_time_s": "stall_time_s",
    "startup_s": "startup_delay_s",
    "buffer_s": "buffer_mean_s",
}
"""Quantities that are metrics of every trial (docs/metrics.md)."""


class SessionKeeper:
    """Takes a session's quantities; see `campaign.plan.Extra`."""

    def __init__(self, case: AbrCase) -> None:
        self.case = case

    @property
    def key(self) -> str:
        """The inputs of the result besides the record."""
        return f"{SCHEMA} {' '.join(map(str, self.case.levels_bps))}"

    def take(self, directory: Path) -> None:
        """Computes and keeps them, and ``"asked": [[time in s, level, segment], ...]``."""
        record = Record.open(directory)
        events = record.events
        messages = events.filter((events["flow"] == FLOW) & (events["name"] == "message")).sort("time")
        asked = requests(zip(messages["time"].to_list(), messages["reason"].to_list(), strict=True))
        data: Taken = {
            "schema": SCHEMA,
            "key": self.key,
            "quantities": of_requests(asked, self.case.levels_bps) | self._said(directory, record),
            "asked": [[round(one.time_ns / 1e9, 3), one.level, one.segment] for one in asked],
        }
        rtt_s = record.trial["validity"]["bounds"].get("preflight_rtt_s")
        if rtt_s is not None:
            data["page"] = [[name, round(ms, 1)] for name, ms in page_times(record, rtt_s)]
        keep(directory, data)

    def _said(self, directory: Path, record: Record) -> Found:
        measure: dict[str, Any] = record.trial["scenario"].get("measure", {})
        metrics = load_metrics(directory, measure)
        if metrics is None:
            raise RecordError(f"{directory}: its metrics are not those of its measure.")
        told = metrics.flow_json(FLOW)
        shows = SUBJECTS[self.case.subject].tells_shown
        return {name: told.get(metric) for name, metric in _SAID.items() if shows or name != SHOWN}

    def has(self, directory: Path) -> bool:
        """Whether it was taken, and by the same rule."""
        return is_taken(directory, self.key)


def keep_session(case: AbrCase) -> SessionKeeper:
    """A trial's results besides its metrics."""
    return SessionKeeper(case)
