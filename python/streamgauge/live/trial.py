"""``run --live``: one trial of one scenario, shown and steered, and kept as a scenario."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge import _native
from streamgauge.campaign.layout import trial_directory
from streamgauge.campaign.plan import Job, resume_key
from streamgauge.campaign.trial import EmuSettings, Outcome, run_job
from streamgauge.errors import ScenarioError
from streamgauge.live.beginning import session_for
from streamgauge.live.saving import as_yaml, steerable, steered
from streamgauge.live.session import LiveSession
from streamgauge.live.showing import LiveAsked, check, shown
from streamgauge.scenario import Scenario, lower
from streamgauge.systems.registry import Mode

__all__ = ["FOLDER", "LiveTrial", "run_live"]

FOLDER = "live"
"""Folder in that of records: a trial steered by hand is no repetition of another."""


@dataclass(kw_only=True)
class LiveTrial:
    """Interface that `run_job` requires of a steered trial."""

    session: LiveSession
    job: Job
    pace: float
    scenario: Scenario | None = None
    """As it was run, once it has been."""

    @property
    def live_fd(self) -> int:
        """Returns the trial's end of the socket."""
        return self.session.theirs.fileno()

    def simulate(self, plan: str, directory: Path, contents: Any) -> tuple[Any, dict[str, Any]]:
        """Summary and provenance of a trial of sim, at the pace that was asked for."""
        began = time.monotonic()
        handed_over = os.dup(self.live_fd)
        text, changed = _native.simulate_live(plan, str(directory), handed_over, self.pace, contents)
        summary = json.loads(text)
        by_hand = summary["ended_by"] == "stopped"
        self.ran(json.loads(changed), summary["duration_ns"], stopped=by_hand)
        return summary, {"wall_s": time.monotonic() - began, "pace": self.pace}

    def ran(self, changed: list[dict[str, Any]], duration_ns: int, *, stopped: bool = False) -> Scenario:
        """Applies the changes; returns the scenario for the record."""
        ends_ns = duration_ns if stopped else None
        self.scenario = steered(self.job.scenario, changed, duration_ns, ends_ns=ends_ns)
        return self.scenario

    def player_said(self, flow: str, name: str, value: float | None) -> None:
        """An event of a player of emu."""
        self.session.player_event(flow, name, value)


def run_live(
    scenario: Scenario,
    mode: Mode,
    asked: LiveAsked,
    out: Path,
    *,
    seed: int,
    emu: EmuSettings,
    settings: tuple[str, ...] = (),
    say: Callable[[str], None],
) -> tuple[Outcome, Path]:
    """Runs one trial and leaves its record, and beside it the scenario with the changes.

    Raises StreamGaugeError.
    """
    check(asked)
    if emu.way is not None and emu.way.startswith("virtual"):
        raise ScenarioError("--live shows the real clock; leave out --machine virtual")
    base = steerable(scenario)
    job = Job(
        scenario=base,
        mode=mode,
        seed=seed,
        directory=trial_directory(out / FOLDER, base.id, mode, seed),
        key=resume_key(base, mode, seed),
        settings=settings,
    )
    plan = lower(base, mode, seed)

    def text(changed: list[dict[str, Any]], until_ns: int) -> str:
        return as_yaml(steered(base, changed, until_ns + 1))

    session = session_for(plan, title=base.title, mode=mode, scenario=text, say=say)
    live = LiveTrial(session=session, job=job, pace=asked.pace)
    session.start()
    try:
        with shown(session, asked, say):
            outcome = run_job(job, keep="packets", emu=replace(emu, jobs=1), say=_quiet, live=live)
            session.ended.wait(timeout=2)
    finally:
        session.close()
    assert live.scenario is not None
    file = job.directory.parent / f"{job.directory.name}.yaml"
    file.write_text(as_yaml(live.scenario), encoding="utf-8")
    return outcome, file


def _quiet(_line: str) -> None:
    pass
