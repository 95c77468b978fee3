"""The record of a trial against the kernel's stamps at the two ends.

The emulator writes the record: packets that leave at other times than recorded show here alone. `conditions`
holds the record against the plan.

- arrivals: each packet's stamp at the receiving end's interface against its recorded departure;
- entries: each packet's stamp at the sending end's interface against its recorded arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from streamgauge.emu.path_pairs import codes, counted

DELIVERED = 0
"""Code of crates/plan's legend."""

COLUMNS = ("pkt", "copy", "flow", "dir", "stage", "t_in", "t_out", "fate")
STAMP = np.dtype([("stamp_ns", "<i8"), ("bytes", "<u4"), ("flow", "<u2"), ("sent", "<u2")])
"""A packet in a witness's file; see crates/engine/PROTOCOL.md."""
FEWEST = 20
"""Packets under which a percentile says nothing."""


def agreement(directory: Path, plan: Mapping[str, Any], t0_realtime_ns: int) -> dict[str, Any]:
    """Returns the result of the comparisons.

    Returns:
        ``{"arrivals": late, "entries": late}``, each ``{"p50_s", "p99_s", "packets"}`` of all flows and both
        directions together; no percentiles without packets.
    """
    rows = pl.read_parquet(directory / "packets.parquet", columns=list(COLUMNS))
    stamps = {
        file.stem.removeprefix("witness-"): np.fromfile(file, dtype=STAMP)
        for file in directory.glob("witness-*.stamps")
    }
    return {
        name: _ends(rows, plan, stamps, t0_realtime_ns, arrivals=name == "arrivals")
        for name in ("arrivals", "entries")
    }


def _ends(
    rows: pl.DataFrame,
    plan: Mapping[str, Any],
    stamps: Mapping[str, np.ndarray[Any, Any]],
    t0_realtime_ns: int,
    *,
    arrivals: bool,
) -> dict[str, Any]:
    """Stamps at the ends less the record's times, packet by packet: the n-th of a flow here is the n-th
    there. How many there are is for `expectation.witnesses` to compare."""
    late: list[np.ndarray[Any, Any]] = []
    counted_as = codes(plan)
    for code, flow in enumerate(counted(plan)):
        # A relay has a pair of addresses for each of its flows.
        places = [place for place, of in enumerate(counted_as) if of == code]
        sender = "cross" if flow.get("entry") == "router" else "server"
        for number, (way, source, sink) in enumerate((("down", sender, "client"), ("up", "client", sender))):
            seen = stamps.get(sink if arrivals else source)
            if seen is None:
                continue
            mine = seen[np.isin(seen["flow"], places) & (seen["sent"] == (0 if arrivals else 1))]
            at = mine["stamp_ns"] - t0_realtime_ns
            recorded = _times(rows, plan, code, number, way, at_router=sender == "cross", leaving=arrivals)
            # Nothing is recorded before the start, nor a packet that is sent past the end.
            at = at[at >= 0]
            count = min(len(at), len(recorded))
            late.append(at[:count] - recorded[:count])
    together = np.concatenate(late) if late else np.empty(0)
    result: dict[str, Any] = {"packets": len(together)}
    if len(together):
        p50, p99 = np.quantile(together, [0.5, 0.99]) / 1e9
        result |= {"p50_s": float(p50), "p99_s": float(p99)}
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
        # A source at the router enters at the bottleneck, at any place of the path.
        entry = 0
        if at_router and way == "down":
            entry = next((n for n, stage in enumerate(stages) if "bottleneck" in stage["kind"]), 0)
        came = mine.filter((pl.col("stage") == first + entry) & (pl.col("copy") == 0))
        # Fragments that the stage itself cut arrived as one packet.
        times = came.unique(["pkt", "t_in"]).sort("t_in")["t_in"]
    return times.to_numpy()
