"""Cost of a sweep besides its trials: its points checked, its table and its figures made.

    python benches/sweep.py [--points N] [--json] [SCENARIO ...]

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

from figures import document
from streamgauge.sweeps import axes_of, points_of, run_points
from streamgauge.sweeps.figure import write_files

SCENARIOS = ("hessler/ftp-medium", "today/demo-rtsp-udp-medium")
# Short trials, which make the rest visible.
SHORT = (
    "flows.cross.start=1s", "flows.cross.stop=4s", "until.time=5s", "measure.window=null", "checks=null",
    "assumed=null",
)  # fmt: skip


def cpu_s() -> float:
    """CPU time so far, of this process and those that it has waited for, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


FOUND: dict[str, float] = {}
"""CPU time of each step, ms a point."""


@contextmanager
def told(what: str, points: int, *, as_json: bool) -> Iterator[None]:
    """Keeps the CPU time of a step, and prints it where no document is asked for."""
    began, before = time.perf_counter(), cpu_s()
    yield
    wall, cpu = time.perf_counter() - began, cpu_s() - before
    FOUND[what] = 1e3 * cpu / points
    if as_json:
        return
    print(f"  {what:<28} {wall:6.1f} s, CPU {cpu:6.1f} s, {1e3 * cpu / points:6.2f} ms a point")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    parser.add_argument("--json", action="store_true", help="the figures of the last scenario")
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
        if not asked.json:
            print(f"{name}, {count} points")
        with told("check them", count, as_json=asked.json):
            points_of([name], axes, mode="sim")
        with tempfile.TemporaryDirectory() as folder:
            points = points_of([name], axes, mode="sim", settings=SHORT)
            with told("run a trial of 5 s of each", count, as_json=asked.json):
                run_points(points, axes, Path(folder), repeat=1)
            with told("again, with nothing to do", count, as_json=asked.json):
                result = run_points(points, axes, Path(folder), repeat=1)
            with told("table and figures", count, as_json=asked.json):
                write_files(result)
    if asked.json:
        print(document("ms", {f"a point: {step}": cpu for step, cpu in FOUND.items()}))


if __name__ == "__main__":
    main()
