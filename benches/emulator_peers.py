"""Our link emulator beside the kernel's netem and tbf: the same traffic through each, by the same stamps.

    python benches/emulator_peers.py [--machine host|virtual[:SPEED]] [--seconds S] [--json FILE]

The kernel's disciplines are in a forwarding namespace in the emulator's place
(`streamgauge.calibrate.kernel`), offloads off. All have the same settings, which are in the column `ideal`.
Time in a virtual machine depends on instructions, so that other work of this machine changes no figure. A
host's kernel need not have netem and tbf.

- rate: of a saturated link (1.25 times that offered, frames of 1514 B), tbf with a bucket of one frame;
  gaps between departures, over one transmission time; share dropped, beyond the losses that rate and
  queue require
- delay: probes of 100 B, less the bare wire's median
- jitter: probes so far apart that the order does not matter; quantiles less those asked for
- loss: share, and mean lengths of runs of lost packets
- held: most in the queue at once, of 100 frames of 600 B that arrive at once, at 1 Mbit/s
- burst: 40 frames of 1514 B arrive at once on an idle link of 1 Mbit/s with a bucket of ten frames: the
  number that passes at once, and the distance of the others
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from streamgauge.calibrate import analyse
from streamgauge.calibrate.passes import (
    FULL_FRAME,
    GILBERT_BAD,
    GILBERT_GOOD,
    JITTER_DELAY_S,
    JITTER_SPREAD_S,
    LIMIT_BYTES,
    LIMIT_FRAME,
    LIMIT_PACKETS,
    LOSS,
    RATES,
    SMALL_FRAME,
    Pass,
    bottleneck,
    delay,
    loss,
)
from streamgauge.calibrate.rows import CalibrationResults
from streamgauge.calibrate.run import run_passes

OURS, NETEM, TBF = "streamgauge", "netem", "tbf"
ROOM = 100_000
"""Packets that netem may hold where its limit is not measured."""
BUCKET = 10 * FULL_FRAME
BURST = 40
AT_ONCE_NS = 2e6
"""A sixth of the 12.1 ms that a full frame takes at 1 Mbit/s."""
SLOW, FAST = 1_000_000, 10_000_000
Figures = dict[str, float]


def netem(words: str, limit: int = ROOM) -> list[str]:
    """Lines of ``tc -batch``."""
    return [f"qdisc add dev client root netem limit {limit} {words}"]


def tbf(rate: int, burst: int, limit: int) -> list[str]:
    """Lines of ``tc -batch``."""
    return [f"qdisc add dev client root tbf rate {rate}bit burst {burst} limit {limit}"]


@dataclass(frozen=True)
class Comparison:
    """One load through each shaper, and the values read from it."""

    name: str
    ours: list[dict[str, Any]]
    peers: Mapping[str, list[str]]
    load: Mapping[str, Any]
    ideal: Figures
    figures: Callable[[analyse.Flight, float], Figures]
    """Value of a flight, given the bare wire's median one way, s."""

    def label(self, shaper: str) -> str:
        """Returns the name of its pass through one, and of its file."""
        return f"{self.name}~{shaper}".replace("/", "p")

    def passes(self) -> list[Pass]:
        """Returns a pass a shaper."""
        return [
            Pass(name=self.label(shaper), down=self.ours, kernel=lines, **self.load)
            for shaper, lines in ((OURS, []), *self.peers.items())
        ]


def rate_of(rate: int, seconds: float) -> Comparison:
    """Returns a saturated link."""
    frames = max(10, round(rate / 80 / FULL_FRAME))  # 0.1 s of them
    room = frames * FULL_FRAME

    def figures(flight: analyse.Flight, _: float) -> Figures:
        bps, _resolution, _count = analyse.saturated_rate(flight, rate)
        at = np.sort(flight.received[flight.arrived])
        gaps = np.diff(at[len(at) // 20 :]) / analyse.service_ns(FULL_FRAME, rate)
        sent = flight.sent[flight.left]
        passed = ((sent.max() - sent.min()) * rate / 8e9 + room) / FULL_FRAME
        dropped = (1 - flight.arrived.sum() / len(sent)) - (1 - passed / len(sent))
        low, high = analyse.quantiles(gaps, (0.01, 0.99))
        return {
            "rate error, %": 100 * (bps / rate - 1),
            "gap p1": low,
            "gap p99": high,
            "dropped off, % points": 100 * dropped,
        }

    return Comparison(
        f"rate {rate // 10**6} Mbit/s",
        [bottleneck(rate, {"bytes": room})],
        {NETEM: netem(f"rate {rate}bit", frames), TBF: tbf(rate, 1600, room)},
        {
            "packets_per_s": 1.25 * rate / 8 / FULL_FRAME,
            "frame": FULL_FRAME,
            "seconds": seconds,
            "linger_s": 0.3,
        },
        {"rate error, %": 0, "gap p1": 1, "gap p99": 1, "dropped off, % points": 0},
        figures,
    )


def delay_of(milliseconds: int, seconds: float) -> Comparison:
    """Returns a constant delay on an unlimited link."""

    def figures(flight: analyse.Flight, wire_s: float) -> Figures:
        error = (analyse.one_way_s(flight) - wire_s - milliseconds / 1e3) * 1e6
        p1, p50, p99 = analyse.quantiles(error, (0.01, 0.5, 0.99))
        return {"error p1, us": p1, "error p50, us": p50, "error p99, us": p99}

    return Comparison(
        f"delay {milliseconds} ms",
        [delay(milliseconds / 1e3)],
        {NETEM: netem(f"delay {milliseconds}ms")},
        {"packets_per_s": 500, "frame": SMALL_FRAME, "seconds": seconds},
        {"error p1, us": 0, "error p50, us": 0, "error p99, us": 0},
        figures,
    )


def jitter_of(seconds: float) -> Comparison:
    """Uniform jitter."""
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)

    def figures(flight: analyse.Flight, wire_s: float) -> Figures:
        extra = analyse.one_way_s(flight) - wire_s - JITTER_DELAY_S
        found = analyse.quantiles(extra, shares)
        expected = [JITTER_SPREAD_S * (2 * share - 1) for share in shares]
        return {
            f"p{100 * share:g} off, us": 1e6 * (value - ideal)
            for share, value, ideal in zip(shares, found, expected, strict=True)
        }

    return Comparison(
        f"jitter +-{1e3 * JITTER_SPREAD_S:g} ms",
        [delay(JITTER_DELAY_S, {"uniform": {"spread": round(JITTER_SPREAD_S * 1e9)}})],
        {NETEM: netem(f"delay {1e3 * JITTER_DELAY_S:g}ms {1e6 * JITTER_SPREAD_S:g}us")},
        {"packets_per_s": 240, "frame": SMALL_FRAME, "seconds": 2 * seconds},
        {f"p{100 * share:g} off, us": 0 for share in shares},
        figures,
    )


def loss_of(name: str, model: dict[str, Any], words: str, share: float, run: float, s: float) -> Comparison:
    """Random loss."""

    def figures(flight: analyse.Flight, _: float) -> Figures:
        sent, lost, bad, _good = analyse.loss_runs(flight)
        return {"lost, %": 100 * lost / sent, "mean run": float(np.mean(bad)) if bad else 0.0}

    return Comparison(
        name,
        [loss(model)],
        {NETEM: netem(words)},
        {"packets_per_s": 5000, "frame": SMALL_FRAME, "seconds": s, "stamp_sent": False},
        {"lost, %": 100 * share, "mean run": run},
        figures,
    )


def held_of(what: str) -> Comparison:
    """Returns how much a queue holds."""
    limit = LIMIT_BYTES // LIMIT_FRAME if what == "bytes" else LIMIT_PACKETS
    peers = (
        {TBF: tbf(SLOW, 1600, LIMIT_BYTES)}
        if what == "bytes"
        else {NETEM: netem(f"rate {SLOW}bit", LIMIT_PACKETS)}
    )

    def figures(flight: analyse.Flight, _: float) -> Figures:
        held, left = analyse.most_held(flight)
        return {"held, packets": held, "arrived": float(flight.arrived.sum()), "left at once": left}

    return Comparison(
        f"limit {LIMIT_BYTES} B" if what == "bytes" else f"limit {LIMIT_PACKETS} packets",
        [bottleneck(SLOW, {what: LIMIT_BYTES if what == "bytes" else LIMIT_PACKETS})],
        peers,
        {
            "packets_per_s": 1e6,
            "burst": 100,
            "frame": LIMIT_FRAME,
            "seconds": 0.0001,
            "linger_s": 0.6,
        },
        {"held, packets": limit, "arrived": limit, "left at once": 0},
        figures,
    )


def burst_of() -> Comparison:
    """Returns the burst that a token bucket lets past at once."""
    room = BURST * FULL_FRAME
    stage = bottleneck(SLOW, {"bytes": room})
    stage["kind"]["bottleneck"]["shaper"] = {"token_bucket": {"burst": BUCKET}}

    def figures(flight: analyse.Flight, _: float) -> Figures:
        at = np.sort(flight.received[flight.arrived])
        gaps = np.diff(at)
        first = int(np.argmax(gaps > AT_ONCE_NS)) + 1 if (gaps > AT_ONCE_NS).any() else len(at)
        rest = gaps[first - 1 :] / analyse.service_ns(FULL_FRAME, SLOW)
        return {
            "at once, packets": first,
            "first gap": float(rest[0]) if len(rest) else float("nan"),
            "further gaps, mean": float(rest[1:].mean()) if len(rest) > 1 else float("nan"),
        }

    return Comparison(
        "bucket of 10 frames",
        [stage],
        {TBF: tbf(SLOW, BUCKET, room)},
        {
            "packets_per_s": 1e6,
            "burst": BURST,
            "frame": FULL_FRAME,
            "seconds": BURST / 1e6,
            # The bucket is full, and the last has 30 transmission times to wait.
            "after_s": 0.3,
            "linger_s": 0.6,
        },
        {"at once, packets": BUCKET // FULL_FRAME, "first gap": 1, "further gaps, mean": 1},
        figures,
    )


def comparisons(seconds: float, rates: tuple[int, ...]) -> list[Comparison]:
    """Returns all of them."""
    gilbert = {"gilbert": {"good_packets": GILBERT_GOOD, "bad_packets": GILBERT_BAD}}
    words = f"loss gemodel {100 / GILBERT_GOOD:.6f}% {100 / GILBERT_BAD:g}%"
    bad = GILBERT_BAD / (GILBERT_GOOD + GILBERT_BAD)
    bernoulli = {"bernoulli": {"probability": LOSS}}
    return [
        *(rate_of(rate, seconds * (2 if rate == SLOW else 1)) for rate in rates),
        delay_of(20, seconds),
        delay_of(1, seconds),
        jitter_of(seconds),
        loss_of("independent loss", bernoulli, f"loss {100 * LOSS:g}%", LOSS, 1 / (1 - LOSS), seconds),
        loss_of("Gilbert's loss", gilbert, words, bad, GILBERT_BAD, seconds),
        held_of("bytes"),
        held_of("packets"),
        burst_of(),
    ]


def show(measured: Mapping[str, Mapping[str, Figures]]) -> None:
    """The table."""
    columns = ("ideal", OURS, NETEM, TBF)
    print(f"{'':26}{'':24}" + "".join(f"{column:>13}" for column in columns))
    for name, by in measured.items():
        for nth, figure in enumerate(by["ideal"]):
            cells = [f"{by[column][figure]:.5g}" if column in by else "" for column in columns]
            print(f"{name if nth == 0 else '':26}{figure:24}" + "".join(f"{cell:>13}" for cell in cells))


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machine", default="virtual", help="host, virtual, virtual:2 or virtual:4")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load, roughly")
    parser.add_argument("--only", help="comparisons whose names begin so")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    options = parser.parse_args()
    way = None if options.machine == "host" else options.machine
    rates = RATES if way is None or way[-2:] in (":2", ":4") else tuple(one for one in RATES if one <= FAST)
    wanted = [
        one
        for one in comparisons(options.seconds, rates)
        if options.only is None or one.name.startswith(options.only)
    ]
    wire = Pass(name="bare", down=[], bare=True, packets_per_s=500, frame=SMALL_FRAME, seconds=0.5)
    with tempfile.TemporaryDirectory() as folder:
        todo = [wire, *(one for comparison in wanted for one in comparison.passes())]
        done = run_passes(todo, folder=Path(folder), way=way, say=lambda words: print(words, file=sys.stderr))
        results = CalibrationResults(done.passes, done.results, Path(folder), done.is_fifo)
        wire_s = float(np.median(analyse.one_way_s(results.flight("bare"))))
        measured: dict[str, dict[str, Figures]] = {}
        for one in wanted:
            measured[one.name] = {"ideal": one.ideal} | {
                shaper: one.figures(results.flight(one.label(shaper)), wire_s)
                for shaper in (OURS, *one.peers)
            }
    print(f"on {options.machine}, {done.class_['class']}; {done.took_s:.0f} s, load {os.getloadavg()[0]:.1f}")
    print(f"the bare wire takes {1e6 * wire_s:.1f} us; gaps are over one transmission time")
    show(measured)
    if options.json:
        found = {"schema": "streamgauge.emulator-peers/1", "machine": options.machine, "figures": measured}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
