"""Our link emulator beside the kernel's htb+bfifo and tbf, in one run, by the same stamps.

    python benches/link_peers.py [--rounds N] [--seconds S] [--way root|user] [--json FILE]

The disciplines are in a forwarding namespace in the emulator's place, offloads off, with a bucket of one full
frame. They shape only: there is no delay to compare, and a kernel need not have netem.
Each round measures all of them in turn, so that a machine that grows busier does so for all alike; medians
over the rounds are shown, and ours as a ratio of each peer's.

- rate error: of a saturated link at 1, 10 and 100 Mbit/s (1.25 times that offered, frames of 1514 B)
- spacing: how far the gap between two departures is from one transmission time, at 10 Mbit/s saturated
- dropped off: share of the packets dropped there, beyond the losses that rate and queue limit require
- held: most bytes in the queue at once, for a limit of 20,000 B, in frames of 600 B, at 1 Mbit/s
- transit: probes of 100 B on an empty link of 10 Mbit/s, less the bare wire's: 80 us for a link that sends
  bit by bit; a token bucket passes them at once, so this is no ratio of merit
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from streamgauge.calibrate import analyse
from streamgauge.calibrate.kernel import PEERS
from streamgauge.calibrate.passes import (
    FULL_FRAME,
    LIMIT_BYTES,
    LIMIT_FRAME,
    RATES,
    SMALL_FRAME,
    Pass,
    bottleneck,
)
from streamgauge.calibrate.rows import CalibrationResults
from streamgauge.calibrate.run import run_passes

OURS = "streamgauge"
SHAPERS = (OURS, *PEERS)


def queue_bytes(rate: int) -> int:
    """Room for 0.1 s: a sender that is kept from the processor leaves no hole."""
    return max(10 * FULL_FRAME, rate // 80)


def shaped(shaper: str, name: str, rate: int, limit: int, **load: Any) -> Pass:
    """Returns a pass through one shaper."""
    kernel = [] if shaper == OURS else PEERS[shaper](rate, limit)
    return Pass(
        name=f"{shaper}/{name}".replace("/", "~"),
        kernel=kernel,
        down=[bottleneck(rate, {"bytes": limit})],
        **load,
    )


def passes(round_: int, seconds: float) -> list[Pass]:
    """Returns every measurement of every shaper, once."""
    found = [
        Pass(name=f"{round_}~bare", down=[], bare=True, packets_per_s=200, frame=SMALL_FRAME, seconds=0.5)
    ]
    for shaper in SHAPERS:
        for rate in RATES:
            found.append(
                shaped(
                    shaper,
                    f"{round_}/rate-{rate}",
                    rate,
                    queue_bytes(rate),
                    frame=FULL_FRAME,
                    linger_s=0.3,
                    packets_per_s=1.25 * rate / 8 / FULL_FRAME,
                    seconds=seconds * (2 if rate == RATES[0] else 1),
                )
            )
        found.append(
            shaped(
                shaper,
                f"{round_}/limit",
                1_000_000,
                LIMIT_BYTES,
                frame=LIMIT_FRAME,
                packets_per_s=1e6,
                burst=100,
                seconds=0.0001,
                linger_s=0.4,
            )
        )
        found.append(
            shaped(
                shaper,
                f"{round_}/probe",
                10_000_000,
                60_000,
                frame=SMALL_FRAME,
                packets_per_s=150,
                seconds=seconds / 2,
            )
        )
    return found  # fmt: skip


def spacing_us(flight: analyse.Flight, rate: int) -> analyse.Array:
    """|gap - transmission time| between departures, once the queue has filled, us."""
    at = np.sort(flight.received[flight.arrived])
    gaps = np.diff(at[len(at) // 20 :])
    off: analyse.Array = np.abs(gaps - analyse.service_ns(flight.frame, rate)) / 1e3
    return off


def figures(measured: CalibrationResults, shaper: str, round_: int) -> dict[str, float]:
    """Returns one round's figures of one shaper."""

    def flight(name: str) -> analyse.Flight:
        return measured.flight(f"{shaper}~{round_}~{name}")

    found = {}
    for rate in RATES:
        bps, _, _ = analyse.saturated_rate(flight(f"rate-{rate}"), rate)
        found[f"rate error {rate // 10**6} Mbit/s, %"] = 100 * (bps / rate - 1)
    saturated = flight(f"rate-{RATES[1]}")
    p50, p99 = analyse.quantiles(spacing_us(saturated, RATES[1]), (0.5, 0.99))
    found |= {"spacing p50, us": p50, "spacing p99, us": p99}
    sent = saturated.sent[saturated.left]
    # Bytes that leave while the load lasts, and bytes in the queue when it ends.
    room = ((sent.max() - sent.min()) * RATES[1] / 8e9 + queue_bytes(RATES[1])) / FULL_FRAME
    dropped = 1 - saturated.arrived.sum() / len(sent)
    found["dropped off, % points"] = 100 * (dropped - (1 - room / len(sent)))
    found["held, B"] = float(analyse.most_held(flight("limit"))[0] * LIMIT_FRAME)
    wire = float(np.median(analyse.one_way_s(measured.flight(f"{round_}~bare"))))
    p50, p99 = analyse.quantiles((analyse.one_way_s(flight("probe")) - wire) * 1e6, (0.5, 0.99))
    return {**found, "transit p50, us": p50, "transit p99, us": p99}


def show(medians: dict[str, dict[str, float]]) -> None:
    print(
        f"\n{'':24}"
        + "".join(f"{shaper:>14}" for shaper in SHAPERS)
        + "".join(f"{'/ ' + p:>14}" for p in PEERS)
    )
    for name in medians[OURS]:
        line = f"{name:24}" + "".join(f"{medians[shaper][name]:14.5g}" for shaper in SHAPERS)
        for peer in PEERS:
            ours, theirs = abs(medians[OURS][name]), abs(medians[peer][name])
            ratio = ours / theirs if theirs else math.nan
            line += f"{ratio:14.3g}"
        print(line)
    print("last columns: the magnitude of ours over the peer's")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="of each saturated pass; twice that at 1 Mbit/s"
    )
    parser.add_argument("--way", choices=["root", "user"])
    parser.add_argument("--json", type=Path, help="also write every round's figures there")
    options = parser.parse_args()
    rounds: dict[str, dict[str, list[float]]] = {shaper: defaultdict(list) for shaper in SHAPERS}
    class_ = ""
    for round_ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            todo = passes(round_, options.seconds)
            done = run_passes(
                todo, folder=Path(folder), way=options.way, say=lambda words: print(words, file=sys.stderr)
            )
            class_ = done.class_["class"]
            measured = CalibrationResults(done.passes, done.results, Path(folder), done.is_fifo)
            for shaper in SHAPERS:
                for name, value in figures(measured, shaper, round_).items():
                    rounds[shaper][name].append(value)
        print(f"round {round_ + 1} of {options.rounds}", file=sys.stderr)
    medians = {
        shaper: {name: float(np.median(values)) for name, values in found.items()}
        for shaper, found in rounds.items()
    }
    print(f"medians of {options.rounds} rounds, {class_}, load average {os.getloadavg()[0]:.1f}")
    show(medians)
    if options.json:
        found = {"schema": "streamgauge.link-peers/1", "class": class_, "medians": medians, "rounds": rounds}
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
