"""Cost of the page of many trials: its time, and its peak memory.

    python benches/report_memory.py [--trials 100,1000,10000] [--scenarios 1,90] [SCENARIO]

One simulated trial of SCENARIO (hessler/ftp-medium), metrics alone, is copied with other seeds, and with
other ids where there are to be several scenarios. Each report is made by a process of its own. CPU time is of
user and kernel; wall time means something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from streamgauge import _native
from streamgauge.campaign import run
from streamgauge.campaign.stored import load_metrics, save_metrics
from streamgauge.metrics import TrialMetrics
from streamgauge.scenario import find

_CHILD = "--report"


def one_trial(scenario: str, folder: Path) -> tuple[dict[str, Any], TrialMetrics, str]:
    """Runs it; trial.json, metrics and provenance.json."""
    (found,) = find([scenario])
    done = run([found], {found.id: ["sim"]}, folder, repeat=1, keep="metrics")
    place = next(one.job.directory for one in done.outcomes if one.job.scenario.id == found.id)
    trial = json.loads((place / "trial.json").read_text(encoding="utf-8"))
    metrics = load_metrics(place, trial["scenario"].get("measure") or {})
    assert metrics is not None
    return trial, metrics, (place / "provenance.json").read_text(encoding="utf-8")


def copies(made: tuple[dict[str, Any], TrialMetrics, str], count: int, scenarios: int, out: Path) -> None:
    """Writes this many trials, the seeds of each scenario from 1."""
    trial, metrics, provenance = made
    for index in range(count):
        seed, which = divmod(index, scenarios)
        id_ = trial["scenario"]["id"] if scenarios == 1 else f"bench/{which}"
        folder = out / f"scenario={which}" / "mode=sim" / f"seed={seed + 1}"
        folder.mkdir(parents=True)
        as_run = trial["scenario"] | {"id": id_}
        digests = (trial["packets_digest"] or "", trial["events_digest"] or "")
        digest = _native.trial_digest(json.dumps(as_run, allow_nan=False), *digests)
        header = trial | {"seed": seed + 1, "scenario": as_run, "digest": digest}
        (folder / "trial.json").write_text(json.dumps(header), encoding="utf-8")
        (folder / "provenance.json").write_text(provenance, encoding="utf-8")
        mine = dataclasses.replace(metrics, seed=seed + 1, scenario=id_)
        save_metrics(folder, mine, trial["scenario"].get("measure") or {})


def report(folder: Path) -> None:
    """In a process of its own: prints CPU time, wall time, most memory."""
    from streamgauge.report import build

    began = time.monotonic()
    page = build(folder, folder.with_suffix(".html"))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, time.monotonic() - began, used.ru_maxrss, page.stat().st_size)


def main() -> None:
    """Prints a row a report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenario", nargs="?", default="hessler/ftp-medium")
    parser.add_argument("--trials", default="100,1000,10000", help="how many in all, with commas between")
    parser.add_argument("--scenarios", default="1,90", help="among so many scenarios, with commas between")
    parser.add_argument(_CHILD, type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.report is not None:
        report(asked.report)
        return
    print("scenarios  trials   CPU, s ms a trial  wall, s  most, MB  page, MB")
    with tempfile.TemporaryDirectory() as scratch:
        made = one_trial(asked.scenario, Path(scratch) / "one")
        for scenarios in map(int, asked.scenarios.split(",")):
            for count in map(int, asked.trials.split(",")):
                if count < scenarios:
                    continue
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    out = Path(folder) / "runs"
                    copies(made, count, scenarios, out)
                    command = [sys.executable, __file__, _CHILD, str(out)]
                    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                cpu_s, wall_s, most_kb, page = map(float, told.split())
                print(
                    f"{scenarios:9} {count:7} {cpu_s:8.1f} {1e3 * cpu_s / count:10.2f} {wall_s:8.1f} "
                    f"{most_kb / 1024:9.0f} {page / 1e6:9.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
