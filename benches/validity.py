"""How well the validity verdict separates a sound emu trial from one with a fault in it.

    python benches/validity.py [--quiet N] [--faults N] [--only KIND ...] [--jobs N] [--json FILE]

Two rates, each with its 95 % interval (Wilson 1927):

- **false alarms**: of N trials of each of ten kinds that are odd and unharmed (verdict_trials.py), those
  called invalid. One that is invalid for nothing but want of the processor is counted apart, and left out of
  the rate: late departures, arrivals read late, a late start or action, a program that waited, a pre-flight
  that was disturbed. Nothing else is.
- **catches**: of N trials with each fault, those called invalid by a test that is there for it. The faults
  are the emulator's own (crates/engine/src/link/sabotage.rs), stolen processor time, and a killed player,
  server, witness and emulator.

One round has a trial of each kind, in turn: a machine that grows busier does this for all alike. Needs root
and a quiet machine. The whole is 100 quiet trials and 6 of each fault. With `--jobs 4`, 6 minutes on two
processors, trials run side by side, but for those in which something is stolen or killed. Ctrl-C prints the
results so far.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.emu import EmuOptions, run_trial
from streamgauge.emu.concurrency import ConcurrentTrials
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.lock import machine_lock
from streamgauge.scenario import from_text, lower
from verdict_trials import FAULTS, ODD, failed, scenario, wanted_processor

THIEF = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
while True:
    while time.monotonic() % 0.06 < 0.03: pass
    time.sleep(0.06 - time.monotonic() % 0.06)
"""
"""Takes its processor for 30 ms of every 60 ms, at the same time on all: in turns they would harm no
trial."""

# The killed process, by its command line, and the number that must show it.
KILLS = {
    "killed-player": (re.compile(r"^mgen flush event LISTEN"), ("deaths",)),
    "killed-server": (re.compile(r"^mgen event .* ON "), ("deaths",)),
    "killed-witness": (re.compile(r"^\S*streamgauge-engine witness .*client"), ()),
    "killed-emulator": (re.compile(r"^\S*streamgauge-engine link "), ()),
}
THEFT = {
    "cpu-theft": ("lateness_p99_s", "late_over_service", "clamped_share", "clamped_max_s", "arrivals_p99_s")
}
HARMED: dict[str, tuple[str, ...]] = {
    **FAULTS,
    **THEFT,
    **{kind: tests for kind, (_, tests) in KILLS.items()},
}

Z = 1.959964
"""Quantile of a 95 % interval."""


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Returns the 95 % interval of a share (Wilson 1927), which holds where the share is near 0 or 1 too."""
    if not trials:
        return 0.0, 1.0
    share, square = hits / trials, Z * Z / trials
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass
class Tally:
    """Outcome of the trials of one kind."""

    trials: int = 0
    #: Invalid by a test that means it: a false alarm of a quiet kind, a catch of a fault.
    hits: int = 0
    #: In a quiet kind: invalid for lack of the processor alone. They are no part of `judged`.
    starved: int = 0
    spoke: Counter[str] = field(default_factory=Counter)
    #: Reason of each invalid trial; a false alarm's are first.
    whys: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def judged(self) -> int:
        return self.trials - self.starved

    def add(self, other: Tally) -> None:
        self.trials += other.trials
        self.hits += other.hits
        self.starved += other.starved
        self.seconds += other.seconds

    def to_json(self) -> dict[str, Any]:
        return {
            "trials": self.trials,
            "hits": self.hits,
            "starved": self.starved,
            "share": self.hits / self.judged if self.judged else None,
            "interval_95": list(wilson(self.hits, self.judged)),
            "tests": dict(self.spoke.most_common()),
            "examples": self.whys[:5],
            "seconds_per_trial": self.seconds / max(self.trials, 1),
        }


@contextmanager
def theft(wanted: bool) -> Iterator[None]:
    """A thief on every processor."""
    thieves = []
    try:
        for core in os.sched_getaffinity(0) if wanted else ():
            thieves.append(subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", THIEF]))
        yield
    finally:
        for one in thieves:
            one.kill()
            one.wait()


class Killer:
    """Kills a process of the trial, once, when the trial has begun."""

    def __init__(self, which: re.Pattern[str] | None) -> None:
        self._which = which

    def say(self, line: str) -> None:
        """Hears of the trial's progress: ``0 of 2 s`` when it begins."""
        if self._which is not None and re.match(r"\d+ of \d+ s", line):
            threading.Timer(0.5, self._kill, (self._which,)).start()
            self._which = None

    @staticmethod
    def _kill(which: re.Pattern[str]) -> None:
        for pid in _descendants(os.getpid()):
            with suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if which.search(line):
                    os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The command's name may hold spaces: the text after its closing bracket does not.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def trial(
    kind: str, seed: int, folder: Path, concurrent: ConcurrentTrials | None = None
) -> dict[str, Any] | str:
    """Returns one trial's verdict; why, in words, if it left no record."""
    (made,) = from_text(scenario(kind))
    killer = Killer(KILLS[kind][0] if kind in KILLS else None)
    sabotage = (kind,) if kind in FAULTS else ()
    options = EmuOptions(sabotage=sabotage, say=killer.say, concurrent=concurrent)
    with theft(kind in THEFT):
        try:
            done = run_trial(made, lower(made, "emu", seed), seed, folder, options)
        except TrialBrokenError as error:
            return str(error)
    validity: dict[str, Any] = done["validity"]
    return validity


def trials(plan: list[str], folder: Path, jobs: int) -> Iterator[tuple[str, dict[str, Any] | str, float]]:
    """Yields a trial of each kind in the plan: kind, verdict and how long it took, s, as they come."""

    def one(
        kind: str, number: int, concurrent: ConcurrentTrials | None
    ) -> tuple[str, dict[str, Any] | str, float]:
        place, started = folder / str(number), time.monotonic()
        found = trial(kind, number + 1, place, concurrent)
        shutil.rmtree(place, ignore_errors=True)
        return kind, found, time.monotonic() - started

    numbered = [(kind, number) for number, kind in enumerate(plan)]
    alone = [entry for entry in numbered if jobs == 1 or entry[0] in THEFT or entry[0] in KILLS]
    beside = [entry for entry in numbered if entry not in alone]
    if beside:
        with machine_lock(print) as lock, ThreadPoolExecutor(jobs) as pool:
            concurrent = ConcurrentTrials(lock, jobs)
            try:
                for done in as_completed([pool.submit(one, *entry, concurrent) for entry in beside]):
                    yield done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    for kind, number in alone:
        yield one(kind, number, None)


def judge(tally: Tally, kind: str, found: dict[str, Any] | str) -> None:
    """Counts one trial."""
    tally.trials += 1
    if isinstance(found, str):
        # Without a record there is no trial to believe in: any such end is detected.
        tally.hits += 1
        tally.spoke["no record"] += 1
        tally.whys.append(found)
        return
    bad = failed(found)
    tally.spoke.update(bad)
    if found["valid"]:
        return
    starved = kind in ODD and wanted_processor(found)
    tally.whys.insert(len(tally.whys) if starved else 0, "; ".join(found["why"]))
    if kind in ODD:
        tally.starved += starved
        tally.hits += not starved
    else:
        tally.hits += not set(HARMED[kind]).isdisjoint(bad)


def show(title: str, tallies: dict[str, Tally], hits: str) -> Tally:
    """Prints a table, and the rate of all; `hits` is the counted result."""
    total = Tally()
    print(f"\n{title:20}{'trials':>7}{'starved':>9}{hits:>14}  which tests spoke")
    for kind, tally in tallies.items():
        spoke = ", ".join(f"{name} {count}" for name, count in tally.spoke.most_common(4)) or "-"
        print(f"{kind:20}{tally.trials:7}{tally.starved:9}{tally.hits:14}  {spoke}")
        total.add(tally)
    low, high = wilson(total.hits, total.judged)
    share = f"{100 * total.hits / total.judged:.1f} %" if total.judged else "no"
    print(
        f"{'all':20}{total.trials:7}{total.starved:9}{total.hits:14}  {share} {hits} "
        f"of {total.judged} judged (95 % interval {100 * low:.1f} to {100 * high:.1f} %)"
    )
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quiet", type=int, default=10, help="trials of each quiet kind (default 10)")
    parser.add_argument("--faults", type=int, default=6, help="trials of each fault (default 6)")
    parser.add_argument("--only", action="append", choices=[*ODD, *HARMED], help="only these kinds")
    parser.add_argument("--jobs", type=int, default=1, help="trials at once (default 1)")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/validity.py: only root may take the processor from root; run it as root.")
    rounds = dict.fromkeys(ODD, options.quiet) | dict.fromkeys(HARMED, options.faults)
    tallies = {kind: Tally() for kind in rounds if kind in (options.only or rounds)}
    plan = [kind for number in range(max(rounds.values())) for kind in tallies if number < rounds[kind]]
    began, load_before = time.monotonic(), os.getloadavg()
    # Ended early, it still prints its results so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = 0
            for kind, found, seconds in trials(plan, Path(folder), options.jobs):
                tally, done = tallies[kind], done + 1
                judge(tally, kind, found)
                tally.seconds += seconds
                print(f"\r{done} of {len(plan)} trials", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\nended early", file=sys.stderr)
    quiet = {kind: tally for kind, tally in tallies.items() if kind in ODD and tally.trials}
    harmed = {kind: tally for kind, tally in tallies.items() if kind in HARMED and tally.trials}
    alarms = show("quiet kind", quiet, "false alarms")
    for kind, tally in quiet.items():
        for why in tally.whys[:3]:
            print(f"  {kind}: {why}")
    catches = show("fault", harmed, "caught")
    took_s = time.monotonic() - began
    print(f"\n{took_s:.0f} s; load average {load_before[0]:.1f} before, {os.getloadavg()[0]:.1f} after")
    if options.json:
        found = {
            "schema": "streamgauge.validity-bench/2",
            "false_alarms": alarms.to_json()
            | {"kinds": {kind: tally.to_json() for kind, tally in quiet.items()}},
            "catches": catches.to_json()
            | {"kinds": {kind: tally.to_json() for kind, tally in harmed.items()}},
            "load_average": [load_before[0], os.getloadavg()[0]],
            "seconds": took_s,
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
