#!/usr/bin/env python3
"""Makes the traces that ship in python/streamgauge/traces, which are ours: drawn from models, with a seed.

    scripts/make-traces.py [FOLDER]

Run again it writes the same bytes. Four models, ten minutes (mahimahi's: one) each:

lte-driving.csv
    LTE from a moving car. ln(rate) is an AR(1) process in steps of 1 s, correlation 0.9 a second,
    standard deviation 0.8, median 10 Mbit/s, at most 75 Mbit/s, with fades (a hand-over or a
    shadow) at a mean of one a minute that take the rate to 2 to 10 % for 1 to 4 s. Heavy variation
    on a scale of seconds and a log-normal spread: Raca et al., "Beyond Throughput: a 4G LTE Dataset
    with Channel and Context Metrics", MMSys 2018; van der Hooft et al., IEEE Communications Letters
    20(11), 2016.
wifi-lossy.csv
    802.11 with contention: what remains of 24 Mbit/s, in steps of 100 ms, as two on-off neighbours
    (mean 2 s on, 3 s off; each takes a third to a half of the air) and a slow rate adaptation
    between 6, 12, 18 and 24 Mbit/s (mean stay 5 s) leave it. Two states per neighbour and steps
    among the OFDM rates of IEEE 802.11a; the seldom deep drop follows from both together.
hsdpa-bus.csv
    3G from a bus: ln(rate) AR(1) in steps of 1 s, correlation 0.85, standard deviation 0.6, median
    1.4 Mbit/s, at most 6 Mbit/s, with outages of 0 bit/s at a mean of one in 90 s that last 2 to 15
    s. Rates of that size and outages of that kind: Riiser et al., "Commute Path Bandwidth Traces
    from 3G Networks", MMSys 2013.
lte-walking.pps
    As lte-driving, slower (correlation 0.97, standard deviation 0.5, median 3 Mbit/s), as delivery
    opportunities of 1504 bytes in ms, one minute, for mahimahi's mm-link and ours. Within a second
    they are spread as a Poisson process: Winstein et al., "Stochastic Forecasts Achieve High
    Throughput and Low Delay over Cellular Networks", NSDI 2013, section 2.

None of them is a measurement or fitted to one: the parameters are round numbers of the size that the
sources report.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator
from pathlib import Path

SEED = 20261121
FOLDER = Path(__file__).parent.parent / "python" / "streamgauge" / "traces"


def log_ar1(
    draw: random.Random, median_bps: float, deviation: float, correlation: float, most_bps: float
) -> Iterator[float]:
    """Yields a stationary AR(1) process of the rate's logarithm, from its own distribution on."""
    innovation = deviation * math.sqrt(1 - correlation**2)
    state = draw.gauss(0, deviation)
    while True:
        yield min(median_bps * math.exp(state), most_bps)
        state = correlation * state + draw.gauss(0, innovation)


def lapses(draw: random.Random, mean_gap_s: float, least_s: float, most_s: float) -> Iterator[bool]:
    """Yields for each second whether it is in a lapse: of uniform length, at exponential gaps."""
    while True:
        for _ in range(max(1, round(draw.expovariate(1 / mean_gap_s)))):
            yield False
        for _ in range(round(draw.uniform(least_s, most_s))):
            yield True


def lte_driving(draw: random.Random) -> list[tuple[float, float]]:
    rates = log_ar1(draw, 10e6, 0.8, 0.9, 75e6)
    fades = lapses(draw, 60, 1, 4)
    return [
        (t, rate * (draw.uniform(0.02, 0.1) if fade else 1))
        for t, rate, fade in zip(range(600), rates, fades, strict=False)
    ]


def wifi_lossy(draw: random.Random) -> list[tuple[float, float]]:
    modes = [6e6, 12e6, 18e6, 24e6]
    mode, busy, taken = 3, [False, False], [0.0, 0.0]
    samples = []
    for step in range(6000):
        if draw.random() < 0.1 / 5:
            mode = min(max(mode + draw.choice((-1, 1)), 0), len(modes) - 1)
        for who in range(2):
            if draw.random() < 0.1 / (2 if busy[who] else 3):
                busy[who] = not busy[who]
                taken[who] = draw.uniform(1 / 3, 1 / 2)
        left = math.prod(1 - taken[who] for who in range(2) if busy[who])
        samples.append((step / 10, modes[mode] * left))
    return samples


def hsdpa_bus(draw: random.Random) -> list[tuple[float, float]]:
    rates = log_ar1(draw, 1.4e6, 0.6, 0.85, 6e6)
    outages = lapses(draw, 90, 2, 15)
    return [(t, 0.0 if out else rate) for t, rate, out in zip(range(600), rates, outages, strict=False)]


def lte_walking(draw: random.Random) -> list[int]:
    times = []
    for second, rate in zip(range(60), log_ar1(draw, 3e6, 0.5, 0.97, 37.5e6), strict=False):
        at = draw.expovariate(rate / (1504 * 8))
        while at < 1:
            times.append(round(1000 * (second + at)))
            at += draw.expovariate(rate / (1504 * 8))
    return times


def rounded(samples: list[tuple[float, float]]) -> list[tuple[float, int]]:
    """In kbit/s, and only where it changes."""
    kept: list[tuple[float, int]] = []
    for at, rate in samples:
        kbps = round(rate / 1000)
        if not kept or kept[-1][1] != kbps or at == samples[-1][0]:
            kept.append((at, kbps))
    return kept


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in (("lte-driving", lte_driving), ("wifi-lossy", wifi_lossy), ("hsdpa-bus", hsdpa_bus)):
        samples = rounded(model(random.Random(f"{SEED} {name}")))
        lines = [f"# {name}: drawn by scripts/make-traces.py, seed {SEED}; Apache-2.0", "time_s,rate_kbps"]
        lines += [f"{at:g},{kbps}" for at, kbps in samples]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    times = lte_walking(random.Random(f"{SEED} lte-walking"))
    (folder / "lte-walking.pps").write_text("\n".join(map(str, times)) + "\n")


if __name__ == "__main__":
    main()
