"""Compares a plan's path with a record: the reported changes, and the fates of packets between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from streamgauge.claims.dimension import plain
from streamgauge.emu.conditions import stages
from streamgauge.emu.conditions.delays import delay
from streamgauge.emu.conditions.rows import CORRUPTED, Rows
from streamgauge.emu.conditions.timeline import changes


@dataclass
class Conditions:
    """The result."""

    faults: list[str] = field(default_factory=list)
    """A sentence each."""
    changes: int = 0
    """Changes of settings after time 0 that the plan has."""
    judged: dict[str, int] = field(default_factory=dict)
    """For each stage, in how many spans of its settings packets showed whether they were in force."""


def judge(
    plan: Mapping[str, Any], packets: pl.DataFrame, events: Iterable[Mapping[str, Any]], duration_ns: int
) -> Conditions:
    """Whether everything that the plan does to the path took effect.

    Args:
        plan: the trial's plan.
        packets: `packets.parquet` with its codes, one row a packet and stage.
        events: the path's events, each with `t_ns`, `name`, `value` and `reason` ("path.down.loss").
        duration_ns: how long the trial lasted, ns.

    Returns:
        The faults, and how much there was to judge by.
    """
    found = Conditions()
    reported = {
        (str(event["reason"]), str(event["name"]), int(event["t_ns"]), event["value"])
        for event in events
        if 0 < event["t_ns"] < duration_ns
    }
    at_all = {key[:3] for key in reported}
    code = 0
    for direction in ("down", "up"):
        copiers, damaged = 0, set[tuple[int, int, int]]()
        for stage in plan["path"][direction]:
            where = f"path.{direction}.{stage['name']}"
            (kind, settings), *_ = stage["kind"].items()
            if stage.get("changes"):
                settings = {**settings, "changes": stage["changes"]}
            missing = []
            for change in changes({kind: settings}, duration_ns):
                found.changes += 1
                key = (where, change.name, change.at)
                seen = key in at_all if change.value is None else (*key, change.value) in reported
                if not seen:
                    missing.append(
                        f"its {change.name} was to change at {plain(change.at / 1e9)} s and did not"
                    )
            rows = Rows.of(packets, code)
            code += 1
            faults: list[str]
            match kind:
                case "duplicate":
                    faults, judged = stages.duplicate(settings, rows, duration_ns, copiers)
                    copiers += 1
                case "corrupt":
                    faults, judged = stages.corrupt(settings, rows, duration_ns, damaged)
                    bad = rows.flags & CORRUPTED != 0
                    damaged |= {key for key, is_bad in zip(stages.keys(rows), bad, strict=True) if is_bad}
                case _:
                    faults, judged = _JUDGES[kind](settings, rows, duration_ns)
            found.faults += stages.first_faults(where, missing) + stages.first_faults(where, faults)
            found.judged[where] = judged
    return found


def judge_record(
    directory: Path, plan: Mapping[str, Any], events: Iterable[Mapping[str, Any]], duration_ns: int
) -> dict[str, Any]:
    """Runs `judge` on the emulator's files in `directory`, and returns plain data for a verdict."""
    path_events = [event for event in events if event["flow"] is None]
    packets = pl.read_parquet(directory / "packets.parquet")
    return asdict(judge(plan, packets, path_events, duration_ns))


_JUDGES = {
    "loss": stages.loss,
    "reorder": stages.reorder,
    "mtu": stages.mtu,
    "block": stages.block,
    "bottleneck": stages.bottleneck,
    "delay": delay,
}
