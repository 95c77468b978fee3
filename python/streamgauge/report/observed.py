"""Texts on records from captures: they have findings and a coverage, and no plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.claims.dimension import DATA, RATE, say
from streamgauge.record.observed import CAPTURE as CAPTURED
from streamgauge.report.model import Entry, Group

__all__ = ["CAPTURED", "coverage_sentences", "measured_words", "observed_of"]


def observed_of(group: Group) -> Mapping[str, Any] | None:
    """Returns the observations in the first record of a group; None for trials."""
    found = next((trial.header.get("observed") for trial in group.trials), None)
    return found if group.mode == CAPTURED and isinstance(found, Mapping) else None


def measured_words(entry: Entry) -> str | None:
    """Rate and queue as they were measured, in place of a plan's; None of trials."""
    if any(group.mode != CAPTURED for group in entry.groups):
        return None
    observed = next(filter(None, map(observed_of, entry.groups)), None)
    if observed is None:
        return None
    coverage = observed.get("coverage") or {}
    rate, queue = coverage.get("rate_bps"), coverage.get("queue_bytes")
    said = "bottleneck not known" if rate is None else f"bottleneck measured: {say(rate, RATE)}"
    if rate is not None:
        least, most = coverage.get("rate_span_bps") or (rate, rate)
        if most > 1.2 * least:
            said = f"bottleneck measured: {say(least, RATE)} to {say(most, RATE)}"
        said += f", queue {'not known' if queue is None else say(8 * queue, DATA)}"
    return f"{said}; no plan"


def coverage_sentences(group: Group) -> list[str]:
    """Returns sentences on gaps of the captures, and on unknown facts."""
    observed = observed_of(group)
    if observed is None:
        return []
    coverage = observed.get("coverage") or {}
    said = []
    for key, what in (
        ("missed", "arrived, and one of the captures missed {them}: no row, and no loss"),
        ("lost_or_not_captured", "lost or not captured: counted as lost"),
    ):
        counts = {name: number for name, number in (coverage.get(key) or {}).items() if number}
        for name, number in counts.items():
            packets = f"{number} packet{'' if number == 1 else 's'}"
            said.append(f"{name}: {packets} {what.format(them='it' if number == 1 else 'them')}.")
    if not said:
        said.append("Both captures have every packet that arrived.")
    if coverage.get("delay") == "above the least delay":
        said.append("Packets of one way alone are in both captures: delays count from the least one.")
    if coverage.get("flows_without_name"):
        said.append(f"{coverage['flows_without_name']} further flows are counted as other.")
    for file, damage in zip(coverage.get("captures") or (), coverage.get("damage") or (), strict=False):
        if damage:
            said.append(f"{file}: {damage}.")
    not_known = coverage.get("not_known") or ()
    if not_known:
        said.append(f"Not known: {', '.join(not_known)}.")
    return said
