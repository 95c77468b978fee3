"""Two builds of the native module against each other: the time of a simulated trial with each, in one run.

    python benches/native.py ONE.so OTHER.so [--rounds N] [SCENARIO ...]

Each round runs a few trials of each scenario with the one and with the other, in processes of their own, as
a campaign with ``--keep metrics`` does. Their digests must be the same, else it exits with status 1. CPU
time of those processes counts, imports left out; ``--json`` prints one document.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SCENARIOS = (
    "hessler/qt-medium", "darwin/2qt2tcp-const", "realvideo/head2head-300", "realvideo/tcp-in-place-300",
    "windows-media/loss-sbr-8", "windows-media/mbr-highest-250-4", "ccn/loss-3-reno", "dash/buffer-30-bola",
    "today/http-nginx-medium",
)  # fmt: skip
TRIALS = 4


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("modules", type=Path, nargs=2, metavar="MODULE")
    asked.add_argument("scenarios", nargs="*", default=SCENARIOS, metavar="SCENARIO")
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--json", action="store_true")
    asked.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = asked.parse_args()
    if options.measure:
        print(json.dumps(measure(options.modules[0], options.scenarios)))
        return 0
    for module in options.modules:
        if not module.is_file():
            asked.error(f"{module}: no native module lies there; scripts/setup.sh builds one")
    took: list[list[float]] = [[], []]
    digests = set()
    for _ in range(options.rounds):
        for place, module in enumerate(options.modules):
            found = measured(module, options.scenarios)
            took[place].append(found["cpu_s"])
            digests.add(tuple(found["digests"]))
    trials = TRIALS * len(options.scenarios)
    one_ms, other_ms = (1e3 * median(times) / trials for times in took)
    ratios = [other / one for one, other in zip(*took, strict=True)]
    same = len(digests) == 1
    if options.json:
        print(json.dumps({"trials": trials, "ms": [one_ms, other_ms], "ratios": ratios, "same": same}))
    else:
        print(
            f"a trial of {trials} takes {one_ms:.1f} ms of a processor with {options.modules[0]}, "
            f"{other_ms:.1f} ms with {options.modules[1]}: {median(ratios):.3f} times as much "
            f"({min(ratios):.3f} to {max(ratios):.3f} in {options.rounds} rounds)"
        )
        print("digests: " + ("the same" if same else "NOT the same"))
    return 0 if same else 1


def measured(module: Path, scenarios: list[str]) -> dict[str, object]:
    """Runs `measure` in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(module), str(module), *scenarios]
    found: dict[str, object] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def measure(module: Path, scenarios: list[str]) -> dict[str, object]:
    """CPU time and digests of the trials with this native module."""
    spec = importlib.util.spec_from_file_location("streamgauge._native", module.resolve())
    assert spec is not None
    assert spec.loader is not None
    native = importlib.util.module_from_spec(spec)
    # Before anything imports the one that lies in the package.
    sys.modules["streamgauge._native"] = native
    spec.loader.exec_module(native)

    from streamgauge.campaign.plan import jobs_for
    from streamgauge.campaign.work import perform, tasks_of
    from streamgauge.scenario import load

    digests: list[str | None] = []
    cpu_s = 0.0
    with tempfile.TemporaryDirectory() as folder:
        task_of = tasks_of("metrics", {})
        for name in scenarios:
            (scenario,) = load(name, mutants=False)
            jobs = jobs_for(scenario, "sim", Path(folder), first_seed=1, repeat=TRIALS + 1)
            # The first one fills the caches.
            perform(task_of(jobs[0]))
            began = time.process_time()
            rows = [perform(task_of(job)) for job in jobs[1:]]
            cpu_s += time.process_time() - began
            digests += [row.digest for row in rows]
    return {"cpu_s": cpu_s, "digests": digests}


if __name__ == "__main__":
    sys.exit(main())
