"""Fate of whole datagrams on a path that copies, fragments, corrupts: one row for each.

RFC 7680 section 2.4: a packet is lost if no uncorrupted copy arrives, received if several do, and lost if its
fragments are not put together again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamgauge.metrics.grid import SECOND_NS, Codes, Ints, Mask
from streamgauge.metrics.passage import NEVER

CORRUPTED, MORE_FRAGMENTS = 8, 16
IPV4_HEADER_BYTES = 20
PATIENCE_NS = 30 * SECOND_NS
"""How long a host waits for the rest of a datagram, from its first fragment on (as Linux)."""
_LATEST = np.iinfo(np.int64).max


def are_plain(table: Mapping[str, Codes]) -> bool:
    """Returns whether every row is of a packet of its own, whole and sound: then rows are datagrams
    already."""
    damaged = (table["flags"] & (CORRUPTED | MORE_FRAGMENTS)).any()
    return not (damaged or table["copy"].any() or table["fragment_offset"].any())


def datagrams(table: Mapping[str, Codes], entries: Mask, exits: Mask) -> dict[str, Codes]:
    """Returns one row a datagram, as it was sent: the bytes of all its fragments, at the arrival of the first
    of them.

    Args:
        table: columns of ``packets.parquet``.
        entries: rows where a packet enters its direction.
        exits: rows where a packet leaves it.

    Returns:
        The columns that measuring needs. `t_out` is when it was received, `NEVER` if it was not; `t_drop`
        when it was first harmed (dropped, or arrived corrupted) if it was not received, `NEVER` otherwise.
    """
    rows = np.flatnonzero(entries & (table["copy"] == 0))
    rows = rows[np.lexsort((table["fragment_offset"][rows], table["pkt"][rows]))]
    pkt = table["pkt"][rows]
    first = np.flatnonzero(np.concatenate([[True], pkt[1:] != pkt[:-1]])) if len(rows) else rows
    kept = ("pkt", "copy", "flow", "dir", "stage", "kind", "seq", "flags")
    found: dict[str, Codes] = {name: table[name][rows[first]] for name in kept}
    for name in ("wire_bytes", "ip_bytes", "payload_bytes"):
        sizes = table[name][rows].astype(np.int64)
        found[name] = np.add.reduceat(sizes, first) if len(rows) else sizes
    times = table["t_in"][rows].astype(np.int64)
    found["t_in"] = np.minimum.reduceat(times, first) if len(rows) else times
    ids = found["pkt"]

    sound = exits & ((table["flags"] & CORRUPTED) == 0)
    parts = (table["fragment_offset"] > 0) | ((table["flags"] & MORE_FRAGMENTS) != 0)
    received = _earliest(ids, table["pkt"], table["t_out"], sound & ~parts)
    for packet, at in _reassembled(table, exits & parts).items():
        place = int(np.searchsorted(ids, packet))
        if place < len(ids) and ids[place] == packet:
            received[place] = min(received[place], at)
    harmed = np.minimum(
        _earliest(ids, table["pkt"], table["t_drop"], table["t_drop"] != NEVER),
        _earliest(ids, table["pkt"], table["t_out"], exits & ~sound),
    )
    came = received != _LATEST
    found["t_out"] = np.where(came, received, NEVER)
    found["t_drop"] = np.where(came | (harmed == _LATEST), NEVER, harmed)
    return found


def _earliest(ids: Codes, packets: Codes, times: Codes, rows: Mask) -> Ints:
    """Returns for each of `ids`, ascending, the earliest time of its rows."""
    earliest = np.full(len(ids), _LATEST)
    if not len(ids):
        return earliest
    chosen = packets[rows]
    place = np.searchsorted(ids, chosen).clip(max=len(ids) - 1)
    known = ids[place] == chosen
    np.minimum.at(earliest, place[known], times[rows][known])
    return earliest


def _reassembled(table: Mapping[str, Codes], rows: Mask) -> dict[int, int]:
    """Returns when each datagram that arrives in fragments is first whole and sound, by packet number.

    As the receiving host does it: fragments of copies go together; one that is here already changes nothing,
    one that overlaps otherwise ends the datagram, and so do 30 s.
    """
    places = np.flatnonzero(rows)
    places = places[np.lexsort((table["t_out"][places], table["pkt"][places]))]
    begin = 8 * table["fragment_offset"][places].astype(np.int64)
    end = begin + table["ip_bytes"][places].astype(np.int64) - IPV4_HEADER_BYTES
    whole: dict[int, int] = {}
    current, opened = -1, 0
    have: list[tuple[int, int]] = []
    bad, length = False, -1
    for packet, at, low, high, flags in zip(
        table["pkt"][places].tolist(), table["t_out"][places].tolist(), begin.tolist(), end.tolist(),
        table["flags"][places].tolist(), strict=True,
    ):  # fmt: skip
        if packet != current or not have or at - opened >= PATIENCE_NS:
            current, opened, have, bad, length = packet, at, [], False, -1
        if any(start <= low and high <= stop for start, stop in have):
            continue
        if any(start < high and low < stop for start, stop in have):
            have = []
            continue
        if have and have[-1][1] == low:
            have[-1] = (have[-1][0], high)
        else:
            have.append((low, high))
        bad |= bool(flags & CORRUPTED)
        if not flags & MORE_FRAGMENTS:
            length = high
        if length == sum(stop - start for start, stop in have):
            if not bad:
                whole.setdefault(packet, at)
            have = []
    return whole
