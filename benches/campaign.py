"""What a simulated trial costs, step by step, and how many a campaign does in a second.

    python benches/campaign.py [--trials N] [SCENARIO ...]

CPU time counts every thread, the kernel's part and the writing of files included. Wall time and trials/s mean
something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streamgauge import _native
from streamgauge.campaign import jobs_for, run
from streamgauge.campaign.plan import Job
from streamgauge.campaign.stored import save_metrics
from streamgauge.metrics import compute
from streamgauge.record import Record, finish_trial
from streamgauge.scenario import Scenario, load, lower
from streamgauge.systems.registry import Mode

SCENARIOS = ("hessler/ftp-no", "hessler/ftp-medium", "hessler/ftp-heavy")


class Clock:
    """CPU time by step, s."""

    def __init__(self) -> None:
        self.cpu_s: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.cpu_s[step] += time.process_time() - began


def trial(job: Job, directory: Path, clock: Clock) -> None:
    """One trial by the steps of a campaign's."""
    directory.mkdir()
    with clock("lower"):
        plan = lower(job.scenario, "sim", job.seed)
        as_run = job.scenario.in_mode("sim").normalised()
    with clock("simulate"):
        summary = json.loads(_native.simulate(json.dumps(plan), str(directory)))
    with clock("finish"):
        finish_trial(
            directory,
            scenario=as_run,
            plan=plan,
            mode="sim",
            seed=job.seed,
            validity={"valid": True, "why": [], "bounds": {}, "measured": {}},
            provenance={},
            resume_key=job.key,
            summary=summary,
        )
    with clock("metrics"):
        metrics = compute(Record.open(directory), job.scenario)
    with clock("store"):
        save_metrics(directory, metrics, as_run.get("measure", {}))


def steps(scenarios: list[Scenario], trials: int, folder: Path) -> None:
    """Prints CPU ms per trial of each step, alone on one thread."""
    clock = Clock()
    for number, scenario in enumerate(scenarios):
        jobs = jobs_for(scenario, "sim", folder, first_seed=1, repeat=trials + 1)
        trial(jobs[0], folder / f"warm-{number}", Clock())
        for job in jobs[1:]:
            trial(job, folder / f"{number}-{job.seed}", clock)
    count = trials * len(scenarios)
    for step, cpu_s in clock.cpu_s.items():
        print(f"{step:10}{1e3 * cpu_s / count:8.2f} ms CPU a trial")
    print(f"{'together':10}{1e3 * sum(clock.cpu_s.values()) / count:8.2f} ms CPU a trial")


def campaign(scenarios: list[Scenario], trials: int, folder: Path) -> None:
    """Prints what a whole campaign costs, on all cores."""
    modes: dict[str, Sequence[Mode]] = {scenario.id: ["sim"] for scenario in scenarios}
    run(scenarios, modes, folder / "warm", repeat=1)
    cpu, wall = time.process_time(), time.perf_counter()
    done = len(run(scenarios, modes, folder / "timed", repeat=trials).outcomes)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{'campaign':10}{1e3 * cpu / done:8.2f} ms CPU a trial, checks included")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{'':10}{done / wall:8.1f} trials/s on {cores} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS, metavar="SCENARIO")
    parser.add_argument("--trials", type=int, default=20, help="of each scenario")
    options = parser.parse_args()
    scenarios = [scenario for name in options.scenarios for scenario in load(name)]
    with tempfile.TemporaryDirectory() as folder:
        steps(scenarios, options.trials, Path(folder))
        campaign(scenarios, options.trials, Path(folder))


if __name__ == "__main__":
    main()
