"""qlog beside packets: series of an endpoint on the captures' clock, each of a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamgauge.errors import CaptureFileError
from streamgauge.qlog import Qlog, read_qlog

__all__ = ["beside_packets", "qlog_events"]

_FAR_S: Final = 3600.0
"""A log whose times are further from the capture's is of another day."""
Row = Mapping[str, Any]


def beside_packets(files: Sequence[Path], flows: Sequence[Row], zero_s: float) -> list[dict[str, Any]]:
    """The traces of these files, times in s since the first capture's first packet.

    Raises:
        CaptureFileError: if a file is no qlog, or no flow can be its.
    """
    return [_row(file, trace, flows, zero_s) for file in files for trace in read_qlog(file)]


def _row(file: Path, trace: Qlog, flows: Sequence[Row], zero_s: float) -> dict[str, Any]:
    quic = [flow for flow in flows if flow["protocol"] == "quic"] or list(flows[:1])
    if len(quic) != 1:
        raise CaptureFileError(f"{file}: {len(quic)} flows may be its; choose one with --flow TEXT.")
    flow = quic[0]
    # Without a date the log begins with its flow.
    shift_s, clock = flow["start_s"], "first packet"
    if trace.epoch_s is not None:
        times = [points[0][0] for _, points in trace.series.values() if points]
        begins_s = trace.epoch_s + min(times, default=0.0)
        if abs(begins_s - zero_s) > _FAR_S:
            raise CaptureFileError(
                f"{file}: its events are hours from the capture; name the log of this capture."
            )
        shift_s, clock = trace.epoch_s - zero_s, "clock"
    return {
        "file": str(file),
        "title": trace.title,
        "vantage": trace.vantage,
        "flow": flow["flow"],
        "placed_by": clock,
        "events": dict(trace.events),
        "series": {
            key: {"unit": unit, "points": [[at + shift_s, value] for at, value in points]}
            for key, (unit, points) in trace.series.items()
        },
        "lost_s": [at + shift_s for at in trace.lost_s],
        "markers": [[at + shift_s, said] for at, said in trace.markers],
        "skipped": trace.skipped,
    }


def qlog_events(rows: Sequence[Row]) -> Iterator[tuple[float, str, str, float, str, str]]:
    """For a record: time, flow, name, value, unit and reason."""
    for row in rows:
        reason = f"{row['vantage']}, placed by its {row['placed_by']}"
        for key, series in row["series"].items():
            for at_s, value in series["points"]:
                yield at_s, row["flow"], f"qlog_{key}", value, series["unit"], reason
        for at_s in row["lost_s"]:
            yield at_s, row["flow"], "qlog_packet_lost", 1.0, "packets", reason
