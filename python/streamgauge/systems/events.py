"""Reads the events that the processes of a flow wrote; unreadable lines are named."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from streamgauge.systems.adapter import EVENTS_FILE, Clock, FlowSetup, Side, place, spoken
from streamgauge.systems.player_events import MEASURED
from streamgauge.systems.player_files import FileRefusedError, printable, read_in
from streamgauge.units import Frequency, Packets, Percent, Quantity, Rate, Size, Time

LARGEST_FILE_BYTES = 20_000_000
"""As much as is kept of a log."""
LARGEST_LINE_BYTES = 65_536
LONGEST_NAME = 200
"""Characters of an event's name, which metrics and tables are named by."""
MOST_NAMES = 1000
"""Names of events of one process: each is a metric, with a number for each sample of the trial."""
LARGEST_VALUE = 2.0**63
"""Bound in the recorded unit: no counter exceeds it, and sums of such values stay finite."""
NAMED_LINES = 3
"""How many of a file's bad lines are named one by one."""
TOLERANCE_S = 1.0
"""How far outside its program's life an event may lie: clocks are read, and times rounded, by others."""

_KEYS = ("t_monotonic_ns", "t_s", "name", "value", "unit", "reason")


def _units() -> dict[str, tuple[str, float]]:
    """Returns each known unit with the one that is recorded in its place, and how many of it that is."""
    known = {"": ("", 1.0), "1": ("1", 1.0), "1/s": ("1/s", 1.0)}
    recorded: dict[type[Quantity], str] = {
        Time: "s", Size: "B", Rate: "bit/s", Percent: "%", Packets: "packets", Frequency: "1/s",
    }  # fmt: skip
    for quantity, base in recorded.items():
        known |= {unit: (base, scale / quantity.units.get(base, 1)) for unit, scale in quantity.units.items()}
    return known


UNITS = _units()
"""Units of values: those of scenarios, 1 for counts, and none."""


def read_events(
    flow: FlowSetup,
    side: Side,
    clock: Clock,
    faults: list[str],
    *,
    name: str = "",
    largest: int = LARGEST_FILE_BYTES,
) -> list[dict[str, Any]]:
    """Returns the events that one process of a flow wrote, as `event` makes them, in the units that are
    recorded.

    Every line that is no event is put in `faults`, the first few by number and reason. A last line without
    its end is passed over if it cannot be read: its program was ended while it wrote. Data beyond `largest`
    bytes is not read.
    """
    shown = f"{flow.name}-{place(side, name)}-{EVENTS_FILE}"
    try:
        found = read_in(flow.out(side, name), EVENTS_FILE, largest)
    except FileRefusedError as error:
        faults.append(f"{shown} {error}")
        return []
    if found is None:
        return []
    # As old as the trial if it was never started.
    began_ns = clock.started.get(place(side, name), clock.t0_monotonic_ns)
    life = _Life(who=spoken(side, name), began_ns=began_ns, clock=clock)
    *lines, rest = found.data.split(b"\n")
    if found.is_cut:
        faults.append(f"{shown} has more than {largest / 1e6:g} MB; what follows is not read")
        rest = b""
    events: list[dict[str, Any]] = []
    names: set[str] = set()
    bad = 0
    for number, line in enumerate([*lines, rest], 1):
        if not line.strip():
            continue
        try:
            events.append(_event(line, life, names))
        except _CutOffError as error:
            if number <= len(lines):
                bad = _name(faults, bad, f"{shown}:{number}: {error}")
        except RecursionError:
            bad = _name(faults, bad, f"{shown}:{number}: nested too deeply")
        except ValueError as error:
            bad = _name(faults, bad, f"{shown}:{number}: {error}")
    if bad > NAMED_LINES:
        faults.append(f"{shown}: {bad - NAMED_LINES} more lines that are no events")
    return events


def _name(faults: list[str], bad: int, fault: str) -> int:
    if bad < NAMED_LINES:
        faults.append(fault)
    return bad + 1


class _CutOffError(ValueError):
    """A line that is not whole, or never was JSON."""


@dataclass(frozen=True, kw_only=True)
class _Life:
    """Lifetime of the program that wrote the events."""

    who: str
    began_ns: int
    clock: Clock


def _event(line: bytes, life: _Life, names: set[str]) -> dict[str, Any]:
    """Returns an event from its line, and adds its name to `names`. Raises ValueError with the fault."""
    if len(line) > LARGEST_LINE_BYTES:
        raise ValueError(f"a line of {len(line)} bytes (at most {LARGEST_LINE_BYTES})")
    try:
        raw = json.loads(line)
    except ValueError:  # UnicodeDecodeError is one
        raise _CutOffError("not JSON") from None
    if not isinstance(raw, dict):
        raise ValueError("not a JSON object")
    for key in raw:
        if key not in _KEYS:
            raise ValueError(f"has a key {key[:40]!a}; an event has {', '.join(_KEYS)}")
    unit = _text(raw, "unit")
    if unit not in UNITS:
        known = ", ".join(filter(None, UNITS))
        raise ValueError(f"unit {unit[:40]!a} is not known; known are {known}")
    recorded, scale = UNITS[unit]
    value = None if raw.get("value") is None else _number(raw, "value") * scale
    if value is not None and not abs(value) <= LARGEST_VALUE:
        raise ValueError(f"value {raw['value']} {unit}".rstrip() + " is too large")
    name = _text(raw, "name")
    if not name:
        raise ValueError("has no name")
    if not name.isprintable() or len(name) > LONGEST_NAME:
        raise ValueError(f"name {printable(name, 40)!a} is not one line of at most {LONGEST_NAME} characters")
    measured = MEASURED.get(name)
    if value is not None and measured is not None and not measured.takes(recorded):
        raise ValueError(
            f"{name} is in {unit}, and its value is {_kind(measured.unit)}; give that, or another name"
        )
    if name not in names and len(names) == MOST_NAMES:
        raise ValueError(
            f"name {printable(name, 40)!a} is one more than the {MOST_NAMES} that events may have"
        )
    found = event(_time_ns(raw, life), name, value, recorded, _text(raw, "reason"))
    names.add(name)
    return found


def _kind(unit: str) -> str:
    """Returns the quantity of a recorded unit, with the units that events may use."""
    kind = next(kind for kind in (Time, Size, Rate) if unit in kind.units)
    return f"a {kind.noun} ({', '.join(kind.units)})"


def _time_ns(raw: dict[str, Any], life: _Life) -> int:
    """CLOCK_MONOTONIC, within the life of the program."""
    t0_ns = life.clock.t0_monotonic_ns
    if raw.get("t_monotonic_ns") is not None:
        value = _number(raw, "t_monotonic_ns")
        # A double does not hold every ns of a machine that has run for long.
        at_ns = raw["t_monotonic_ns"] if isinstance(raw["t_monotonic_ns"], int) else round(value)
    elif raw.get("t_s") is not None:
        seconds = _number(raw, "t_s")
        # In integers: the product of a large double is no longer finite.
        at_ns = t0_ns + (round(seconds * 1e9) if abs(seconds) < 1e12 else int(seconds) * 10**9)
    else:
        raise ValueError("has no time (t_monotonic_ns or t_s)")
    tolerance_ns = round(TOLERANCE_S * 1e9)
    if at_ns < life.began_ns - tolerance_ns:
        raise ValueError(f"its time is {_s(at_ns - t0_ns)} s of the trial, before the {life.who} was started")
    if at_ns > life.clock.ended_monotonic_ns + tolerance_ns:
        raise ValueError(f"its time is {_s(at_ns - t0_ns)} s of the trial, after its end")
    return int(at_ns)


def _s(nanoseconds: int) -> str:
    """Nanoseconds in s, to six digits; beyond a year by its power of ten."""
    seconds = Decimal(nanoseconds) / 10**9
    return f"{seconds:.6g}" if abs(seconds) > 1e8 else f"{Decimal(f'{seconds:.6g}'):f}"


def _number(raw: dict[str, Any], key: str) -> float:
    """Returns a finite number; a text or a truth value is none."""
    value = raw[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} {json.dumps(value)[:40]} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{key} is not a finite number")
    return number


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{key} {json.dumps(value)[:40]} is not a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{key} is not Unicode text") from None
    return value


def event(
    t_monotonic_ns: int, name: str, value: float | None = None, unit: str = "", reason: str = ""
) -> dict[str, Any]:
    """Returns one event as `Collected.events` holds it."""
    return {"t_monotonic_ns": t_monotonic_ns, "name": name, "value": value, "unit": unit, "reason": reason}


def last(events: Iterable[dict[str, Any]], name: str) -> float | None:
    """Returns the value of the last event called `name`; None if there is none."""
    found = None
    for one in events:
        if one["name"] == name and one["value"] is not None:
            found = float(one["value"])
    return found
