"""Writes a record's flows as qlog 0.3 in JSON text sequences, which qvis opens.

The main schema is draft-ietf-quic-qlog-main-schema-02. A file has one trace, so each flow has a file. The
graph of congestion in qvis spans the times of `transport:packet_sent`, so packets are written, too.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from streamgauge.record import Record
from streamgauge.record.schema import PACKETS

__all__ = ["FOLDER", "write_qlogs"]

FOLDER: Final = "qlog"
"""Below a trial's folder."""
_SEPARATOR: Final = "\x1e"
"""Begins each text of a sequence (RFC 7464)."""
_NS: Final = 1e6
"""Times are ms."""
_METRICS: Final[Mapping[str, tuple[str, float]]] = {
    "tcp_cwnd": ("congestion_window", 1.0),
    "tcp_in_flight": ("bytes_in_flight", 1.0),
    "tcp_ssthresh": ("ssthresh", 1.0),
    "tcp_srtt": ("smoothed_rtt", 1e3),
    "cwnd": ("congestion_window", 1.0),
    "srtt": ("smoothed_rtt", 1e3),
    "pacing_rate": ("pacing_rate", 1.0),
}
"""Samples of a flow's congestion control: qlog's name, and its units in one of ours."""
_WHOLE: Final = ("congestion_window", "bytes_in_flight", "ssthresh", "pacing_rate")
_CHANGES: Final = ("rate", "delay", "loss", "queue", "blocked", "corrupt", "duplicate", "measured_rate")
"""Changes of the path, which are the path's own events."""


def write_qlogs(directory: Path) -> list[Path]:
    """Writes a file for each flow of a record, and returns them.

    Raises:
        RecordError: if the record has no events.
        OSError: if a file cannot be written.
    """
    record = Record.open(directory)
    events = list(record.events.iter_rows(named=True))
    written = []
    for flow in record.trial["flows"]:
        name = str(flow["name"])
        lines = heapq.merge(_events(events, name), *_packets(record, name), key=lambda event: event["time"])
        file = directory / FOLDER / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}.sqlog"
        file.parent.mkdir(exist_ok=True)
        with file.open("w", encoding="utf-8") as to:
            for line in (_header(record, name), *lines):
                to.write(f"{_SEPARATOR}{json.dumps(line, allow_nan=False)}\n")
        written.append(file)
    return written


def _header(record: Record, flow: str) -> dict[str, Any]:
    trial = record.trial
    scenario = trial.get("scenario") or {}
    name = scenario.get("id", "") if isinstance(scenario, Mapping) else scenario
    return {
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "title": f"{name} {trial['mode']} seed {trial['seed']}: {flow}",
        "trace": {
            "title": flow,
            "vantage_point": {"name": f"streamgauge {flow}", "type": "server"},
            "common_fields": {
                "time_format": "relative",
                "reference_time": 0,
                "ODCID": trial["digest"].removeprefix("blake3:")[:16],
                "protocol_type": ["TCP"],
            },
        },
    }


def _packets(record: Record, flow: str) -> Iterator[Iterator[dict[str, Any]]]:
    """The packets of the flow's end that sends most payload: when they entered the path, and when some were
    dropped. None without the rows of packets."""
    if PACKETS not in record.trial["kept"]:
        return
    own = record.packets.filter((pl.col("flow") == flow) & (pl.col("copy") == 0))
    sums = own.group_by("dir").agg(pl.col("payload_bytes").cast(pl.UInt64).sum()).sort("payload_bytes", "dir")
    if sums.is_empty():
        return
    sent = (
        own.filter(pl.col("dir") == sums["dir"][-1])
        .group_by("pkt")
        .agg(pl.col("t_in").min(), pl.col("t_drop").max(), pl.col("ip_bytes").max())
        .sort("t_in", "pkt")
        .with_row_index("number")
    )
    yield (_packet("transport:packet_sent", *row) for row in sent.select("t_in", "number", "ip_bytes").rows())
    dropped = sent.filter(pl.col("t_drop").is_not_null()).sort("t_drop", "number")
    yield (
        _packet("recovery:packet_lost", *row) for row in dropped.select("t_drop", "number", "ip_bytes").rows()
    )


def _packet(event: str, at_ns: int, number: int, size: int) -> dict[str, Any]:
    header = {"packet_type": "unknown", "packet_number": number}
    return {"time": at_ns / _NS, "name": event, "data": {"header": header, "raw": {"length": size}}}


def _events(events: list[dict[str, Any]], flow: str) -> Iterator[dict[str, Any]]:
    """The flow's samples, those of one time together, and each change of the path."""
    held: dict[str, Any] = {}
    held_ns = 0
    for event in events:
        if held and event["time"] != held_ns:
            yield _metrics(held_ns, held)
            held = {}
        name, value = event["name"], event["value"]
        if event["flow"] == flow and name in _METRICS and value is not None:
            key, scale = _METRICS[name]
            held[key] = round(value * scale) if key in _WHOLE else value * scale
            held_ns = event["time"]
        elif event["flow"] is None and name in _CHANGES:
            place = f" at {event['reason']}" if event["reason"] else ""
            said = "off" if value is None else f"{value:.15g} {event['unit']}"
            data = {"type": name, "message": f"{name} {said}{place}"}
            yield {"time": event["time"] / _NS, "name": "simulation:marker", "data": data}
    if held:
        yield _metrics(held_ns, held)


def _metrics(at_ns: int, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"time": at_ns / _NS, "name": "recovery:metrics_updated", "data": dict(values)}
