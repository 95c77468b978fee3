"""The account of every stage and flow, from the rows of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl


def balance(
    packets: pl.DataFrame, stages: Sequence[Mapping[str, str]], labels: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns the entered, departed, dropped (by cause) and remaining packets, per stage and flow that saw a
    packet.

    For a record without an account of its maker's own. Rows do not show where a copy or fragment was made:
    all count as having entered.

    Args:
        packets: the rows of one trial, codes as names.
        stages: each stage's `{"name", "direction"}`, by code.
        labels: each stage's name in `packets`, by code.

    Returns:
        Rows as in `trial.json`: packets, and Ethernet bytes, in order of stage and flow.
    """
    counts = packets.group_by("stage", "flow", "fate", "cause").agg(
        pl.len().alias("packets"), pl.col("wire_bytes").cast(pl.UInt64).sum().alias("bytes")
    )
    by_cell: dict[tuple[str, str], dict[str, Any]] = {}
    for stage, flow, fate, cause, number, size in counts.sort("stage", "flow", "cause").iter_rows():
        of = stages[labels.index(stage)]
        row = by_cell.setdefault((stage, flow), {
            "stage": of["name"], "direction": of["direction"], "flow": flow,
            "in_packets": 0, "in_bytes": 0, "made_packets": 0, "made_bytes": 0,
            "out_packets": 0, "out_bytes": 0,
            "dropped_packets": {}, "dropped_bytes": {}, "held_packets": 0, "held_bytes": 0,
        })  # fmt: skip
        row["in_packets"] += number
        row["in_bytes"] += size
        if fate == "dropped":
            row["dropped_packets"][cause] = number
            row["dropped_bytes"][cause] = size
        else:
            side = "out" if fate == "delivered" else "held"
            row[f"{side}_packets"] += number
            row[f"{side}_bytes"] += size
    return list(by_cell.values())
