"""Stamps as an ideal link would leave them, and a folder of them for every pass of a calibration."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from streamgauge.calibrate import passes
from streamgauge.calibrate.analyse import Flight
from streamgauge.calibrate.passes import Pass

NAN = float("nan")
T0 = 5_000_000_000
WIRE_NS = 2_000.0


def serial(
    sent: list[float], frame: int, steps: list[tuple[float, float]], limit: float = float("inf")
) -> list[float]:
    """Departures, ns, from a link of stepped rate (from when, ns; bit/s) that holds `limit` bytes."""
    out, free, inside = [], 0.0, list[float]()
    for at in sent:
        inside = [one for one in inside if one > at]
        if (len(inside) + 1) * frame > limit:
            out.append(NAN)
            continue
        free = max(free, at)
        bits = frame * 8.0
        while True:
            rate = [bps for since, bps in steps if since <= free][-1]
            ends = [since for since, _ in steps if since > free]
            end = ends[0] if ends else float("inf")
            if free + bits * 1e9 / rate <= end:
                free += bits * 1e9 / rate
                break
            bits -= (end - free) * rate / 1e9
            free = end
        inside.append(free)
        out.append(free)
    return out


def offered(one: Pass) -> list[float]:
    """When a pass's packets are sent, ns since its t = 0."""
    gap = 1e9 / one.packets_per_s
    # Within a burst, 1 us apart, as a sender's system call hands them over.
    return [
        one.after_s * 1e9 + (n // one.burst) * one.burst * gap + (n % one.burst) * 1e3
        for n in range(one.packets)
    ]


def ideal(one: Pass, seed: int = 1) -> Flight:
    """What a pass leaves where everything is as asked."""
    sent = offered(one)
    out, draw = list(sent), random.Random(seed)
    for stage in one.down:
        kind = stage["kind"]
        if "bottleneck" in kind:
            spec = kind["bottleneck"]
            rate, limit = spec["rate"], spec["queue"]["droptail"]
            steps = [(0.0, rate["constant"])] if "constant" in rate else rate["steps"]
            bytes_ = limit.get("bytes", limit.get("packets", 0) * one.frame)
            out = serial(out, one.frame, steps, bytes_)
        elif "loss" in kind:
            losses = _lost(kind["loss"]["model"], draw, len(out))
            out = [NAN if lost else at for at, lost in zip(out, losses, strict=True)]
        else:
            jitter = (kind["delay"].get("jitter") or {}).get("distribution", {})
            out = [at + kind["delay"]["delay"] + _jitter(jitter, draw) for at in out]
    return Flight(np.array(sent), np.array(out) + WIRE_NS, one.frame)


def _jitter(distribution: dict[str, Any], draw: random.Random) -> float:
    if "uniform" in distribution:
        spread = distribution["uniform"]["spread"]
        return draw.uniform(-spread, spread)
    if "normal" in distribution:
        return draw.gauss(0, distribution["normal"]["deviation"])
    return 0.0


def _lost(model: dict[str, Any], draw: random.Random, count: int) -> list[bool]:
    if "bernoulli" in model:
        return [draw.random() < model["bernoulli"]["probability"] for _ in range(count)]
    runs, bad = model["gilbert"], False
    found = []
    for _ in range(count):
        leave = 1 / (runs["bad_packets"] if bad else runs["good_packets"])
        bad ^= draw.random() < leave
        found.append(bad)
    return found


def write(flight: Flight, file: Path) -> None:
    """As the gauge leaves it."""

    def text(at: float) -> str:
        return "" if at != at else str(round(at) + T0)

    both = zip(flight.sent, flight.received, strict=True)
    lines = [f"{n},{text(s)},{text(r)}" for n, (s, r) in enumerate(both)]
    file.write_text("\n".join(["seq,sent_monotonic_ns,received_monotonic_ns", *lines, ""]))


def result(flight: Flight) -> dict[str, Any]:
    """What the worker reports of a pass."""
    sent, received = flight.left, flight.arrived
    return {
        "t0_monotonic_ns": T0,
        "gauge": {
            "sent": int(sent.sum()),
            "received": int(received.sum()),
            "first_sent_monotonic_ns": flight.sent[sent].min() + T0,
            "last_sent_monotonic_ns": flight.sent[sent].max() + T0,
            "ring_drops": 0,
        },
        "cpu_s": 3e-6 * int(received.sum()),
    }


def calibration(folder: Path, *, quick: bool = True) -> tuple[dict[str, Pass], dict[str, dict[str, Any]]]:
    """Every pass's stamps in `folder`, and what the worker would say."""
    todo = {one.name: one for one in passes.passes(quick=quick)}
    results = {}
    for number, (name, one) in enumerate(todo.items()):
        flight = ideal(one, seed=number)
        write(flight, folder / f"{name}.csv")
        results[name] = result(flight)
    return todo, results
