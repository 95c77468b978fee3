"""The record of a trial against its plan, and against the kernel's stamps at the two ends.

The emulator writes the record, and the pre-flight is over when the trial begins: a rate or a delay that
goes wrong later, or packets that leave at other times than recorded, show here alone. Three comparisons,
none of which asks the emulator:

- arithmetic: each stage's times and sizes in the record against what the plan's stage makes of them;
- arrivals: each packet's stamp at the receiving end's interface against its recorded departure;
- entries: each packet's stamp at the sending end's interface against its recorded arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

DELIVERED, DROPPED = 0, 1
QUEUE_FULL = 1
"""Codes of crates/record's legend."""

DIRECTIONS = ("down", "up")
COLUMNS = (
    "pkt", "copy", "flow", "dir", "stage", "t_in", "t_out", "fate", "cause", "wire_bytes", "ip_bytes",
    "queue_bytes", "queue_packets",
)  # fmt: skip
STAMP = np.dtype([("stamp_ns", "<i8"), ("bytes", "<u4"), ("flow", "<u2"), ("sent", "<u2")])
"""A packet in a witness's file; see crates/engine/PROTOCOL.md."""
FEWEST = 20
"""Packets under which a percentile says nothing."""


def stamps_file(directory: Path, end: str) -> Path:
    """Where the witness at `end` leaves its stamps."""
    return directory / f"witness-{end}.stamps"


def agreement(directory: Path, plan: Mapping[str, Any], t0_realtime_ns: int) -> dict[str, Any]:
    """What the comparisons found.

    Returns:
        ``{"rates": {stage: {"asked_bps", "measured_bps", "packets"}}, "delays": {stage: {"off_s",
        "packets"}}, "limits": {stage: {"over", "refused_early"}}, "arrivals": late, "entries": late}``.
        `off_s` is the largest difference of any packet's delay from the plan's; `over` counts packets taken
        in by a queue that was full, `refused_early` those refused by one that was not; each `late` is
        ``{"p01_s", "p50_s", "p99_s", "packets", "unmatched"}``, all flows and both directions together.
    """
    rows = pl.read_parquet(directory / "packets.parquet", columns=list(COLUMNS))
    found: dict[str, Any] = {"rates": {}, "delays": {}, "limits": {}}
    code = 0
    for direction in DIRECTIONS:
        for stage in plan["path"][direction]:
            mine = rows.filter(pl.col("stage") == code)
            _stage(found, f"{direction}.{stage['name']}", stage["kind"], mine)
            code += 1
    stamps = {
        file.stem.removeprefix("witness-"): np.fromfile(file, dtype=STAMP)
        for file in directory.glob("witness-*.stamps")
    }
    found["arrivals"] = _ends(rows, plan, stamps, t0_realtime_ns, arrivals=True)
    found["entries"] = _ends(rows, plan, stamps, t0_realtime_ns, arrivals=False)
    return found


def _stage(found: dict[str, Any], name: str, kind: Mapping[str, Any], rows: pl.DataFrame) -> None:
    if "bottleneck" in kind:
        spec = kind["bottleneck"]
        if spec.get("shaper", "serial") == "serial":
            rate = _rate(spec, rows)
            limit = _limit(spec, rows)
            if rate is not None:
                found["rates"][name] = rate
            if limit is not None:
                found["limits"][name] = limit
    elif "delay" in kind:
        delay = _delay(kind["delay"], rows)
        if delay is not None:
            found["delays"][name] = delay


def counted(spec: Mapping[str, Any]) -> pl.Expr:
    """What a bottleneck counts of a packet, bytes."""
    return pl.col("ip_bytes" if spec.get("layer") == "ip" else "wire_bytes")


def rate_steps(rate: Mapping[str, Any], until_ns: int) -> list[tuple[int, int]]:
    """A rate as (from when on, ns; bit/s); empty for one that is not piecewise constant."""
    if "constant" in rate:
        return [(0, int(rate["constant"]))]
    if "steps" in rate:
        steps = sorted((int(at), int(bps)) for at, bps in rate["steps"])
        return [(0, steps[0][1]), *steps[1:]] if steps else []
    if "square" in rate:
        half = int(rate["square"]["period"]) // 2
        both = int(rate["square"]["first"]), int(rate["square"]["second"])
        return [(n * half, both[n % 2]) for n in range(until_ns // half + 1)] if half else []
    return []


def _rate(spec: Mapping[str, Any], rows: pl.DataFrame) -> dict[str, Any] | None:
    """A serial link sends a packet from when it arrives, or the one before is through, for as long as its
    bits take. Packets that a change of the rate falls into are left out."""
    sent = rows.filter(pl.col("fate") == DELIVERED).sort("t_out").with_columns(bytes=counted(spec))
    if sent.height < FEWEST:
        return None
    t_in, t_out = sent["t_in"].to_numpy(), sent["t_out"].to_numpy()
    octets = sent["bytes"].to_numpy().astype(np.float64)
    steps = rate_steps(spec["rate"], int(t_out[-1]))
    if not steps:
        return None
    begun = np.maximum(t_in, np.concatenate([[0], t_out[:-1]]))
    edges = np.array([at for at, _ in steps])
    interval = np.searchsorted(edges, begun, side="right") - 1
    whole = interval == np.searchsorted(edges, t_out, side="left") - 1
    if whole.sum() < FEWEST:
        return None
    asked = np.array([bps for _, bps in steps], dtype=np.float64)[interval][whole]
    ideal_s = (8 * octets[whole] / asked).sum()
    took_s = (t_out - begun)[whole].sum() / 1e9
    if took_s <= 0:
        return None
    # Weighted by what each rate was asked to send: one number for a rate of many steps.
    mean_bps = 8 * octets[whole].sum() / ideal_s
    return {
        "asked_bps": float(mean_bps),
        "measured_bps": float(mean_bps * ideal_s / took_s),
        "packets": int(whole.sum()),
    }


def _limit(spec: Mapping[str, Any], rows: pl.DataFrame) -> dict[str, Any] | None:
    """A drop-tail queue takes what fits, the packet being sent included, and refuses what does not."""
    limit = spec["queue"].get("droptail")
    if limit is None or not ({"bytes", "packets"} & limit.keys()) or not rows.height:
        return None
    if "bytes" in limit:
        fits = pl.col("queue_bytes").cast(pl.Int64) + counted(spec).cast(pl.Int64) <= limit["bytes"]
    else:
        fits = pl.col("queue_packets") < limit["packets"]
    refused = (pl.col("fate") == DROPPED) & (pl.col("cause") == QUEUE_FULL)
    counts = rows.select(over=(~fits & ~refused).sum(), refused_early=(fits & refused).sum())
    return {name: int(counts[name][0]) for name in counts.columns}


def _delay(spec: Mapping[str, Any], rows: pl.DataFrame) -> dict[str, Any] | None:
    if spec.get("jitter") or spec.get("flows"):
        return None
    # A change of the delay moves packets already inside in the model's own way: compare before the first.
    first = min((int(at) for at, _ in spec.get("steps") or ()), default=None)
    mine = rows.filter(pl.col("fate") == DELIVERED)
    if first is not None:
        mine = mine.filter(pl.col("t_out") < first)
    if not mine.height:
        return None
    off = (mine["t_out"] - mine["t_in"] - int(spec["delay"])).to_numpy()
    return {"off_s": float(np.abs(off).max() / 1e9), "packets": mine.height}


def _ends(
    rows: pl.DataFrame,
    plan: Mapping[str, Any],
    stamps: Mapping[str, np.ndarray[Any, Any]],
    t0_realtime_ns: int,
    *,
    arrivals: bool,
) -> dict[str, Any]:
    """Stamps at the ends less the record's times, packet by packet: the n-th of a flow here is the n-th
    there."""
    late: list[np.ndarray[Any, Any]] = []
    unmatched = 0
    for code, flow in enumerate(plan["flows"]):
        sender = "cross" if flow.get("entry") == "router" else "server"
        for number, (way, source, sink) in enumerate((("down", sender, "client"), ("up", "client", sender))):
            seen = stamps.get(sink if arrivals else source)
            if seen is None:
                continue
            mine = seen[(seen["flow"] == code) & (seen["sent"] == (0 if arrivals else 1))]
            at = mine["stamp_ns"] - t0_realtime_ns
            recorded = _times(rows, plan, code, number, way, at_router=sender == "cross", leaving=arrivals)
            # Before the start nothing is recorded, nor what is sent past the end.
            at = at[at >= 0]
            count = min(len(at), len(recorded))
            unmatched += abs(len(at) - len(recorded)) if arrivals else max(0, len(recorded) - len(at))
            late.append(at[:count] - recorded[:count])
    together = np.concatenate(late) if late else np.empty(0)
    result: dict[str, Any] = {"packets": len(together), "unmatched": int(unmatched)}
    if len(together):
        quantiles = np.quantile(together, [0.01, 0.5, 0.99]) / 1e9
        result |= dict(zip(("p01_s", "p50_s", "p99_s"), map(float, quantiles), strict=True))
    return result


def _times(
    rows: pl.DataFrame,
    plan: Mapping[str, Any],
    flow: int,
    number: int,
    way: str,
    *,
    at_router: bool,
    leaving: bool,
) -> np.ndarray[Any, Any]:
    """When a flow's packets left the path or entered it, ns since the trial's start, in that order."""
    stages = plan["path"][way]
    first = 0 if way == "down" else len(plan["path"]["down"])
    mine = rows.filter((pl.col("flow") == flow) & (pl.col("dir") == number))
    if leaving:
        last = (pl.col("stage") == first + len(stages) - 1) & (pl.col("fate") == DELIVERED)
        times = mine.filter(last).sort("t_out")["t_out"]
    else:
        # A source at the router enters at the bottleneck, wherever that stands in the path.
        entry = 0
        if at_router and way == "down":
            entry = next((n for n, stage in enumerate(stages) if "bottleneck" in stage["kind"]), 0)
        came = mine.filter((pl.col("stage") == first + entry) & (pl.col("copy") == 0))
        # Fragments that the stage itself cut came as one packet.
        times = came.unique(["pkt", "t_in"]).sort("t_in")["t_in"]
    return times.to_numpy()
