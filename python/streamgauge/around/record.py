"""The record of a link: that of a trial whose one flow is the command."""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.around.bed import FLOW, Bed
from streamgauge.around.options import Request
from streamgauge.around.running import Ended
from streamgauge.scenario import Scenario, lower
from streamgauge.units import Time

__all__ = ["LONGEST_S", "SHORTEST_NS", "finish", "plan_of", "scenario_of"]

LONGEST_S = 30 * 24 * 3600
"""A link lasts at most so long; the emulator wants to know an end."""
SHORTEST_NS = 10_000_000
"""And at least so long: metrics have samples of 1 ms and more."""


def scenario_of(request: Request, far: str, duration_s: float) -> Scenario:
    """The link as a scenario: its path, and one flow with the two commands."""
    server = request.server or ("nothing" if far == "empty" else "the caller's own namespace")
    duration_ns = max(SHORTEST_NS, round(duration_s * 1e9))
    # Ten samples at least, two a second in the long run.
    sample_ns = min(500_000_000, duration_ns // 10)
    return Scenario.model_validate(
        {
            "id": request.id,
            "title": f"{request.title} through a link",
            "path": request.path,
            "flows": {
                FLOW: {
                    "role": "subject",
                    "system": {"server": server, "player": shlex.join(request.command), "name": "command"},
                    "start": "0 s",
                }
            },
            "until": {"time": str(Time.of(duration_ns))},
            "measure": {"sample": str(Time.of(sample_ns))},
            "start_phase": "0 s",
            "modes": ["emu"],
            "repetitions": {"emu": 1},
        }
    )


def plan_of(request: Request, far: str, duration_s: float = LONGEST_S) -> dict[str, Any]:
    """The plan that the emulator runs."""
    return lower(scenario_of(request, far, duration_s), "emu", request.seed)


def finish(
    directory: Path,
    request: Request,
    bed: Bed,
    measured: Mapping[str, Any],
    ended: Ended,
    figures: Mapping[str, Any],
    validity: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> None:
    """Writes what makes `directory`, which has the packets, a whole record with its metrics."""
    from streamgauge.campaign.stored import save_metrics
    from streamgauge.metrics import compute
    from streamgauge.record import Record, finish_trial, write_events

    link = measured["link"]
    scenario = scenario_of(request, bed.far, link["duration_s"])
    plan = lower(scenario, "emu", request.seed)
    changes = directory / "link-events.json"
    events = json.loads(changes.read_text(encoding="utf-8")) if changes.is_file() else []
    at = min(round(ended.took_s * 1e9), round(link["duration_s"] * 1e9))
    why = f"signal {ended.status - 128}" if ended.status > 128 else "exit"
    events.append(
        {"t_ns": at, "flow": FLOW, "name": "command_ended", "value": ended.status, "unit": "1", "reason": why}
    )
    write_events(directory, events, plan=plan)
    changes.unlink(missing_ok=True)
    finish_trial(
        directory,
        scenario=scenario.normalised(),
        plan=plan,
        mode="emu",
        seed=request.seed,
        validity=validity,
        provenance=provenance,
        resume_key=uuid.uuid4().hex,  # a link is not run again by itself
        summary={
            "duration_s": link["duration_s"],
            "rows": link["rows"],
            "balance": link["balance"],
            "link": figures,
            "command": {"line": list(request.command), "status": ended.status, "took_s": ended.took_s},
        },
        ours={FLOW: False},
    )
    metrics = compute(Record.open(directory), scenario)
    save_metrics(directory, metrics, scenario.normalised().get("measure", {}))
