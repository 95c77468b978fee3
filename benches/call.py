"""CPU time of one minute of a simulated video call, controller by controller, with metrics alone kept.

    python benches/call.py [--trials N] [--json]

The call is `today/call-no`, cut to a minute. Imports and the first trial, which fills the caches, are left
out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from figures import document

CONTROLLERS = ("gcc", "gcc-draft", "nada", "scream-v2", "fixed")
AIM_MS = 60.0
"""Upper bound for a minute of GCC."""


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--trials", type=int, default=10)
    asked.add_argument("--json", action="store_true")
    options = asked.parse_args()
    found = {name: measure(name, options.trials) for name in CONTROLLERS}
    if options.json:
        print(document("ms", {f"a minute by {name}": cpu_ms for name, cpu_ms in found.items()}))
        return 0
    for name, cpu_ms in found.items():
        aim = f" (aim: {AIM_MS:.0f} ms)" if name == "gcc" else ""
        print(f"{name}: {cpu_ms:.1f} ms of a processor{aim}")
    return 0


def measure(controller: str, trials: int) -> float:
    """Returns the median CPU time of a trial, in ms."""
    from streamgauge.campaign.plan import jobs_for
    from streamgauge.campaign.work import perform, tasks_of
    from streamgauge.scenario import load

    settings = [
        f"flows.video.parameters.controller={controller}", "until.time=60 s", "measure.window=[0 s, 60 s]",
    ]  # fmt: skip
    (scenario,) = load("today/call-no", settings=settings, mutants=False)
    took = []
    with tempfile.TemporaryDirectory() as folder:
        task_of = tasks_of("metrics", {})
        jobs = jobs_for(scenario, "sim", Path(folder), first_seed=1, repeat=trials + 1)
        perform(task_of(jobs[0]))
        for job in jobs[1:]:
            began = time.process_time()
            perform(task_of(job))
            took.append(1e3 * (time.process_time() - began))
    return median(took)


if __name__ == "__main__":
    sys.exit(main())
