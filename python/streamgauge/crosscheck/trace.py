"""One TCP connection as it is seen at its sender's tap and at the end of the path, in sim or emu.

The emulator, the simulator and any third program (`ns3`) fill the same arrays, so that every quantity is
computed once and by the same rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from streamgauge.errors import RecordError
from streamgauge.metrics.frame import DOWN, RETRANSMIT, UP

__all__ = ["NEVER", "FlowTrace", "traces"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEVER = np.iinfo(np.int64).max
"""A time that does not come, ns."""
_TCP = 0
"""TCP in the column `protocol`."""


class Traced(Protocol):
    """Interface of a record here: `streamgauge.record.Record` has it."""

    @property
    def trial(self) -> dict[str, Any]: ...
    @property
    def codes(self) -> pl.DataFrame: ...
    @property
    def events(self) -> pl.DataFrame: ...


@dataclass(frozen=True)
class FlowTrace:
    """The data packets of one connection, in the order sent, and its acknowledgements.

    Arrays of the first six fields have one element a data packet. Times are ns since the trial's start.
    """

    sent: Ints
    """When it passed the sender's tap."""
    arrived: Ints
    """When it left the path; `NEVER` if it was lost or still on its way."""
    dropped: Ints
    """When it was dropped; `NEVER` if it was not."""
    payload: Ints
    """Bytes above TCP's header."""
    seq: Ints
    """Sequence number of the first of them."""
    repeat: Mask
    """Whether it repeats earlier data."""
    ack_sent: Ints
    """When each acknowledgement entered the way back, ascending."""
    ack_back: Ints
    """When it passed the sender's tap; `NEVER` if it was lost."""
    cwnd: tuple[Ints, Floats] = (np.zeros(0, dtype=np.int64), np.zeros(0))
    """The sender's own word: times, and congestion window in bytes."""

    @property
    def answered(self) -> Ints:
        """Returns when the sender heard of each data packet: the first acknowledgement that was sent at or
        after its arrival is back; `NEVER` if there is none.

        Every acknowledgement of a receiver with SACK covers all that has arrived (RFC 2018 section 4), so
        this is the time at which its round trip ends, a delayed acknowledgement's wait included; it needs no
        acknowledgement numbers, which a record has not.
        """
        # From the end, the earliest return of any acknowledgement sent from then on.
        back = np.minimum.accumulate(self.ack_back[::-1])[::-1]
        back = np.append(back, NEVER)
        place = np.searchsorted(self.ack_sent, self.arrived, side="left")
        answered: Ints = np.where(self.arrived == NEVER, NEVER, back[place])
        return answered


def traces(record: Traced) -> dict[str, FlowTrace]:
    """Returns the connection of each TCP flow of a trial, by the flow's name.

    For a flow with several connections (iperf3 has one for control) it is the one that carries most payload
    down.

    Raises:
        RecordError: if the record's packets do not distinguish connections (packets/1), or were not kept.
    """
    table = record.codes
    if "hash" not in table.columns or "protocol" not in table.columns:
        raise RecordError("packets.parquet tells no connections apart; run the trial again.")
    columns = ("pkt", "copy", "flow", "dir", "stage", "payload_bytes", "flags", "hash", "protocol")
    column: dict[str, npt.NDArray[Any]] = {name: table[name].to_numpy() for name in columns}
    # Records before packets/3 distinguish connections by addresses and ports alone, each direction by itself.
    told = "connection" in table.columns
    if told:
        column["hash"] = table["connection"].fill_null(0).to_numpy()
    for name in ("t_in", "t_out", "t_drop"):
        column[name] = table[name].fill_null(NEVER).to_numpy()
    column["seq"] = table["seq"].fill_null(0).to_numpy()
    events = record.events
    found = {}
    for entry in record.trial["flows"]:
        code = int(entry["id"])
        mine = (column["flow"] == code) & (column["protocol"] == _TCP) & (column["copy"] == 0)
        rows = {name: values[mine & (column["dir"] == DOWN)] for name, values in column.items()}
        which = _heaviest(rows)
        if which is None:
            continue
        down = _connection(rows, which)
        back = mine & (column["dir"] == UP)
        if told:
            back &= column["hash"] == which
        ack_sent, ack_back = _way_back({name: values[back] for name, values in column.items()})
        name = str(entry["name"])
        samples = events.filter((events["flow"] == name) & (events["name"] == "tcp_cwnd"))
        cwnd = (samples["time"].to_numpy().astype(np.int64), samples["value"].to_numpy().astype(np.float64))
        found[name] = FlowTrace(**down, ack_sent=ack_sent, ack_back=ack_back, cwnd=cwnd)
    return found


def _heaviest(rows: Mapping[str, npt.NDArray[Any]]) -> int | None:
    """Returns the connection with most payload; None if nothing carries any."""
    carries = rows["payload_bytes"] > 0
    if not carries.any():
        return None
    hashes, index = np.unique(rows["hash"][carries], return_inverse=True)
    return int(hashes[np.argmax(np.bincount(index, weights=rows["payload_bytes"][carries]))])


def _connection(rows: Mapping[str, npt.NDArray[Any]], which: int) -> dict[str, Any]:
    """Returns the data packets of that connection."""
    mine = (rows["payload_bytes"] > 0) & (rows["hash"] == which)
    rows = {name: values[mine] for name, values in rows.items()}
    entering = np.flatnonzero(rows["stage"] == rows["stage"].min())
    entering = entering[np.lexsort((rows["pkt"][entering], rows["t_in"][entering]))]
    packets = rows["pkt"][entering]
    sent, arrived, dropped = _passage(rows, packets, entering)
    return {
        "sent": sent,
        "arrived": arrived,
        "dropped": dropped,
        "payload": rows["payload_bytes"][entering].astype(np.int64),
        "seq": rows["seq"][entering].astype(np.int64),
        "repeat": (rows["flags"][entering] & RETRANSMIT) != 0,
    }


def _way_back(rows: Mapping[str, npt.NDArray[Any]]) -> tuple[Ints, Ints]:
    """Returns the acknowledgements: of the connection with most packets without payload."""
    bare = rows["payload_bytes"] == 0
    if not bare.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    hashes, count = np.unique(rows["hash"][bare], return_counts=True)
    rows = {name: values[bare & (rows["hash"] == hashes[count.argmax()])] for name, values in rows.items()}
    entering = np.flatnonzero(rows["stage"] == rows["stage"].min())
    entering = entering[np.lexsort((rows["pkt"][entering], rows["t_in"][entering]))]
    sent, back, _ = _passage(rows, rows["pkt"][entering], entering)
    return sent, back


def _passage(
    rows: Mapping[str, npt.NDArray[Any]], packets: npt.NDArray[Any], entering: Ints
) -> tuple[Ints, Ints, Ints]:
    """Returns when each of `packets` entered its direction, left it and was dropped."""
    last = np.flatnonzero(rows["stage"] == rows["stage"].max())
    if rows["stage"].max() == rows["stage"].min():
        last = entering
    order = np.argsort(packets, kind="stable")
    arrived = np.full(len(packets), NEVER, dtype=np.int64)
    place = order[np.searchsorted(packets, rows["pkt"][last], sorter=order)]
    arrived[place] = rows["t_out"][last]
    lost = np.flatnonzero(rows["t_drop"] != NEVER)
    dropped = np.full(len(packets), NEVER, dtype=np.int64)
    dropped[order[np.searchsorted(packets, rows["pkt"][lost], sorter=order)]] = rows["t_drop"][lost]
    return rows["t_in"][entering].astype(np.int64), arrived, dropped
