"""`verify` finds trials that are gone, incomplete, or in the place of others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]

TRIALS = Path("runs") / "scenario=test%2Fcli" / "mode=sim"


@pytest.fixture
def runs(cli: Cli, scenario: Path) -> Path:
    """The folder of a campaign of two trials."""
    assert cli("run", str(scenario)).status == 0
    assert cli("verify", "runs").status == 0
    return TRIALS


def _swap(trials: Path) -> None:
    (trials / "seed=1").rename(trials / "other")
    (trials / "seed=2").rename(trials / "seed=1")
    (trials / "other").rename(trials / "seed=2")


def _twice(trials: Path) -> None:
    shutil.rmtree(trials / "seed=2")
    shutil.copytree(trials / "seed=1", trials / "seed=2")


def _as_more(trials: Path) -> None:
    shutil.copytree(trials / "seed=1", trials / "seed=3")


def _as_emulated(trials: Path) -> None:
    shutil.copytree(trials, trials.parent / "mode=emu")


def _as_another_scenario(trials: Path) -> None:
    shutil.copytree(trials.parent, trials.parent.with_name("scenario=test%2Fother"))


def _without_trial_json(trials: Path) -> None:
    (trials / "seed=2" / "trial.json").unlink()


def _without_a_trial(trials: Path) -> None:
    shutil.rmtree(trials / "seed=2")


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "two trials swapped": (_swap, "the trial of scenario=test%2Fcli/mode=sim/seed=2"),
    "a trial twice": (_twice, "the trial of scenario=test%2Fcli/mode=sim/seed=1"),
    "a trial under a further seed": (_as_more, "the trial of scenario=test%2Fcli/mode=sim/seed=1"),
    "a simulated trial as an emulated one": (
        _as_emulated,
        "the trial of scenario=test%2Fcli/mode=sim/seed=1",
    ),
    "a trial of another scenario": (_as_another_scenario, "the trial of scenario=test%2Fcli/mode=sim/seed=1"),
    "no trial.json": (_without_trial_json, "seed=2/trial.json: missing"),
    "a trial removed": (_without_a_trial, "seed=2: missing, but listed in runs/index.sqlite"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_folder_that_is_not_as_it_was_written(what: str, cli: Cli, runs: Path) -> None:
    change, expected = CHANGES[what]
    change(runs)
    verified = cli("verify", "runs")
    assert verified.status == 3, verified.out
    assert expected in verified.err


def test_a_trial_that_its_owner_removed(cli: Cli, scenario: Path, runs: Path) -> None:
    """Without the index nothing says that it was there; the next run forgets it."""
    _without_a_trial(runs)
    assert cli("run", str(scenario), "--seed", "1").status == 0
    assert cli("verify", "runs").status == 0
    shutil.rmtree(runs / "seed=1")
    shutil.copytree("runs", "copied")
    (Path("runs") / "index.sqlite").unlink()
    assert cli("run", str(scenario), "--seed", "2").status == 0
    (Path("runs") / "index.sqlite").unlink(missing_ok=True)
    assert cli("verify", "runs").status == 0
