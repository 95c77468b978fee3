"""Measures the time of a whole paper: trials and checks of each reading, and figures apart from them.

    python benches/reproduce.py [--paper darwin] [--reading NAME]

Each reading is a separate run of the program, from its start to its last figure, into an empty folder. Wall
time is meaningful only on an idle machine. CPU time counts every thread and the kernel's part.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

from streamgauge.paper import papers
from streamgauge.scenario.paper_readings import readings_of


def cpu_s() -> float:
    """CPU time of all finished children, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reproduce(paper: str, reading: str) -> tuple[dict[str, Any], float, float]:
    """Runs once; returns its output, its wall and its CPU time, s."""
    command = [sys.executable, "-m", "streamgauge", "reproduce", paper, "--mode", "sim", "--json"]
    command += ["--reading", reading]
    with tempfile.TemporaryDirectory() as folder:
        began, cpu = time.perf_counter(), cpu_s()
        done = subprocess.run([*command, "--out", folder], stdout=subprocess.PIPE, check=False)
        took = time.perf_counter() - began, cpu_s() - cpu
    if done.returncode > 2:
        raise SystemExit(done.returncode)
    return json.loads(done.stdout), *took


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--paper", default="darwin", choices=sorted(papers()))
    parser.add_argument("--reading", help="only this one")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for reading in [options.reading] if options.reading else readings_of(options.paper).compared:
        told, wall, cpu = reproduce(options.paper, reading)
        (ran,) = told["readings"]
        what = f"{ran['trials']} trials and {len(ran['checks'])} checks in {ran['wall_s']:.1f} s"
        print(
            f"{options.paper} {reading}: {what}, figures in {told['figures_s']:.1f} s; "
            f"the whole program {wall:.1f} s, {cpu:.1f} s CPU, on {cores} cores"
        )


if __name__ == "__main__":
    main()
