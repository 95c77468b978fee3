"""Dask on workers of this machine beside processes of it: trials/s, and bytes through the scheduler.

    python benches/cluster.py [--trials N] [--workers N] [--rounds N] [SCENARIO]

Both have as many processes of one thread, started before the clock, and keep metrics alone; they run in turn,
in as many rounds. Rates and their ratio mean something on an idle machine alone, CPU time on any: of the
campaign, the scheduler and all workers together, the kernel's part included.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.campaign import EmuSettings, jobs_for
from streamgauge.campaign.cluster import Cluster, connected
from streamgauge.campaign.cluster.on_worker import Batch, run_batch, version
from streamgauge.campaign.plan import Job
from streamgauge.campaign.pool import Pool
from streamgauge.campaign.trial import Outcome
from streamgauge.campaign.work import tasks_of
from streamgauge.campaign.workers import Watcher, run_all
from streamgauge.scenario import Scenario, load

ONE = dict.fromkeys(("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[str]:
    """A scheduler and its workers, as its address."""
    file = folder / "scheduler.json"
    options = ["--no-dashboard", "--scheduler-file", str(file)]
    command = [sys.executable, "-m", "dask"]
    started = [
        subprocess.Popen(
            [*command, "scheduler", "--host", "127.0.0.1", "--port", "0", *options], stderr=subprocess.DEVNULL
        )
    ]
    try:
        while not file.exists():
            time.sleep(0.05)
        worker = ["worker", "--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", *options]
        for _ in range(workers):
            started.append(
                subprocess.Popen(
                    [*command, *worker], stderr=subprocess.DEVNULL, cwd=folder, env=os.environ | ONE
                )
            )
        yield str(file)
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def cpu_s() -> float:
    """CPU time so far of this process and of all that it started, user and system, s."""
    import psutil

    me = psutil.Process()
    times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def timed(jobs: Sequence[Job], do: Callable[[Watcher], None]) -> tuple[float, float]:
    """Trials a second, and CPU ms a trial."""
    done: list[Outcome] = []
    watcher = Watcher(
        started=lambda _: None,
        said=lambda _job, _words: None,
        finished=lambda _, outcome: done.append(outcome),
    )
    used, began = cpu_s(), time.perf_counter()
    do(watcher)
    took, used = time.perf_counter() - began, cpu_s() - used
    assert len(done) == len(jobs) and all(outcome.valid for outcome in done)
    return len(done) / took, 1e3 * used / len(done)


def by_processes(pool: Pool, workers: int, jobs: Sequence[Job], watcher: Watcher) -> None:
    """As `run` does it on one machine."""
    task = tasks_of("metrics", {})
    run_all(jobs, workers, lambda job, _say: pool.perform(task(job)).outcome(job), watcher)


def by_dask(cluster: Cluster, jobs: Sequence[Job], watcher: Watcher) -> None:
    """As `run --on` does it."""
    cluster.run_all(jobs, tasks_of("metrics", {}), EmuSettings(), watcher)


def sizes(scenario: Scenario, folder: Path) -> None:
    """Prints the bytes through the scheduler, and the size of a trial's files."""
    jobs = jobs_for(scenario, "sim", folder / "sizes", first_seed=1, repeat=101)
    task = tasks_of("metrics", {})

    def packed(count: int) -> Batch:
        tasks = tuple(task(job) for job in jobs[:count])
        return Batch(tasks=tasks, anew=(False,) * count, version=version(), root=str(folder))

    one, many = (len(pickle.dumps(packed(count))) for count in (1, 101))
    print(f"to a worker   {one:8,} B a batch of one trial, {(many - one) / 100:,.0f} B each further one")
    one, many = (len(pickle.dumps(run_batch(packed(count)))) for count in (1, 101))
    print(f"from a worker {one:8,} B a batch of one trial, {(many - one) / 100:,.0f} B each further one")
    kept = [file for file in jobs[0].directory.iterdir() if file.is_file()]
    listed = ", ".join(f"{file.name} {file.stat().st_size:,} B" for file in sorted(kept))
    print(f"a trial       {sum(file.stat().st_size for file in kept):8,} B in {len(kept)} files: {listed}")


def empty(value: Any) -> Any:
    """Returns a task that does nothing."""
    return value


def scheduler(file: str, tasks: int) -> None:
    """Prints how many tasks a second go through the scheduler, if they do nothing."""
    from distributed import Client

    with Client(scheduler_file=file, set_as_default=False) as client:
        for count in (100, tasks):
            began = time.perf_counter()
            futures = client.map(empty, range(count), pure=False)
            client.gather(futures)
            took = time.perf_counter() - began
    print(f"scheduler     {tasks / took:8,.0f} tasks/s that do nothing, of {tasks:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", nargs="?", default="hessler/ftp-medium", metavar="SCENARIO")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    (scenario,) = load(options.scenario)
    rates, cpus = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes(scenario, folder)
        with dask(folder, options.workers) as file, connected(file) as cluster, Pool() as pool:
            while cluster.threads("sim") < options.workers:
                time.sleep(0.1)
            cluster.prepare([scenario], {scenario.id: ["sim"]}, folder / "warm", seed=1)
            jobs = partial(jobs_for, scenario, "sim", first_seed=1)
            ways = {
                "processes": partial(by_processes, pool, options.workers),
                "Dask": partial(by_dask, cluster),
            }
            for way, do in ways.items():
                mine = jobs(out=folder / "warm" / way, repeat=10 * options.workers)
                timed(mine, partial(do, mine))
            for number in range(options.rounds):
                found = {}
                for way, do in ways.items():
                    mine = jobs(out=folder / f"{number}" / way, repeat=options.trials)
                    found[way] = timed(mine, partial(do, mine))
                told = ", ".join(
                    f"{way} {rate:.1f} trials/s and {cpu_ms:.1f} ms CPU a trial"
                    for way, (rate, cpu_ms) in found.items()
                )
                print(f"round {number + 1}       {told}", flush=True)
                rates.append(found["Dask"][0] / found["processes"][0])
                cpus.append(found["Dask"][1] / found["processes"][1])
            print(
                f"Dask          {100 * statistics.median(rates):.0f} % of the rate of processes, "
                f"{100 * statistics.median(cpus):.0f} % of their CPU time (medians of {options.rounds})"
            )
            scheduler(file, 10_000)


if __name__ == "__main__":
    main()
