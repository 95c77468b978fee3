"""Measures an evaluation of a congestion control: wall time, CPU, memory, CPU for each row of a record.

    python benches/evaluate.py [--quick] [--seeds N] [NAME|FILE.py:NAME]

Everything runs anew in a folder of its own. Memory is this process's peak and the highest of the pool's. Wall
time means something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from streamgauge.evaluate import EvaluationPlan, evaluate, resolved
from streamgauge.evaluate.question import rows_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("control", nargs="?", default="reno")
    asked = parser.parse_args()
    plan = EvaluationPlan(
        control=resolved(asked.control, "sim"), shown=asked.control, quick=asked.quick, seeds=asked.seeds
    )
    rows = rows_of(plan.questions(), asked.seeds)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found = evaluate(plan, Path(folder), foretold=lambda n, s: print(f"{n} trials, foretold {s:.0f} s"))
        wall = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    memory = " and ".join(f"{one.ru_maxrss / 1e3:.0f} MB" for one in used)
    print(f"{found.ran.trials} trials, {len(found.rows)} rows: {wall:.0f} s, CPU {cpu:.0f} s, {memory}")
    print(f"{1e6 * cpu / rows:.2f} us of CPU for each of {rows / 1e6:.0f} M rows foretold")


if __name__ == "__main__":
    main()
