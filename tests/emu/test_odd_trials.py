"""The verdict's twins: trials that are odd and unharmed, for real, must not be called invalid."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from driving import AT_ONCE, MOST_TRIALS, tell_starved
from guests import guests_at_once
from streamgauge.emu import EmuOptions, run_trial
from streamgauge.emu.concurrency import ConcurrentTrials
from streamgauge.emu.lock import machine_lock
from streamgauge.scenario import from_text, lower
from verdict_trials import ODD, scenario, wanted_processor

Verdict = dict[str, Any]


def _verdict(kind: str, seed: int, folder: Path, options: EmuOptions) -> Verdict:
    (made,) = from_text(scenario(kind))
    plan = lower(made, "emu", seed)
    validity: Verdict = run_trial(made, plan, seed, folder / f"{kind}-{seed}", options)["validity"]
    return validity


@pytest.fixture(scope="module")
def verdicts(guests: bool, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Of a trial of each kind."""
    folder = tmp_path_factory.mktemp("odd")
    return _in_guests(folder) if guests else _on_this_machine(folder)


def _in_guests(folder: Path) -> dict[str, Verdict]:
    with ThreadPoolExecutor(guests_at_once()) as pool:
        options = EmuOptions(way="virtual")
        trials = {kind: pool.submit(_verdict, kind, 1, folder, options) for kind in ODD}
        return {kind: trial.result() for kind, trial in trials.items()}


def _on_this_machine(folder: Path) -> dict[str, Verdict]:
    """Of the last trial, where the machine was too busy for others before it."""
    found: dict[str, Verdict] = {}
    with machine_lock(print) as lock:
        left = list(ODD)
        for seed in range(1, MOST_TRIALS + 1):
            at_once = max(AT_ONCE + 1 - seed, 1)
            options = EmuOptions(concurrent=ConcurrentTrials(lock, at_once))
            with ThreadPoolExecutor(at_once) as pool:
                trials = {kind: pool.submit(_verdict, kind, seed, folder, options) for kind in left}
            found |= {kind: trial.result() for kind, trial in trials.items()}
            left = [kind for kind in left if wanted_processor(found[kind])]
            for kind in left:
                trial = {"scenario": f"odd trial {kind}", "seed": seed, "why": found[kind]["why"]}
                tell_starved(trial, EmuOptions().chosen_way)
            if not left:
                break
    return found


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_trial_is_valid(kind: str, guests: bool, verdicts: dict[str, Verdict]) -> None:
    validity = verdicts[kind]
    if not guests and wanted_processor(validity):
        pytest.skip(f"no processor for {MOST_TRIALS} trials: {validity['why']}")
    assert validity["valid"], validity["why"]


def test_they_are_as_odd_as_they_are_said_to_be(verdicts: dict[str, Verdict]) -> None:
    """Each shows what it is there for, so that its verdict says something."""
    first_s = verdicts["idle"]["measured"]["first_packet_s"]
    assert first_s["silent"] is None and first_s["late"] > 1.4
    # What the path did, of which a host notices at most as much.
    bounds = verdicts["fragments"]["bounds"]
    assert bounds["reassembly_failed.client"] > 0 and bounds["checksum_errors.client"] > 0
    assert {"player_bytes_off.leaves", "player_bytes_off.lags"} <= set(verdicts["readers"]["measured"])
    assert "player_bytes_off.bbr" in verdicts["holes"]["measured"]
    assert len(verdicts["crowd"]["measured"]["first_packet_s"]) == 7
