"""Results of a link, in a few figures for each direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from streamgauge.claims.dimension import DATA, RATE, TIME, plain, say
from streamgauge.link_command.capacity import bottleneck
from streamgauge.scenario.path.capacity import capacity_bits

__all__ = ["SCHEMA", "in_words", "summarise"]

SCHEMA = "streamgauge.link/1"
_DIRECTIONS = ("down", "up")
_COMMAND = 0
"""The flow's code."""
_DELIVERED, _CE_MARKED = 0, 4
_CAUSES = {1: "queue_full", 2: "random_loss", 3: "aqm", 4: "blocked", 5: "too_big"}
"""Codes of crates/plan's legend."""
_CAUSE_WORDS = {
    "queue_full": "queue full",
    "random_loss": "random loss",
    "aqm": "dropped by the AQM",
    "blocked": "blocked",
    "too_big": "too big",
}


def summarise(directory: Path, plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Figures of each direction, from the record's packets. Bytes and rates count Ethernet bytes (IP + 14).

    Throughput is the delivered data from the first packet's entry to the last one's exit, and utilisation the
    bottleneck's share of its capacity in that time. Delays are one way, from entering the path to leaving it.
    Keys with nothing behind them are null.
    """
    packets = pl.read_parquet(directory / "packets.parquet", hive_partitioning=False)
    packets = packets.filter(pl.col("flow") == _COMMAND)
    found, first = {}, 0
    for code, direction in enumerate(_DIRECTIONS):
        stages = plan["path"][direction]
        rows = packets.filter(pl.col("dir") == code)
        found[direction] = _direction(rows, stages, first)
        first += len(stages)
    return found


def _direction(rows: pl.DataFrame, stages: Sequence[Mapping[str, Any]], first: int) -> dict[str, Any]:
    entered = rows.filter(pl.col("stage") == first)
    left = rows.filter((pl.col("stage") == first + len(stages) - 1) & (pl.col("fate") == _DELIVERED))
    dropped = rows.filter(pl.col("cause") != 0)
    causes = {
        _CAUSES.get(cause, f"cause {cause}"): count
        for cause, count in dropped.group_by("cause").len().sort("cause").iter_rows()
    }
    made: dict[str, Any] = {
        "entered_packets": entered.height,
        "delivered_packets": left.height,
        "delivered_bytes": int(left["wire_bytes"].sum()),
        "dropped_packets": causes,
        "ce_marked_packets": rows.filter(pl.col("flags") & _CE_MARKED != 0)["pkt"].n_unique(),
        "active_s": None,
        "throughput_bps": None,
        "utilisation_percent": None,
        "delay_s": None,
        "queue": None,
    }
    if left.is_empty():
        return made
    begin, end = _integer(entered["t_in"].min()), _integer(left["t_out"].max())
    span_s = (end - begin) / 1e9
    if span_s > 0:
        made["active_s"] = span_s
        made["throughput_bps"] = 8 * made["delivered_bytes"] / span_s
    since = entered.group_by("pkt").agg(pl.col("t_in").min().alias("since"))
    delays = (
        left.join(since, on="pkt", how="inner").select((pl.col("t_out") - pl.col("since")) / 1e9).to_series()
    )
    made["delay_s"] = _percentiles(delays)
    slowest = bottleneck(stages)
    if slowest is not None:
        place, settings = slowest
        made |= _bottleneck(rows.filter(pl.col("stage") == first + place), settings, begin, end)
    return made


def _bottleneck(rows: pl.DataFrame, settings: Mapping[str, Any], begin: int, end: int) -> dict[str, Any]:
    sent = rows.filter(pl.col("fate") == _DELIVERED)
    if sent.is_empty():
        return {}
    size = "ip_bytes" if settings.get("layer") == "ip" else "wire_bytes"
    last = _integer(sent["t_out"].max())
    could = capacity_bits(settings["rate"], begin, min(last, end))
    waited = sent.select((pl.col("t_out") - pl.col("t_in")) / 1e9).to_series()
    return {
        "utilisation_percent": 100 * 8 * int(sent[size].sum()) / could if could else None,
        "queue": {"delay_s": _percentiles(waited), "max_bytes": _integer(rows["queue_bytes"].max())},
    }


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value


def _percentiles(values: pl.Series) -> dict[str, float]:
    return {
        name: float(values.quantile(share, "nearest") or 0.0)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }


def in_words(figures: Mapping[str, Mapping[str, Any]], validity: Mapping[str, Any]) -> list[str]:
    """Returns the summary for a person, a line each."""
    lines = []
    for direction, one in figures.items():
        if not one["entered_packets"]:
            lines.append(f"{direction:4}  no packet")
            continue
        parts = []
        if one["throughput_bps"] is not None:
            share = one["utilisation_percent"]
            used = f" ({share:.1f} % of the link)" if share is not None else ""
            parts.append(f"{say(one['throughput_bps'], RATE)}{used} over {say(one['active_s'], TIME)}")
        parts.append(f"{one['delivered_packets']} of {one['entered_packets']} packets delivered")
        parts += [f"{count} {_CAUSE_WORDS.get(why, why)}" for why, count in one["dropped_packets"].items()]
        if one["ce_marked_packets"]:
            parts.append(f"{one['ce_marked_packets']} ECN-marked")
        lines.append(f"{direction:4}  {', '.join(parts)}")
        if one["delay_s"] is not None:
            waits = f"one-way delay p50/p95/p99 {_milliseconds(one['delay_s'])} ms"
            if one["queue"] is not None:
                waits += f"; of it in the queue {_milliseconds(one['queue']['delay_s'])} ms"
                waits += f", at most {say(8.0 * one['queue']['max_bytes'], DATA)} waiting"
            lines.append(f"      {waits}")
    why = "; ".join(validity["why"])
    lines.append("valid" if validity["valid"] else f"INVALID: {why}")
    return lines


def _milliseconds(delays: Mapping[str, float]) -> str:
    return " / ".join(plain(1e3 * delays[name], 4) for name in ("p50", "p95", "p99"))
