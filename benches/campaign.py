"""Cost of a simulated trial, step by step, and the trials of a campaign in a second.

    python benches/campaign.py [--trials N] [SCENARIO ...]
    python benches/campaign.py --scale 10000 [SCENARIO ...]

With --scale, one campaign of so many trials in all, with `--keep metrics`: its time and memory, and those of
the same command again, which has nothing to do. The scenarios are then those of hessler and darwin,
if none is named.

CPU time counts every thread and process, the kernel's part and the writing of files included. Wall time and
trials/s mean something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamgauge import _native
from streamgauge.campaign import jobs_for, run
from streamgauge.campaign.plan import Job
from streamgauge.campaign.stored import save_metrics
from streamgauge.metrics import compute
from streamgauge.record import Record, finish_trial
from streamgauge.scenario import Scenario, find, lower
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


@dataclass(frozen=True)
class Used:
    """Wall and CPU time of this process and its children until now."""

    wall_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> Used:
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = sum(one.ru_utime + one.ru_stime for one in (own, children))
        return cls(time.perf_counter(), cpu_s)


def campaign(scenarios: list[Scenario], trials: int, folder: Path) -> None:
    """Prints the cost of a whole campaign, on all cores."""
    modes: dict[str, Sequence[Mode]] = {scenario.id: ["sim"] for scenario in scenarios}
    run(scenarios, modes, folder / "warm", repeat=1)
    before = Used.now()
    done = len(run(scenarios, modes, folder / "timed", repeat=trials).outcomes)
    after = Used.now()
    cpu, wall = after.cpu_s - before.cpu_s, after.wall_s - before.wall_s
    print(
        f"{'campaign':10}{1e3 * cpu / done:8.2f} ms CPU a trial, checks and the start of processes included"
    )
    print(f"{'':10}{done / wall:8.1f} trials/s on {cores()} cores")


def cores() -> int:
    """Returns how many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scale(scenarios: list[Scenario], trials: int, folder: Path) -> None:
    """Prints time and memory of one campaign of `trials` trials, and of doing nothing in it."""
    modes: dict[str, Sequence[Mode]] = {scenario.id: ["sim"] for scenario in scenarios}
    repeat = -(-trials // len(scenarios))
    for what in ("anew", "again"):
        before = Used.now()
        result = run(scenarios, modes, folder, repeat=repeat, keep="metrics")
        after = Used.now()
        count, wall = len(result.outcomes), after.wall_s - before.wall_s
        print(
            f"{what:6} {count:,} trials, {len(result.checks)} checks: {wall:,.1f} s, {count / wall:,.0f}/s, "
            f"{1e3 * (after.cpu_s - before.cpu_s) / count:.2f} ms CPU a trial"
        )
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"memory {own:.0f} MiB the campaign, {worker:.0f} MiB at most each of {cores()} processes")
    files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    print(f"disk   {sum(files) / count / 1e3:.1f} kB and {len(files) / count:.1f} files a trial")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--trials", type=int, default=20, help="of each scenario")
    parser.add_argument("--scale", type=int, metavar="N", help="trials of one campaign in all")
    options = parser.parse_args()
    names = options.scenarios or (("hessler/*", "darwin/*") if options.scale else SCENARIOS)
    scenarios = [scenario for scenario in find(names) if "sim" in scenario.supported_modes()]
    with tempfile.TemporaryDirectory() as folder:
        if options.scale:
            scale(scenarios, options.scale, Path(folder))
            return
        steps(scenarios, options.trials, Path(folder))
        campaign(scenarios, options.trials, Path(folder))


if __name__ == "__main__":
    main()
