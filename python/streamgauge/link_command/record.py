"""The record of a link: that of a trial with the command as its one flow."""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.link_command.options import LinkRequest
from streamgauge.link_command.running import Ended
from streamgauge.link_command.testbed import FLOW, Testbed
from streamgauge.scenario import Scenario, lower
from streamgauge.scenario.path import Path, Trace
from streamgauge.scenario.problems import problems_of
from streamgauge.units import Time

__all__ = ["LONGEST_S", "SHORTEST_NS", "finish", "longest_s", "plan_of", "scenario_of"]

LONGEST_S = 10 * 24 * 3600
"""Longest link: the emulator needs an end, and a scenario has 10,000,000 samples at most."""
MOST_STEPS = 36_000
"""Steps of a trace's rate, which the plan repeats until its end."""
SHORTEST_NS = 10_000_000
"""Shortest link: metrics have samples of 1 ms and more."""


def scenario_of(request: LinkRequest, far: str, duration_s: float) -> Scenario:
    """Returns the link as a scenario: its path, and one flow with the two commands."""
    server = request.server or ("nothing" if far == "empty" else "the caller's own namespace")
    duration_ns = max(SHORTEST_NS, round(duration_s * 1e9))
    # Ten samples at least, two a second in the long run.
    sample_ns = min(500_000_000, duration_ns // 10)
    said = {
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
    try:
        return Scenario.model_validate(said)
    except ValidationError as error:
        raise _refused(error) from None


def _refused(error: ValidationError) -> ScenarioError:
    """Returns errors that only a whole scenario reveals, such as a limit in BDP of a path without delay."""
    problem = problems_of(error)[0]
    key = [str(part) for part in problem.path]
    option = f"--{key[1]}" if key[:1] == ["path"] and len(key) > 1 else None
    return ScenarioError(
        problem.why, file=option, key=".".join(key[2:] if option else key) or None, hint=problem.hint
    )


def longest_s(path: Path) -> float:
    """Returns how long a link may last, s: `LONGEST_S`, or as long as `MOST_STEPS` of a trace of rates
    take."""
    longest = float(LONGEST_S)
    for direction in (path.down, path.up):
        for _, link in direction.bottlenecks():
            if isinstance(link.rate, Trace) and not link.rate.trace.is_opportunities:
                trace = link.rate.trace
                times = max(1, MOST_STEPS // len(trace.rate_plan()["steps"]))
                longest = min(longest, times * trace.duration_ns() / 1e9)
    return longest


def plan_of(request: LinkRequest, far: str, duration_s: float | None = None) -> dict[str, Any]:
    """Returns the plan of a link of this duration; by default the longest possible, which the emulator runs.

    It has no TCP settings: those are the machine's, as no route of a link sets any."""
    lasting = longest_s(request.path) if duration_s is None else duration_s
    plan = lower(scenario_of(request, far, lasting), "emu", request.seed)
    for flow in plan["flows"]:
        del flow["tcp"]
    return plan


def finish(
    directory: File,
    request: LinkRequest,
    testbed: Testbed,
    measured: Mapping[str, Any],
    ended: Ended,
    figures: Mapping[str, Any],
    validity: Mapping[str, Any],
    provenance: Mapping[str, Any],
) -> None:
    """Makes `directory`, which has the packets, a whole record with its metrics."""
    from streamgauge.campaign.stored import save_metrics
    from streamgauge.metrics import compute
    from streamgauge.record import Record, finish_trial, write_events

    link = measured["link"]
    scenario = scenario_of(request, testbed.far, link["duration_s"])
    plan = plan_of(request, testbed.far, link["duration_s"])
    changes = directory / "link-events.json"
    events = json.loads(changes.read_text(encoding="utf-8")) if changes.is_file() else []
    at = min(round(ended.took_s * 1e9), round(link["duration_s"] * 1e9))
    why = f"signal {ended.status - 128}" if ended.status > 128 else "exit"
    events.append(
        {"t_ns": at, "flow": FLOW, "name": "command_ended", "value": ended.status, "unit": "1", "reason": why}
    )
    write_events(directory, events, plan=plan)
    changes.unlink(missing_ok=True)

    def measure(trial: dict[str, Any]) -> None:
        metrics = compute(Record(directory, trial), scenario)
        save_metrics(directory, metrics, scenario.normalised().get("measure", {}))

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
        measure=measure,
    )
