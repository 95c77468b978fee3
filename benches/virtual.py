"""Emu in a virtual machine: wall time a second of traffic at three rates, and two guests beside one.

    python benches/virtual.py [--quick]

For each rate: the processor's speed, whether the trial was valid, how late the emulator was, how long the
trial took and how much of that a second of traffic is; then how many trials two guests do in the time in
which one does one. Everything that is made once (image, snapshots) is made before.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from streamgauge.emu import EmuOptions
from streamgauge.emu.machine.image import build
from streamgauge.emu.machine.snapshot import prepare
from streamgauge.emu.options import Virtual
from streamgauge.emu.trial import run_trial
from streamgauge.scenario import find
from streamgauge.scenario.lower import lower

BED = "hessler/ftp-no"
RATES = ((1, "droptail 100 packets", 60), (10, "droptail 50 packets", 10), (100, "droptail 200 packets", 3))
"""Mbit/s, queue, s of traffic."""


def trial(rate: int, queue: str, seconds: int, seed: int, folder: Path) -> dict[str, Any]:
    """One, at the speed that its rate has."""
    settings = [
        "path.down.shaper=serial",
        f"path.down.rate={rate} Mbit/s",
        f"path.down.queue={queue}",
        "path.down.delay=10 ms",
        f"until.time={seconds} s",
        f"measure.window=[0 s, {seconds} s]",
        "flows.ftp.parameters.receive_window=1 MB",
    ]
    scenario = find([BED], settings=settings)[0]
    plan = lower(scenario, "emu", seed)
    began = time.monotonic()
    found = run_trial(scenario, plan, seed, folder / f"{rate}-{seed}", EmuOptions(way="virtual"))
    return found | {"wall_s": time.monotonic() - began, "speed": Virtual().speed_for(plan)}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1 Mbit/s alone")
    quick = parser.parse_args().quick
    rates = RATES[:1] if quick else RATES
    image = build(lambda line: None)
    for speed in {1} if quick else {1, 2}:
        prepare(image, speed, lambda line: None)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        empty = trial(1, "droptail 100 packets", 1, 1, folder)
        print(f"a trial of 1 s of traffic takes {empty['wall_s']:.1f} s")
        for rate, queue, seconds in rates:
            found = trial(rate, queue, seconds, 2, folder)
            measured, why = found["validity"]["measured"], found["validity"]["why"]
            share = (found["wall_s"] - empty["wall_s"]) / (seconds - 1)
            print(
                f"{rate:4} Mbit/s, {found['speed']} thousand million instructions/s: "
                f"{f'invalid ({why[0]})' if why else 'valid'}, late p99 "
                f"{1e6 * measured['lateness_p99_s']:.0f} us; {found['wall_s']:.1f} s for {seconds} s, "
                f"{share:.2f} s for each further second"
            )
        began = time.monotonic()
        trial(*RATES[0], 3, folder)
        one = time.monotonic() - began
        began = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda seed: trial(*RATES[0], seed, folder), (4, 5)))
        two = time.monotonic() - began
        print(f"two guests at once do {2 * one / two:.2f} times the trials of one")


if __name__ == "__main__":
    main()
