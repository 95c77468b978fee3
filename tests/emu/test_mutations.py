"""Faults put into the emulator itself: each must turn the test that is there for it red, in a real trial."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from driving import AT_ONCE, a_thief_on_every_processor
from scenarios import FTP, scenario
from streamgauge.emu import EmuOptions, run_trial
from streamgauge.emu.concurrency import ConcurrentTrials
from streamgauge.emu.lock import machine_lock
from streamgauge.scenario import from_text, lower
from verdict_trials import FAULTS, failed

# Bursts enough to find a small ring full, and packets enough to meet a fault in one of two hundred.
CROSS = """
  cross:
    role: rival
    traffic: cbr
    parameters: {rate: 1500 packets/s, size: 100 B, burst: 30 packets}"""


def _verdict(fault: str, folder: Path, concurrent: ConcurrentTrials) -> dict[str, Any]:
    # A limit shows only where the queue gets full.
    rate = "1 Mbit/s" if fault == "late_ignore_limit" else "10 Mbit/s"
    text = scenario(FTP + CROSS, until="3 s", rate=rate, queue="40 packets")
    (made,) = from_text(text)
    options = EmuOptions(sabotage=(fault,), concurrent=concurrent)
    validity: dict[str, Any] = run_trial(made, lower(made, "emu", 1), 1, folder, options)["validity"]
    return validity


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Of a trial with each fault. They run side by side: it harms nothing if a busy machine adds faults."""
    folder = tmp_path_factory.mktemp("faults")
    with machine_lock(print) as lock, ThreadPoolExecutor(AT_ONCE) as pool:
        concurrent = ConcurrentTrials(lock, AT_ONCE)
        trials = {fault: pool.submit(_verdict, fault, folder / fault, concurrent) for fault in FAULTS}
        return {fault: trial.result() for fault, trial in trials.items()}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_emulator_is_found(fault: str, verdicts: dict[str, dict[str, Any]]) -> None:
    validity = verdicts[fault]
    print(*validity["why"], sep="\n")
    assert not validity["valid"]
    assert set(FAULTS[fault]) & set(failed(validity)), validity["why"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may take the processor from root")
def test_a_stolen_processor_is_found(tmp_path: Path) -> None:
    with a_thief_on_every_processor():
        (made,) = from_text(scenario(FTP, until="3 s"))
        validity = run_trial(made, lower(made, "emu", 1), 1, tmp_path / "trial", EmuOptions())["validity"]
    print(*validity["why"], sep="\n")
    assert not validity["valid"]
    assert "lateness_p99_s" in failed(validity)
