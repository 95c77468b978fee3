"""Completes a record that has no plan: it contains observations, and no intentions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamgauge import _native
from streamgauge.record import provenance as provenance_module
from streamgauge.record.balance import balance
from streamgauge.record.read import Record, stage_labels
from streamgauge.record.schema import (
    EVENTS,
    PACKETS,
    PROVENANCE,
    PROVENANCE_SCHEMA,
    TRIAL,
    TRIAL_SCHEMA,
)
from streamgauge.record.seal import FILES, file_digests
from streamgauge.record.write import write_json, write_sealed

__all__ = ["CAPTURE", "OBSERVED", "finish_observed"]

CAPTURE: Final = "capture"
"""The mode of records that come from captures."""
OBSERVED: Final = "observed"
"""The key of ``trial.json`` that such records have, and no plan."""


def finish_observed(
    directory: Path,
    *,
    scenario: Mapping[str, Any],
    legend: str,
    flows: Sequence[Mapping[str, Any]],
    duration_s: float,
    events: Sequence[Mapping[str, Any]],
    observed: Mapping[str, Any],
    provenance: Mapping[str, Any],
    measure: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Writes events, ``trial.json`` and ``provenance.json`` beside the packets that are there.

    Args:
        directory: the record's directory.
        scenario: known parts of it in a scenario's words: ``id``, ``title``, ``flows``, ``measure``.
        legend: the legend of the packets, as JSON.
        flows: those of ``trial.json``, by code: ``id``, ``name``, ``role``, ``system``, ``direction``.
        duration_s: from the first packet to the last.
        events: as `write_events` has them.
        observed: ``answer``, the findings as sentences; ``coverage``, the captured part of the traffic.
        provenance: additions to the facts found about this host.
        measure: writes the metrics, given the coming content of ``trial.json`` but for digests.

    Returns:
        The present content of ``trial.json``.

    Raises:
        RecordError: if a file of the record cannot be read.
        OSError: if a file cannot be written.
    """
    text = json.dumps([dict(event) for event in events], allow_nan=False)
    events_digest = _native.write_events(directory, text, legend)
    packets_digest = json.loads(_native.footer(directory / PACKETS))["digest"]
    stages = json.loads(legend)["stage"]
    packets = Record.packets_of(directory / PACKETS)
    trial: dict[str, Any] = {
        "schema": TRIAL_SCHEMA,
        "digest": _native.trial_digest(json.dumps(scenario), packets_digest, events_digest),
        "packets_digest": packets_digest,
        "events_digest": events_digest,
        "kept": [PACKETS, EVENTS],
        "mode": CAPTURE,
        "seed": 1,
        "set": [],
        "duration_s": duration_s,
        "validity": {"valid": True, "why": [], "bounds": {}, "measured": {}},
        "stages": [{"id": code, **stage} for code, stage in enumerate(stages)],
        "flows": [dict(flow) for flow in flows],
        "balance": balance(packets, stages, stage_labels(stages)),
        OBSERVED: dict(observed),
        "scenario": dict(scenario),
    }
    origin = {
        "schema": PROVENANCE_SCHEMA,
        **provenance_module.collect(),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance,
    }
    write_json(directory / PROVENANCE, origin)
    measure(trial)
    trial[FILES] = file_digests(directory)
    write_sealed(directory / TRIAL, trial)
    return trial
