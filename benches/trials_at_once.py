"""How many emu trials this machine carries at once (docs/emu.md).

    .venv/bin/python benches/trials_at_once.py --json at-once.json
    .venv/bin/python benches/trials_at_once.py --jobs 4 8 --rates 10 --rounds 1 --seconds 10

One CUBIC flow, iperf3 as in `traffic: bulk`, on a path of 20 ms each way with a queue of one BDP, for each
number of trials at once and each rate; `--rounds` times as many trials as run at once. Emulators that spin
before departures and emulators that sleep are measured in turn. Reported for each: the number of invalid
trials and why, and the lateness of departures (median over the trials of their p50 and p99, and the worst
p99).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from streamgauge.campaign import EmuSettings, Outcome, jobs_for, run_jobs
from streamgauge.scenario import load

TEXT = """
id: bench/at-once-{rate}
title: One CUBIC flow, among others on this machine
path: {{down: {{rate: {rate} Mbit/s, queue: droptail 1 BDP, delay: 20 ms}}, up: {{delay: 20 ms}}}}
flows: {{bulk: {{role: subject, traffic: bulk, congestion_control: cubic}}}}
until: {{time: {seconds} s}}
"""


def main() -> int:
    """Measures, prints a table."""
    options = _arguments()
    rows: list[dict[str, Any]] = []
    print("| Mbit/s | at once | emulator | invalid | p50, us | p99, us | worst p99, us | wall, s a trial |")
    print("|---|---|---|---|---|---|---|---|")
    for rate in options.rates:
        for jobs in options.jobs:
            for spin in options.spin:
                row = measure(rate, jobs, spin == "spins", options.rounds, options.seconds)
                rows.append(row)
                print(
                    f"| {rate} | {jobs} | {spin} | {row['invalid']} of {row['trials']} | {row['p50_us']:.1f} "
                    f"| {row['p99_us']:.0f} | {row['worst_p99_us']:.0f} | {row['wall_s']:.1f} |",
                    flush=True,
                )
                for why, count in row["why"].items():
                    print(f"  {count} x {why}", file=sys.stderr, flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0


def measure(rate: str, jobs: int, spin: bool, rounds: int, seconds: int) -> dict[str, Any]:
    """Returns one row of the table: `rounds` times `jobs` trials, `jobs` at a time."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-at-once-") as folder:
        file = Path(folder) / "scenario.yaml"
        file.write_text(TEXT.format(rate=rate, seconds=seconds), encoding="utf-8")
        (scenario,) = load(file)
        planned = jobs_for(scenario, "emu", Path(folder), first_seed=1, repeat=rounds * jobs)
        began = time.monotonic()
        settings = EmuSettings(jobs=jobs, spin=spin)
        outcomes, interrupted = run_jobs(planned, keep="packets", emu=settings)
        wall_s = time.monotonic() - began
        if interrupted:
            raise KeyboardInterrupt
        found = [_measured(outcome) for outcome in outcomes if outcome.digest is not None]
    return {
        "rate_mbps": rate,
        "jobs": jobs,
        "spin": spin,
        "seconds": seconds,
        "trials": len(outcomes),
        "invalid": sum(not outcome.valid for outcome in outcomes),
        "why": Counter(why for outcome in outcomes for why in outcome.why),
        "p50_us": 1e6 * statistics.median(one["lateness_p50_s"] for one in found),
        "p99_us": 1e6 * statistics.median(one["lateness_p99_s"] for one in found),
        "worst_p99_us": 1e6 * max(one["lateness_p99_s"] for one in found),
        "late_over_service": [one["late_over_service"] for one in found],
        "emulator_cpu_s": [one["emulator_cpu_s"] for one in found],
        "wall_s": wall_s / len(outcomes),
        "load": os.getloadavg()[0],
    }


def _measured(outcome: Outcome) -> dict[str, Any]:
    trial = json.loads((outcome.job.directory / "trial.json").read_text(encoding="utf-8"))
    measured: dict[str, Any] = trial["validity"]["measured"]
    return measured


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4, 6, 8], help="trials at once")
    parser.add_argument("--rates", nargs="+", default=["1", "10"], help="rates of the bottleneck, Mbit/s")
    parser.add_argument("--rounds", type=int, default=2, help="trials for each place")
    parser.add_argument("--seconds", type=int, default=20, help="length of a trial")
    parser.add_argument("--spin", nargs="+", choices=["spins", "sleeps"], default=["spins", "sleeps"])
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
