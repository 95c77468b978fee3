"""How well the validity verdict tells a sound emu trial from one with a fault in it.

    python benches/validity.py [--trials N] [--fault NAME ...] [--seconds S] [--json FILE]

Runs short trials, N of each kind, in turn: clean ones, and ones with a fault put in on purpose, of material
but small size:

- cpu-theft: a process of a higher real-time priority takes every processor, 30 ms of every 60 ms
- capture-loss: the emulator's rings overflow, or one row in a hundred is not recorded, in turn
- wrong-delay: 1 ms more than asked: from the beginning, or from the trial's start only (after the
  pre-flight), or by sending later than recorded, in turn
- wrong-rate: 2 % less than asked: from the beginning, or from the trial's start only, in turn

A fault is caught if the trial is invalid; a false alarm is a clean trial that is. Each share stands with
its 95 % interval (Wilson 1927), and with the tests of the verdict that spoke. A trial that ended without a
record has no verdict: it is counted as "broken" and left out of the shares.

Needs root and a quiet machine: whatever else runs steals the processor too, and a busy machine's clean
trials are rightly invalid. The full run, `--trials 100`, takes about half an hour;
Ctrl-C shows what there is so far.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamgauge.emu import EmuOptions, run_trial
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.scenario import from_text, lower

# The sabotage of streamgauge-engine that each trial of a kind has in turn; None is a thief outside.
KINDS: dict[str, tuple[tuple[str, ...] | None, ...]] = {
    "clean": ((),),
    "cpu-theft": (None,),
    "capture-loss": (("overflow_ring",), ("drop_row",)),
    "wrong-delay": (("wrong_delay",), ("late_wrong_delay",), ("unsaid_delay",)),
    "wrong-rate": (("wrong_rate",), ("late_wrong_rate",)),
}

SCENARIO = """
id: bench/validity
title: A short trial on a link that is full
path:
  down: {{rate: 2 Mbit/s, queue: droptail 20 packets, delay: 20 ms}}
  up: {{delay: 20 ms}}
flows:
  cbr: {{role: subject, traffic: cbr, parameters: {{rate: 300 packets/s, size: 1000 B}}}}
  probe: {{role: rival, traffic: ping, parameters: {{interval: 100 ms}}}}
until: {{time: {seconds:g} s}}
modes: [emu]
"""

THIEF = """
import os, time
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
while True:
    end = time.monotonic() + 0.03
    while time.monotonic() < end: pass
    time.sleep(0.03)
"""

Z = 1.959964
"""Of a 95 % interval."""


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927), which holds where the share is near 0 or 1 too."""
    if not trials:
        return 0.0, 1.0
    share, square = hits / trials, Z * Z / trials
    middle = (share + square / 2) / (1 + square)
    half = Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass
class Tally:
    """What became of the trials of one kind."""

    trials: int = 0
    invalid: int = 0
    broken: int = 0
    caught_by: Counter[str] = field(default_factory=Counter)
    variants: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    whys: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        low, high = wilson(self.invalid, self.trials)
        return {
            "trials": self.trials,
            "invalid": self.invalid,
            "broken": self.broken,
            "share": self.invalid / self.trials if self.trials else None,
            "interval_95": [low, high],
            "caught_by": dict(self.caught_by.most_common()),
            "variants": dict(self.variants),
            "missed": dict(self.missed),
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
            one.send_signal(signal.SIGKILL)
            one.wait()


def red(validity: dict[str, Any]) -> list[str]:
    """Names of the verdict's tests that failed."""
    found = []
    for name, bound in validity["bounds"].items():
        value = validity["measured"].get(name)
        if isinstance(value, list):
            failed = bool(value)
        elif isinstance(bound, list) and isinstance(value, int | float):
            failed = not bound[0] <= value <= bound[1]
        elif isinstance(value, int | float) and not name.startswith(("preflight_", "record_", "cbr_packets")):
            failed = not value <= bound
        else:
            failed = False
        if failed:
            found.append(name)
    return found


def trial(seconds: float, sabotage: tuple[str, ...] | None, seed: int, folder: Path) -> dict[str, Any] | None:
    """One trial's verdict; None if it left no record."""
    (scenario,) = from_text(SCENARIO.format(seconds=seconds))
    plan = lower(scenario, "emu", seed)
    with theft(sabotage is None):
        try:
            done = run_trial(scenario, plan, seed, folder, EmuOptions(sabotage=sabotage or ()))
        except TrialBrokenError as error:
            print(f"  broken: {error}", file=sys.stderr)
            return None
    validity: dict[str, Any] = done["validity"]
    return validity


def show(tallies: dict[str, Tally]) -> None:
    print(f"\n{'kind':14}{'trials':>7}{'invalid':>9}{'share':>8}  95 % interval     which tests spoke")
    for kind, tally in tallies.items():
        if not tally.trials:
            continue
        low, high = wilson(tally.invalid, tally.trials)
        spoke = ", ".join(f"{name} {count}" for name, count in tally.caught_by.most_common(6)) or "-"
        share = tally.invalid / tally.trials
        interval = f"{100 * low:5.1f} to {100 * high:5.1f} %"
        print(f"{kind:14}{tally.trials:7}{tally.invalid:9}{100 * share:7.1f}%  {interval}  {spoke}")
        if tally.broken:
            print(f"  broken, left out: {tally.broken}")
        for variant, count in tally.variants.items():
            if len(tally.variants) > 1 or tally.missed:
                print(f"  {variant:24}{count - tally.missed[variant]:4} of {count} invalid")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--trials", type=int, default=6, help="of each kind (default 6; the full run has 100)"
    )
    parser.add_argument("--fault", action="append", choices=list(KINDS), help="only these kinds")
    parser.add_argument("--seconds", type=float, default=1.2, help="length of a trial, s")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/validity.py: only root may take the processor from root; run it as root.")
    kinds = options.fault or list(KINDS)
    tallies = {kind: Tally() for kind in kinds}
    began, load_before = time.monotonic(), os.getloadavg()
    # Ended early, it still tells what it has seen.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(options.trials):
                # In turn, so that a machine that grows busier does so for all alike.
                for kind in kinds:
                    sabotage = KINDS[kind][number % len(KINDS[kind])]
                    started = time.monotonic()
                    place = Path(folder) / f"{kind}-{number}"
                    verdict = trial(options.seconds, sabotage, 1 + number, place)
                    tally = tallies[kind]
                    if verdict is None:
                        tally.broken += 1
                        if kind == "clean" and tally.broken > tally.trials:
                            sys.exit("benches/validity.py: clean trials leave no record; see above.")
                        continue
                    tally.seconds += time.monotonic() - started
                    tally.trials += 1
                    variant = "+".join(sabotage or ()) or kind
                    tally.variants[variant] += 1
                    if verdict["valid"]:
                        tally.missed[variant] += 1
                    else:
                        tally.invalid += 1
                        tally.caught_by.update(red(verdict))
                        tally.whys.append("; ".join(verdict["why"]))
                    subprocess.run(["rm", "-rf", place], check=True)
                print(f"\r{number + 1} of {options.trials} rounds", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\nended early", file=sys.stderr)
    show(tallies)
    took_s = time.monotonic() - began
    print(f"\n{took_s:.0f} s; load average {load_before[0]:.1f} before, {os.getloadavg()[0]:.1f} after")
    if options.json:
        found = {
            "schema": "streamgauge.validity-bench/1",
            "kinds": {kind: tally.to_json() for kind, tally in tallies.items()},
            "load_average": [load_before[0], os.getloadavg()[0]],
            "seconds": took_s,
        }
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
