"""The columns of a record's tables, with their types, units and meanings.

`scripts/reference.py` writes the tables of docs/records.md from them, and a test compares them with files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.record.schema import EVENTS, METRICS_FILE, PACKETS


@dataclass(frozen=True)
class RecordColumn:
    """A column as polars reads it. `unit` is empty for numbers without one, and `code` for a code."""

    name: str
    type: str
    unit: str
    meaning: str


_PACKETS: Sequence[RecordColumn] = (
    RecordColumn("pkt", "UInt64", "", "The packet. Fragments of one datagram share it."),
    RecordColumn("copy", "UInt8", "", "0 for the original, 1 and up for copies that the path made."),
    RecordColumn(
        "fragment_offset",
        "UInt16",
        "8 bytes",
        "The offset in the datagram, as in the IPv4 header. "
        "With `pkt`, `copy` and `stage` it identifies a row.",
    ),
    RecordColumn("flow", "UInt16", "code", "The flow."),
    RecordColumn("dir", "UInt8", "code", "The direction: `down` or `up`."),
    RecordColumn("stage", "UInt8", "code", "The place on the path."),
    RecordColumn(
        "kind",
        "UInt8",
        "code",
        "`media`, `ack` (TCP without payload; RTCP that acknowledges RTP), `rtcp`, `signalling`, `probe`, "
        "`cross` or `other`: see below.",
    ),
    RecordColumn("t_in", "Int64", "ns", "Arrival at the stage, since the trial's start."),
    RecordColumn("t_out", "Int64", "ns", "Departure; null if it did not leave."),
    RecordColumn(
        "t_drop",
        "Int64",
        "ns",
        "Drop; null if it was not dropped. A queue manager may drop at dequeue, long after `t_in`.",
    ),
    RecordColumn("fate", "UInt8", "code", "`delivered`, `dropped`, or `held` at the end."),
    RecordColumn(
        "cause",
        "UInt8",
        "code",
        "The cause of a drop: `none`, `queue_full`, `random_loss`, `aqm`, `blocked` (a firewall) or "
        "`too_big` (longer than the MTU, with fragmentation forbidden).",
    ),
    RecordColumn("wire_bytes", "UInt32", "bytes", "IP bytes and 14."),
    RecordColumn(
        "ip_bytes",
        "UInt32",
        "bytes",
        "IP bytes. A packet that the stage fragments has the size of its first fragment.",
    ),
    RecordColumn(
        "payload_bytes",
        "UInt32",
        "bytes",
        "Bytes above the transport header, which is in a datagram's first fragment.",
    ),
    RecordColumn(
        "seq", "UInt32", "", "Sequence number of TCP, RTP or RDT, or NDN's segment; null without one."
    ),
    RecordColumn(
        "flags",
        "UInt16",
        "bits",
        "1 retransmission, 2 ECN-capable, 4 CE set here, 8 corrupted, 16 more fragments, 32 arrived with "
        "ECT(1), 64 arrived with CE, 128 fragmentation forbidden.",
    ),
    RecordColumn(
        "queue_bytes", "UInt32", "bytes", "The stage's content at the arrival, without the packet itself."
    ),
    RecordColumn("queue_packets", "UInt32", "packets", "The same in packets."),
    RecordColumn("hash", "UInt32", "", "Hash of addresses and ports, by which flow queues separate flows."),
    RecordColumn("protocol", "UInt8", "", "0 TCP, 1 UDP, 2 ICMP, 3 other."),
    RecordColumn(
        "connection",
        "UInt32",
        "",
        "Number of the flow's TCP connection, from 0 in order of their first packets, equal in both "
        "directions; null without TCP. A later use of the same ports is a new connection.",
    ),
)

_EVENTS: Sequence[RecordColumn] = (
    RecordColumn("time", "Int64", "ns", "Time since the trial's start."),
    RecordColumn("flow", "String", "", "The flow; null for the path's own events."),
    RecordColumn("name", "String", "", "The event's name."),
    RecordColumn("value", "Float64", "`unit`", "Its value; null without one."),
    RecordColumn("unit", "String", "", "The unit of the value."),
    RecordColumn("reason", "String", "", "The event's reason or text."),
)

_METRICS: Sequence[RecordColumn] = (
    RecordColumn(
        "trial",
        "String",
        "",
        "The trial, by a name that no other of the folder has: `hessler/ftp-medium sim seed 1`.",
    ),
    RecordColumn("valid", "Boolean", "", "False for an invalid trial, which belongs in no mean."),
    RecordColumn(
        "flow", "String", "", "The flow; null for a metric of a stage or of the trial, such as `jain`."
    ),
    RecordColumn(
        "stage", "String", "", "The stage, such as `bottleneck`; null for a metric of a flow or of the trial."
    ),
    RecordColumn("metric", "String", "", "Its name, as in [metrics.md](metrics.md)."),
    RecordColumn("begin_s", "Float64", "s", "Start of the window, since the trial's start."),
    RecordColumn("end_s", "Float64", "s", "End of the window."),
    RecordColumn("value", "Float64", "`unit`", "The value over the window; null without data."),
    RecordColumn(
        "min", "Float64", "`unit`", "Least value in the window, inside samples, where it is measured."
    ),
    RecordColumn(
        "max", "Float64", "`unit`", "Greatest value in the window, inside samples, where it is measured."
    ),
    RecordColumn(
        "unit",
        "String",
        "",
        "The canonical unit: `bit/s`, `s`, `bit`, `packets`, `packets/s`, `bit/packet`, `1/s`, or `1` for "
        "fractions (a loss of 2 % is 0.02) and plain numbers.",
    ),
    RecordColumn(
        "numerator",
        "List(Float64)",
        "",
        "In each sample of the trial, the numerator of the metric. Over samples *i* to *j* the metric is the "
        "sum of the numerators over the sum of the denominators. Null for metrics of the window only, such "
        "as `good_run`.",
    ),
    RecordColumn(
        "denominator", "List(Float64)", "", "The same for the denominator; null if the metric is a sum."
    ),
    RecordColumn("low", "List(Float64)", "`unit`", "Least value inside each sample; NaN without data."),
    RecordColumn("high", "List(Float64)", "`unit`", "Greatest value inside each sample; NaN without data."),
)

COLUMNS: Final[Mapping[str, Sequence[RecordColumn]]] = {
    PACKETS: _PACKETS,
    EVENTS: _EVENTS,
    METRICS_FILE: _METRICS,
}
"""The columns of each file, in order."""
