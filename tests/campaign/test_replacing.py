"""Further seeds in the place of invalid emu trials. The simulator stands in for emu, some seeds invalid."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamgauge.emu
from streamgauge.campaign import CampaignResult, EmuSettings, run, sweep
from streamgauge.campaign import trial as trial_module
from streamgauge.campaign.layout import seed_of
from streamgauge.campaign.replacing import STEP
from streamgauge.record.write import JsonText
from streamgauge.report import build
from streamgauge.scenario import Scenario, lower

pytestmark = pytest.mark.skipif(not hasattr(streamgauge.emu, "run_trial"), reason="emu needs Linux")

Make = Callable[..., Scenario]


class Machine:
    """Where emu's trials of some seeds are late."""

    def __init__(self) -> None:
        self.late: set[int] = set()
        self.ran: list[int] = []

    def run_trial(self, scenario: Scenario, _plan: Any, seed: int, directory: Path, _options: Any) -> Any:
        self.ran.append(seed)
        plan = JsonText.of(lower(scenario, "sim", seed))
        summary, provenance, _ = trial_module._simulate(plan, directory)
        why = ["late departures"] if seed in self.late else []
        validity = {"valid": not why, "why": why, "bounds": {}, "measured": {}}
        return {"validity": validity, "summary": summary, "provenance": provenance}

    def emulate(self, scenario: Scenario, out: Path, replace: int, repeat: int = 3) -> CampaignResult:
        self.ran.clear()
        return run([scenario], {scenario.id: ["emu"]}, out, repeat=repeat, emu=EmuSettings(replace=replace))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(streamgauge.emu, "run_trial", found.run_trial)
    return found


def told(result: CampaignResult) -> list[tuple[int, bool, int | None, int | None]]:
    return [
        (one["seed"], one["valid"], one["replaces"], one["replaced_by"]) for one in result.to_json()["trials"]
    ]


def test_nothing_is_replaced_unasked(make: Make, tmp_path: Path, machine: Machine) -> None:
    machine.late = {2}
    result = machine.emulate(make(), tmp_path, replace=0)
    assert machine.ran == [1, 2, 3]
    assert told(result)[1] == (2, False, None, None)
    assert (result.checks[0].n, result.checks[0].invalid, result.checks[0].replaced) == (2, 1, 0)
    # The same command does only the invalid trial again, in its own place.
    machine.late = set()
    assert told(machine.emulate(make(), tmp_path, replace=0))[1] == (2, True, None, None)
    assert machine.ran == [2]


def test_an_invalid_trial_is_replaced_and_told(make: Make, tmp_path: Path, machine: Machine) -> None:
    machine.late = {2, 2 + STEP}
    result = machine.emulate(make(), tmp_path, replace=3)
    assert machine.ran == [1, 2, 3, 2 + STEP, 2 + 2 * STEP]
    assert told(result) == [
        (1, True, None, None),
        (2, False, None, 2 + 2 * STEP),
        (2 + STEP, False, 2, 2 + 2 * STEP),
        (2 + 2 * STEP, True, 2, None),
        (3, True, None, None),
    ]
    assert result.verdict == "pass" and not result.mostly_invalid()
    (check,) = result.checks
    assert (check.verdict, check.n, check.trials, check.invalid, check.replaced) == ("pass", 3, 3, 0, 2)
    assert "in place of 2 invalid trials by further seeds" in check.why
    # Never an invalid one averaged in.
    valid = [one.metrics.value("throughput", "ftp") for one in result.outcomes if one.valid and one.metrics]
    assert check.values["throughput.ftp"].interval.mean == pytest.approx(sum(valid) / 3)

    page = build(tmp_path, tmp_path / "report.html").read_text()
    assert page.count(f"(replaced by seed {2 + 2 * STEP})") == 2
    assert "in place of 2 invalid trials" in page


@pytest.mark.parametrize("replace", [0, 3])
def test_a_resumed_run_finds_what_stands_for_what(
    make: Make, tmp_path: Path, machine: Machine, replace: int
) -> None:
    machine.late = {2}
    first = machine.emulate(make(), tmp_path, replace=1)
    invalid = (tmp_path / "scenario=test%2Fshort/mode=emu/seed=2/trial.json").stat().st_mtime_ns
    again = machine.emulate(make(), tmp_path, replace=replace)
    assert machine.ran == [] and told(again) == told(first)
    assert all(outcome.reused for outcome in again.outcomes)
    assert (tmp_path / "scenario=test%2Fshort/mode=emu/seed=2/trial.json").stat().st_mtime_ns == invalid
    # More repetitions take seeds of their own, whatever stands for another.
    more = machine.emulate(make(), tmp_path, replace=replace, repeat=5)
    assert machine.ran == [4, 5] and told(more)[:4] == told(first)


def test_one_that_stays_invalid_counts_once_and_is_done_again(
    make: Make, tmp_path: Path, machine: Machine
) -> None:
    machine.late = {2, 2 + STEP, 2 + 2 * STEP}
    result = machine.emulate(make("repetitions.emu=3"), tmp_path, replace=2)
    assert [one[3] for one in told(result)] == [None] * 5
    (check,) = result.checks
    assert (check.n, check.trials, check.invalid, check.replaced) == (2, 3, 1, 0)
    assert result.mostly_invalid() == [], "one of three repetitions"
    machine.late = {2}
    machine.emulate(make(), tmp_path, replace=2)
    assert machine.ran == [2, 2 + STEP]


def test_a_seed_of_ones_own_stands_for_nothing_else(make: Make, tmp_path: Path, machine: Machine) -> None:
    machine.late = {1}
    scenario = make()
    own = run([scenario], {scenario.id: ["emu"]}, tmp_path, first_seed=1 + STEP, repeat=1)
    file = own.outcomes[0].job.directory / "trial.json"
    before = file.read_bytes()
    result = machine.emulate(scenario, tmp_path, replace=1, repeat=1)
    assert told(result) == [(1, False, None, 1 + 2 * STEP), (1 + 2 * STEP, True, 1, None)]
    assert {seed_of(place) for place in sweep(tmp_path)} == {1, 1 + STEP, 1 + 2 * STEP}
    assert file.read_bytes() == before, "what was run under that seed stays"


def test_less_than_none_is_refused() -> None:
    with pytest.raises(ValueError, match="replace is -1"):
        EmuSettings(replace=-1)
