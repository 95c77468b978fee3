"""Cost of comparing beyond running: rows judged a second, of synthetic readings.

    python benches/compare.py [--subjects 6] [--scenarios 10] [--trials 10] [--json]

Each subject is compared with the baseline in every metric (a bootstrap of 9,999 resamples each) and ranked
among all (one for each pair of subjects).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from figures import document
from streamgauge.compare import COMPARED, SubjectTrials, answered, compare


def cases(subjects: int, scenarios: int, trials: int) -> list[SubjectTrials]:
    random = np.random.default_rng(1)
    found = []
    for scenario in range(scenarios):
        path: dict[str, Any] = {"down": {"rate": f"{scenario + 1} Mbit/s"}}
        for subject in range(subjects):
            flows = {"video": {"role": "subject", "system": f"system-{subject}"}, "other": {"role": "rival"}}
            readings = {
                seed: {name: float(random.lognormal(subject / 10)) for name in COMPARED}
                for seed in range(1, trials + 1)
            }
            found.append(
                SubjectTrials(
                    subject=f"system-{subject}",
                    id=f"bench/system-{subject}-load-{scenario}",
                    scenario={"path": path, "flows": flows},
                    mode="sim",
                    trials=readings,
                )
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--subjects", type=int, default=6)
    parser.add_argument("--scenarios", type=int, default=10)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    made = cases(asked.subjects, asked.scenarios, asked.trials)
    compare(made[: 2 * asked.subjects])  # resamples are drawn once a process
    began, began_cpu = time.perf_counter(), time.process_time()
    found = answered(compare(made))
    spent, spent_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    count = len(found.rows)
    if asked.json:
        print(document("ms", {"a row judged": 1e3 * spent_cpu / count}))
        return
    size = f"{asked.subjects} subjects, {asked.scenarios} scenarios, {asked.trials} trials each"
    print(
        f"{size}: {count} rows in {spent:.2f} s ({spent_cpu:.2f} s CPU), {count / spent:,.0f} rows a second"
    )


if __name__ == "__main__":
    main()
