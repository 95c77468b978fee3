"""Cost of a search over a paper's unknowns: points a second, run and found again.

    python benches/infer.py [--points N] [--json] [PAPER ...]

The points are the sources and others by lot, with one seed. The second time their readings are there. Wall
time means something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from figures import document
from streamgauge.infer.control import permuted
from streamgauge.infer.inferring import Question, question_of
from streamgauge.infer.points import PointRunner
from streamgauge.infer.search import Search
from streamgauge.paper import papers

PAPERS = ("hessler", "darwin", "ccn")


def cpu_s() -> float:
    """CPU time so far, of this process and those that it has waited for, s."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def searched(question: Question, out: Path, points: int) -> int:
    """Tries the sources and `points` random points; returns the trials that ran."""
    runner = PointRunner(question.scenarios, question.judged, question.unknowns, out, most_trials=4)
    search = Search(
        question.unknowns,
        question.checks,
        permuted(question.checks, 1),
        lambda points: runner.run(points, [1]),
        lambda points: runner.run(points, [101]),
        1,
    )
    search.try_points([search.source], "sources")
    search.random(points - 1)
    return runner.ran


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--points", type=int, default=12)
    parser.add_argument("papers", nargs="*", default=PAPERS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found: dict[str, float] = {}
    for name in asked.papers:
        question = question_of(papers()[name])
        if not asked.json:
            print(f"{name}: {len(question.scenarios)} scenarios, {len(question.unknowns)} unknowns")
        with tempfile.TemporaryDirectory() as folder:
            for again in ("run", "found again"):
                began, before = time.perf_counter(), cpu_s()
                trials = searched(question, Path(folder), asked.points)
                wall, cpu = time.perf_counter() - began, cpu_s() - before
                rate, each = asked.points / wall, cpu / asked.points
                found[f"{name}, a point {again}"] = 1e3 * each
                if asked.json:
                    continue
                print(
                    f"  {again:<12} {rate:7.2f} points a second, CPU {each:6.2f} s a point, {trials} trials"
                )
    if asked.json:
        print(document("ms", found))


if __name__ == "__main__":
    main()
