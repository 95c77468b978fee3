"""Collects the results of a flow's programs: no content of their files may lose a record."""

from __future__ import annotations

from typing import Any

from streamgauge.systems.adapter import Adapter, Clock, Collected, FlowSetup
from streamgauge.systems.player_files import printable

__all__ = ["collect"]

_LARGEST = 2**63
"""Bound of counts, of times in ns and of values, in recorded units."""
_KEYS = ("t_monotonic_ns", "name", "value", "unit", "reason")
NAMED_EVENTS = 3
"""How many events that no record can hold are named one by one."""
MOST_FAULTS = 50


def collect(adapter: Adapter, flow: FlowSetup, clock: Clock) -> Collected:
    """Returns the data that `adapter` collects of `flow`, without any that a record cannot hold.

    An adapter names the file and the line that it cannot read. If it fails instead, that is a fault too.
    """
    try:
        found = adapter.collect(flow, clock)
    except Exception as error:
        what = printable(f"{type(error).__name__}: {error}")
        return Collected(faults=[f"the files of its programs cannot be read ({what})"])
    faults = list(found.faults)
    found.events = _sound(found.events, faults)
    for name in ("received_packets", "received_bytes", "left_monotonic_ns", "left_unread_bytes"):
        value = getattr(found, name)
        if value is not None and not _is_count(value):
            faults.append(f"its {name} is {printable(repr(value), 60)}, which is no count")
            setattr(found, name, 0 if name == "left_unread_bytes" else None)
    if found.congestion_control is not None and not isinstance(found.congestion_control, str):
        shown = printable(repr(found.congestion_control), 60)
        faults.append(f"its congestion control is {shown}, which is no name")
        found.congestion_control = None
    elif found.congestion_control is not None:
        found.congestion_control = printable(found.congestion_control, 60)
    found.faults = [printable(fault, 500) for fault in faults[:MOST_FAULTS]]
    if len(faults) > MOST_FAULTS:
        found.faults.append(f"{len(faults) - MOST_FAULTS} more faults of this kind")
    return found


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _sound(events: list[dict[str, Any]], faults: list[str]) -> list[dict[str, Any]]:
    """Returns the events that a record can hold; the others are put in `faults`."""
    kept = []
    bad = 0
    for event in events:
        if (why := _unfit(event)) is None:
            kept.append(event)
            continue
        bad += 1
        if bad <= NAMED_EVENTS:
            faults.append(f"event {printable(repr(event.get('name')), 60)}: {why}")
    if bad > NAMED_EVENTS:
        faults.append(f"{bad - NAMED_EVENTS} more events that no record can hold")
    return kept


def _unfit(event: dict[str, Any]) -> str | None:
    time, name, value, unit, reason = (event.get(key) for key in _KEYS)
    if not isinstance(time, int) or isinstance(time, bool) or not -_LARGEST <= time < _LARGEST:
        return f"its time is {printable(repr(time), 60)}, which is no number of ns"
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST
    ):
        return f"its value is {printable(repr(value), 60)}, which is no number up to 2^63"
    for text in (name, unit, reason):
        if not isinstance(text, str) or not _is_unicode(text):
            return f"{printable(repr(text), 60)} is no Unicode text"
    return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
