"""The rows of a calibration, from the stamps of its passes, and their bounds.

Bounds are StreamGauge's own targets where the emulator has SCHED_FIFO, and those of a trial's validity
verdict where it has not: the normal class guarantees no microseconds. Statistics are compared with the
interval that an honest instrument leaves once in a thousand times. See docs/calibrate.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from streamgauge.calibrate import analyse, passes
from streamgauge.calibrate.analyse import Flight
from streamgauge.calibrate.check import CalibrationRow
from streamgauge.calibrate.passes import FULL_FRAME, SMALL_FRAME, Pass

US, MS = 1e6, 1e3

RATE_BOUND_PERCENT = 0.02
CEILING_TARGET = 40_000
CPU_TARGET_US = 3.6
OFFERED_SHARE = 0.97
"""A sender below this share of the configured packet rate is no measurement of that rate."""


@dataclass(frozen=True)
class RowLimits:
    """Bounds that depend on the scheduling class, us."""

    departure_p50: float
    departure_p99: float
    probe_p50: float
    probe_p99: float


FIFO = RowLimits(departure_p50=5, departure_p99=50, probe_p50=60, probe_p99=60)
NORMAL = RowLimits(departure_p50=500, departure_p99=500, probe_p50=500, probe_p99=500)


@dataclass(frozen=True)
class CalibrationResults:
    """Results of the passes."""

    passes: Mapping[str, Pass]
    results: Mapping[str, Mapping[str, Any]]
    folder: Path
    is_fifo: bool

    def flight(self, name: str) -> Flight:
        """Returns a pass's stamps, ns since its own t = 0."""
        table = pl.read_csv(self.folder / f"{name}.csv")
        t0 = self.results[name]["t0_monotonic_ns"]
        sent, received = ((table[column] - t0).cast(pl.Float64).to_numpy() for column in table.columns[1:3])
        return Flight(sent, received, self.passes[name].frame)

    def why_missing(self, name: str) -> str | None:
        """Returns why a pass has no usable result, if so."""
        result = self.results.get(name)
        if result is None:
            return "it was left out"
        failed = result.get("failed")
        return None if failed is None else str(failed)

    @property
    def limits(self) -> RowLimits:
        """Returns the bounds that hold here."""
        return FIFO if self.is_fifo else NORMAL


@dataclass(frozen=True)
class Calibrated:
    """Rows, and the distributions behind them."""

    rows: list[CalibrationRow]
    departure_errors_s: analyse.Array
    unshaped_s: analyse.Array


def rows(measured: CalibrationResults) -> Calibrated:
    """Returns every row that the passes give; none of a pass that was not asked for."""
    ran = measured.passes.keys()
    unshaped_s = errors_s = np.empty(0)
    found: list[CalibrationRow] = []
    for rate in passes.RATES:
        if f"rate-{rate // 10**6}M" in ran:
            found += _rate(measured, rate)
    if {"unshaped", "departures"} <= ran:
        unshaped_s = analyse.one_way_s(measured.flight("unshaped"))
        errors_s = analyse.departure_errors_s(measured.flight("departures"), 10e6, 0.020)
        wire_s = float(np.median(unshaped_s)) if len(unshaped_s) else math.nan
        found += _departures(measured, errors_s, wire_s)
    for milliseconds in passes.DELAYS_MS:
        if f"delay-{milliseconds}ms" in ran:
            found += _delays(measured, milliseconds)
    if "jitter-uniform" in ran:
        found += _jitter(measured, "uniform", _uniform)
    if "jitter-normal" in ran:
        found += _jitter(measured, "normal", _normal)
    if {"limit-packets", "limit-bytes"} <= ran:
        found += _limits(measured)
    if "loss-bernoulli" in ran:
        found += _bernoulli(measured)
    if "loss-gilbert" in ran:
        found += _gilbert(measured)
    if "rate-step" in ran:
        found += _step(measured)
    found += _order(measured)
    if any(name.startswith("ceiling") for name in ran):
        found += _ceiling(measured)
    return Calibrated(found, errors_s, unshaped_s)


def _skipped(measured: CalibrationResults, name: str, row: CalibrationRow) -> CalibrationRow | None:
    why = measured.why_missing(name)
    if why is None:
        return None
    return CalibrationRow(
        id=row.id, what=row.what, unit=row.unit, asked=row.asked, measured=None, bound=row.bound, skipped=why
    )


def _rate(measured: CalibrationResults, rate: int) -> Iterator[CalibrationRow]:
    name = f"rate-{rate // 10**6}M"
    bps, resolution, count = analyse.saturated_rate(measured.flight(name), rate)
    yield CalibrationRow(
        id=name,
        what=f"rate of a saturated link of {rate // 10**6} Mbit/s",
        unit="bit/s",
        asked=float(rate),
        measured=bps,
        bound=RATE_BOUND_PERCENT,
        relative=True,
        resolution=100 * resolution,
        n=count,
        details={"frame_bytes": FULL_FRAME, "seconds": measured.passes[name].seconds},
    )


def _departures(
    measured: CalibrationResults, errors_s: analyse.Array, wire_s: float
) -> Iterator[CalibrationRow]:
    p50, p99, p999 = (value * US for value in analyse.quantiles(errors_s, (0.5, 0.99, 0.999)))
    details = {"wire_us": wire_s * US, "raw_p50_us": p50, "raw_p99_us": p99, "raw_p999_us": p999}
    for name, value, bound in (
        ("p50", p50, measured.limits.departure_p50),
        ("p99", p99, measured.limits.departure_p99),
    ):
        yield CalibrationRow(
            id=f"departure-{name}",
            what=f"departure error at 10 Mbit/s, 20 ms, 1000 packets/s, {name}, less the unshaped median",
            unit="us",
            asked=0.0,
            measured=value - wire_s * US,
            bound=bound,
            n=len(errors_s),
            details=details,
        )


def _delays(measured: CalibrationResults, milliseconds: int) -> Iterator[CalibrationRow]:
    flight = measured.flight(f"delay-{milliseconds}ms")
    ideal_s = milliseconds / MS + analyse.service_ns(SMALL_FRAME, 10e6) / 1e9
    delays_s = analyse.one_way_s(flight)
    p50, p99 = analyse.quantiles(delays_s, (0.5, 0.99))
    for name, value, bound in (
        ("p50", p50, measured.limits.probe_p50),
        ("p99", p99, measured.limits.probe_p99),
    ):
        yield CalibrationRow(
            id=f"delay-{milliseconds}ms-{name}",
            what=f"one-way delay of probes of {SMALL_FRAME} B, empty path, 10 Mbit/s and {milliseconds} ms, "
            f"{name}",
            unit="ms",
            asked=ideal_s * MS,
            measured=value * MS,
            bound=bound / MS,
            n=len(delays_s),
        )


JITTER_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_NORMAL_QUANTILES = (-1.6448536, -0.6744898, 0.0, 0.6744898, 1.6448536)


def _uniform(share: float) -> tuple[float, float]:
    """(quantile, density there) of uniform jitter, s and 1/s."""
    return (2 * share - 1) * passes.JITTER_SPREAD_S, 0.5 / passes.JITTER_SPREAD_S


def _normal(share: float) -> tuple[float, float]:
    z = _NORMAL_QUANTILES[JITTER_SHARES.index(share)]
    deviation = passes.JITTER_DEVIATION_S
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / deviation
    return z * deviation, density


def _jitter(
    measured: CalibrationResults, name: str, distribution: Callable[[float], tuple[float, float]]
) -> Iterator[CalibrationRow]:
    asked = [(passes.JITTER_DELAY_S + distribution(share)[0]) for share in JITTER_SHARES]
    what = {
        "uniform": f"jitter, uniform between ± {passes.JITTER_SPREAD_S * MS:g} ms",
        "normal": f"jitter, normal with a deviation of {passes.JITTER_DEVIATION_S * MS:g} ms",
    }[name]
    row = CalibrationRow(
        id=f"jitter-{name}",
        what=f"{what}: the quantile that is farthest off",
        unit="ms",
        asked=asked[2] * MS,
        measured=None,
        bound=0.0,
    )
    skipped = _skipped(measured, f"jitter-{name}", row)
    if skipped is not None:
        yield skipped
        return
    delays_s = analyse.one_way_s(measured.flight(f"jitter-{name}"))
    seen = analyse.quantiles(delays_s, JITTER_SHARES)
    bounds = [
        analyse.quantile_bound(share, distribution(share)[1], len(delays_s)) + measured.limits.probe_p50 / US
        for share in JITTER_SHARES
    ]
    excess = [abs(a - b) / bound for a, b, bound in zip(seen, asked, bounds, strict=True)]
    # The quantile that uses up most of its own interval represents all.
    worst = max(range(len(excess)), key=lambda place: -1 if math.isnan(excess[place]) else excess[place])
    yield CalibrationRow(
        id=row.id,
        what=row.what,
        unit="ms",
        asked=asked[worst] * MS,
        measured=seen[worst] * MS,
        bound=bounds[worst] * MS,
        n=len(delays_s),
        details={
            "quantiles": {
                f"p{100 * share:02.0f}": {"asked_ms": a * MS, "measured_ms": b * MS, "bound_ms": c * MS}
                for share, a, b, c in zip(JITTER_SHARES, asked, seen, bounds, strict=True)
            },
        },
    )


def _limits(measured: CalibrationResults) -> Iterator[CalibrationRow]:
    held, gone = analyse.most_held(measured.flight("limit-packets"))
    yield CalibrationRow(
        id="limit-packets",
        what=f"drop-tail queue of {passes.LIMIT_PACKETS} packets: most held at once",
        unit="packets",
        asked=float(passes.LIMIT_PACKETS),
        measured=float(held),
        # A packet that leaves while the burst arrives makes room: seen from outside that may be one more.
        bound=float(min(gone, 1)),
        n=held,
    )
    held, gone = analyse.most_held(measured.flight("limit-bytes"))
    yield CalibrationRow(
        id="limit-bytes",
        what=f"drop-tail queue of {passes.LIMIT_BYTES} B: most held at once, in frames of "
        f"{passes.LIMIT_FRAME} B",
        unit="B",
        asked=float(passes.LIMIT_BYTES),
        measured=float(held * passes.LIMIT_FRAME),
        # Less than a frame may stay free.
        bound=(-float(passes.LIMIT_FRAME - 1), float(min(gone, 1) * passes.LIMIT_FRAME)),
        n=held,
    )


def _bernoulli(measured: CalibrationResults) -> Iterator[CalibrationRow]:
    sent, lost, bad, _ = analyse.loss_runs(measured.flight("loss-bernoulli"))
    mean = 1 / (1 - passes.LOSS)
    yield CalibrationRow(
        id="loss-bernoulli",
        what="Bernoulli loss: ratio",
        unit="%",
        asked=100 * passes.LOSS,
        measured=100 * lost / max(sent, 1),
        bound=100 * analyse.bernoulli_bound(passes.LOSS, sent),
        n=sent,
        details={"lost": lost},
    )
    yield CalibrationRow(
        id="loss-bernoulli-run",
        what="Bernoulli loss: mean run of lost packets",
        unit="packets",
        asked=mean,
        measured=float(np.mean(bad)) if bad else math.nan,
        bound=analyse.geometric_bound(mean, len(bad)),
        n=len(bad),
    )


def _gilbert(measured: CalibrationResults) -> Iterator[CalibrationRow]:
    good_mean, bad_mean = passes.GILBERT_GOOD, passes.GILBERT_BAD
    sent, lost, bad, good = analyse.loss_runs(measured.flight("loss-gilbert"))
    ratio = bad_mean / (good_mean + bad_mean)
    yield CalibrationRow(
        id="loss-gilbert",
        what="Gilbert loss: ratio",
        unit="%",
        asked=100 * ratio,
        measured=100 * lost / max(sent, 1),
        bound=100 * analyse.renewal_bound(good_mean, bad_mean, sent),
        n=sent,
        details={"lost": lost},
    )
    for name, mean, runs in (("bad", bad_mean, bad), ("good", good_mean, good)):
        yield CalibrationRow(
            id=f"loss-gilbert-{name}-run",
            what=f"Gilbert loss: mean run of {'lost' if name == 'bad' else 'delivered'} packets",
            unit="packets",
            asked=mean,
            measured=float(np.mean(runs)) if runs else math.nan,
            bound=analyse.geometric_bound(mean, len(runs)),
            n=len(runs),
        )


def _step(measured: CalibrationResults) -> Iterator[CalibrationRow]:
    flight = measured.flight("rate-step")
    at = analyse.step_time(flight, passes.STEP_BEFORE, passes.STEP_AFTER)
    yield CalibrationRow(
        id="rate-step",
        what=f"time of a step from {passes.STEP_BEFORE / 1e6:g} to {passes.STEP_AFTER / 1e6:g} Mbit/s",
        unit="ms",
        asked=1000.0,
        measured=at / 1e6,
        bound=measured.limits.probe_p99 / MS
        + analyse.service_ns(passes.STEP_FRAME, passes.STEP_BEFORE) / 1e6,
        n=int(flight.arrived.sum()),
    )


def _order(measured: CalibrationResults) -> Iterator[CalibrationRow]:
    names = [
        name
        for name, result in measured.results.items()
        if "failed" not in result and not name.startswith("ceiling")
    ]
    flights = [measured.flight(name) for name in names]
    yield CalibrationRow(
        id="order",
        what="packets that overtook another, over all passes",
        unit="packets",
        asked=0.0,
        measured=float(sum(analyse.out_of_order(flight) for flight in flights)),
        bound=0.0,
        n=sum(int(flight.arrived.sum()) for flight in flights),
    )


def _ceiling(measured: CalibrationResults) -> Iterator[CalibrationRow]:
    """Yields the largest packet rate without loss, and the cost of a packet there."""
    best, steps = None, []
    for name, result in measured.results.items():
        if not name.startswith("ceiling"):
            continue
        gauge = result["gauge"]
        asked = measured.passes[name].packets_per_s
        took_s = (gauge["last_sent_monotonic_ns"] - gauge["first_sent_monotonic_ns"]) / 1e9
        offered = gauge["sent"] / took_s if took_s > 0 else math.nan
        lost = gauge["sent"] - gauge["received"]
        steps.append(
            {
                "offered": round(offered),
                "lost": lost,
                "cpu_us": result["cpu_s"] * US / max(gauge["received"], 1),
                "instrument_lost": gauge["ring_drops"],
            }
        )
        if lost == 0 and offered >= OFFERED_SHARE * asked:
            best = (offered, steps[-1]["cpu_us"], gauge["received"])
    highest = max((one["offered"] for one in steps), default=None)
    details = {"steps": steps, "highest_offered": highest, "frame_bytes": FULL_FRAME}
    yield CalibrationRow(
        id="ceiling",
        what=f"highest packet rate without loss, one way, {FULL_FRAME} B",
        unit="packets/s",
        asked=float(CEILING_TARGET),
        measured=best[0] if best else 0.0,
        # The sender's own pace is not exact.
        bound=(-(1 - OFFERED_SHARE) * CEILING_TARGET, None),
        n=best[2] if best else 0,
        details=details,
    )
    yield CalibrationRow(
        id="cpu",
        what=f"CPU time of the emulator per packet of {FULL_FRAME} B at that rate",
        unit="us",
        asked=CPU_TARGET_US,
        measured=best[1] if best else math.nan,
        bound=(None, 0.0),
        n=best[2] if best else 0,
        details={"includes": "record writing"},
    )
