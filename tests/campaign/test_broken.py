"""A trial that breaks on the way: its logs stay, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamgauge import emu
from streamgauge.campaign import EmuSettings, Outcome, jobs_for, run_jobs
from streamgauge.campaign.layout import place, sweep
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.scenario import Scenario, from_text

TEXT = """
id: test/broken
title: Breaks
path: {down: {rate: 1 Mbit/s, queue: droptail 10 packets}, up: {}}
flows: {web: {role: subject, system: {server: 'true', player: 'true'}}}
until: {time: 1 s}
modes: [emu]
"""


@pytest.fixture
def scenario() -> Scenario:
    (found,) = from_text(TEXT)
    return found


def broken(scenario: Scenario, out: Path, monkeypatch: pytest.MonkeyPatch, logs: dict[str, str]) -> Outcome:
    def run_trial(_scenario: Any, _plan: Any, _seed: int, directory: Path, _options: Any) -> None:
        (directory / "logs").mkdir()
        for name, text in logs.items():
            (directory / "logs" / name).write_text(text)
        (directory / "packets.parquet").write_text("half")
        raise TrialBrokenError("the server of flow web ended with status 5 before the trial began.")

    monkeypatch.setattr(emu, "run_trial", run_trial)
    jobs = list(jobs_for(scenario, "emu", out, first_seed=1, repeat=1))
    (outcome,), interrupted = run_jobs(jobs, keep="packets", emu=EmuSettings())
    assert not interrupted and not outcome.valid
    return outcome


def test_the_logs_stay_and_the_error_says_where(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = {"web-server-stderr.log": "no such clip\n", "link.log": ""}
    outcome = broken(scenario, tmp_path, monkeypatch, logs)
    kept = tmp_path / "scenario=test%2Fbroken/mode=emu/seed=1.broken"
    assert outcome.why == (
        f"the server of flow web ended with status 5 before the trial began. Logs: {kept}",
    )
    assert {file.name: file.read_text() for file in kept.iterdir()} == {
        "web-server-stderr.log": "no such clip\n"
    }
    assert list(kept.parent.iterdir()) == [kept] and not list(sweep(tmp_path))
    # The next one that breaks has its own in their place.
    broken(scenario, tmp_path, monkeypatch, {"web-server-stdout.log": "again\n"})
    assert [file.name for file in kept.iterdir()] == ["web-server-stdout.log"]
    # A whole trial takes the place.
    with place(tmp_path / "scenario=test%2Fbroken/mode=emu/seed=1") as partial:
        (partial / "trial.json").write_text("{}")
    assert [path.name for path in kept.parent.iterdir()] == ["seed=1"]


def test_where_there_is_no_log_nothing_stays(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = broken(scenario, tmp_path / "runs", monkeypatch, {"link.log": ""})
    assert outcome.why[0].endswith("before the trial began.")
    assert not list(tmp_path.rglob("*seed=*"))
