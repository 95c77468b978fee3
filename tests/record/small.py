"""A small plan, and its record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgauge import _native
from streamgauge.record import finish_trial

SECOND = 1_000_000_000

SCENARIO: dict[str, Any] = {
    "id": "test/two",
    "flows": {"video": {"role": "subject", "traffic": "cbr"}, "tcp": {"role": "rival", "traffic": "bulk"}},
    "path": {"down": {"rate": "1 Mbit/s"}},
}

TCP = {"congestion_control": "reno", "receive_window": 65536, "send_buffer": 262144, "mss": 1448}

PLAN: dict[str, Any] = {
    "scenario": "test/two",
    "seed": 1,
    "duration": 3 * SECOND,
    "path": {
        "down": [
            {
                "name": "bottleneck",
                "kind": {
                    "bottleneck": {
                        "rate": {"constant": 1_000_000},
                        "queue": {"droptail": {"bytes": 10_000}},
                    }
                },
            },
            {"name": "delay", "kind": {"delay": {"delay": 10_000_000}}},
        ],
        "up": [{"name": "delay", "kind": {"delay": {"delay": 10_000_000}}}],
    },
    "flows": [
        {
            "name": "video",
            "role": "subject",
            "start": 0,
            "app": {"cbr": {"packets_per_s": 50.0, "payload_bytes": 1000, "burst": 1}},
        },
        {"name": "tcp", "role": "rival", "start": SECOND, "app": {"bulk": {"tcp": TCP}}},
    ],
}


def make(
    directory: Path,
    plan: dict[str, Any] = PLAN,
    *,
    measure: Callable[[Path], Any] = lambda folder: None,
    **provenance: Any,
) -> Path:
    """A finished record of `plan`, with what `measure` leaves in its folder."""
    directory.mkdir(parents=True)
    summary = json.loads(_native.simulate(json.dumps(plan), directory))
    finish_trial(
        directory,
        scenario=SCENARIO,
        plan=plan,
        mode="sim",
        seed=plan["seed"],
        validity={
            "valid": True,
            "why": [],
            "bounds": {"silent_flows": 0},
            "measured": {"silent_flows": 0},
        },
        provenance=provenance,
        resume_key="key",
        summary=summary,
        measure=lambda trial: measure(directory),
    )
    return directory
