"""Cost of the matrix: every system in every kind of scenario, simulated, ranked and written as a page.

    python benches/matrix.py [--repeat 10] [--kind GLOB] [--system GLOB]

Prints how long each step takes, trials a second, and the most memory: that of this process and of the largest
that it started. Wall time means something on an idle machine alone; CPU time counts every process.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamgauge.matrix import judged, matrix_of, run_matrix, to_json, write_page

_MB = 1e6


def cpu_s() -> float:
    """CPU time so far, of this process and those that it has waited for, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_mb(who: int) -> float:
    """Returns the most memory that was resident, MB."""
    return resource.getrusage(who).ru_maxrss * 1024 / _MB


@contextmanager
def told(what: str) -> Iterator[None]:
    """Prints the time of something."""
    began, before = time.perf_counter(), cpu_s()
    yield
    print(f"  {what:<32} {time.perf_counter() - began:6.1f} s, CPU {cpu_s() - before:6.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--system", action="append", default=[])
    asked = parser.parse_args()
    began, before = time.perf_counter(), cpu_s()
    with told("read the scenarios"):
        matrix = matrix_of(kinds=asked.kind, systems=asked.system)
    with tempfile.TemporaryDirectory() as folder:
        with told("run the trials"):
            ran = run_matrix(matrix, Path(folder), repeat=asked.repeat)
        with told("rank the systems"):
            found = judged(ran)
        with told("write the page and the JSON"):
            page = write_page(found, Path(folder) / "matrix.html")
            rows = len(to_json(found)["rows"])
        size = page.stat().st_size / _MB
    wall, cpu = time.perf_counter() - began, cpu_s() - before
    trials = ran.tried
    own, largest = peak_mb(resource.RUSAGE_SELF), peak_mb(resource.RUSAGE_CHILDREN)
    print(
        f"{len(matrix.kinds)} kinds, {len(matrix.systems)} systems, {trials} trials, neighbours alone too: "
        f"{wall:.0f} s, {trials / wall:.0f} trials a second; CPU {cpu:.0f} s on {os.cpu_count()} processors"
    )
    print(
        f"at most {own:.0f} MB, and {largest:.0f} MB in a process that runs trials; "
        f"{rows} rows, a page of {size:.1f} MB"
    )


if __name__ == "__main__":
    main()
