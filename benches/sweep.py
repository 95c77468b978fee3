"""What a sweep costs besides its trials: its points checked, its table and its figures made.

    python benches/sweep.py [--points N] [SCENARIO ...]

CPU time counts every thread and process. The trials are one of each point, with nothing but metrics kept; the
second time there is nothing to run. Wall time means something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.sweeps import axes_of, points_of, run_points
from streamgauge.sweeps.figure import write_files

SCENARIOS = ("hessler/ftp-medium", "today/demo-rtsp-udp-medium")
# Short trials, so that what surrounds them is seen.
SHORT = (
    "flows.cross.start=1s", "flows.cross.stop=4s", "until.time=5s", "measure.window=null", "checks=null",
    "assumed=null",
)  # fmt: skip


def cpu_s() -> float:
    """CPU time so far, of this process and those that it has waited for, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def told(what: str, points: int) -> Iterator[None]:
    """Prints what something took."""
    began, before = time.perf_counter(), cpu_s()
    yield
    wall, cpu = time.perf_counter() - began, cpu_s() - before
    print(f"  {what:<28} {wall:6.1f} s, CPU {cpu:6.1f} s, {1e3 * cpu / points:6.2f} ms a point")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    asked = parser.parse_args()
    rates = max(1, asked.points // 2)
    axes = axes_of(
        [
            f"path.down.rate=500kbit/s..{500 + 10 * (rates - 1)}kbit/s step 10kbit/s",
            "path.down.queue=20kB,40kB",
        ]
    )
    count = 2 * rates
    for name in asked.scenarios:
        print(f"{name}, {count} points")
        with told("check them", count):
            points_of([name], axes, mode="sim")
        with tempfile.TemporaryDirectory() as folder:
            points = points_of([name], axes, mode="sim", settings=SHORT)
            with told("run a trial of 5 s of each", count):
                run_points(points, axes, Path(folder), repeat=1)
            with told("again, with nothing to do", count):
                result = run_points(points, axes, Path(folder), repeat=1)
            with told("table and figures", count):
                write_files(result)


if __name__ == "__main__":
    main()
