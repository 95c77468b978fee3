"""What is made of the events that a program wrote: good lines are read, every other one is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.systems.adapter import EVENTS_FILE, Clock, FlowSetup
from streamgauge.systems.events import MOST_NAMES, NAMED_LINES, UNITS, read_events
from streamgauge.systems.node import split_said

S = 10**9
T0 = 5_000 * S
CLOCK = Clock(
    t0_monotonic_ns=T0, t0_realtime_ns=0, started={"player": T0 + 2 * S}, ended_monotonic_ns=T0 + 12 * S
)
GOOD: dict[str, Any] = {"t_s": 3, "name": "level", "value": 1.5, "unit": "1", "reason": "why"}


def _read(text: bytes, folder: Path, **bound: int) -> tuple[list[dict[str, Any]], list[str]]:
    flow = FlowSetup(name="web", index=0, system="command", folder=folder)
    flow.out("player").mkdir(exist_ok=True)
    (flow.out("player") / EVENTS_FILE).write_bytes(text)
    faults: list[str] = []
    return read_events(flow, "player", CLOCK, faults, **bound), faults


def _lines(*events: Any) -> bytes:
    return b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in events)


FINE: dict[str, tuple[Any, dict[str, Any]]] = {
    "all of it": (GOOD, {"t_monotonic_ns": T0 + 3 * S, "value": 1.5, "unit": "1", "reason": "why"}),
    "nothing but time and name": ({"t_s": 2.5, "name": "begun"}, {"value": None, "unit": "", "reason": ""}),
    "null is nothing": (GOOD | {"value": None, "unit": None, "reason": None}, {"value": None, "unit": ""}),
    "the kernel's clock": (
        {"t_monotonic_ns": T0 + 3 * S + 1, "t_s": None, "name": "x"},
        {"t_monotonic_ns": T0 + 3 * S + 1},
    ),
    "a clock that is a double": (
        {"t_monotonic_ns": float(T0 + 3 * S), "name": "x"},
        {"t_monotonic_ns": T0 + 3 * S},
    ),
    "rounded before its start": (GOOD | {"t_s": 1.01}, {"t_monotonic_ns": T0 + 1_010_000_000}),
    "while it was being ended": (GOOD | {"t_s": 12}, {"t_monotonic_ns": T0 + 12 * S}),
    "milliseconds": (GOOD | {"value": 1500, "unit": "ms"}, {"value": 1.5, "unit": "s"}),
    "kilobits": (GOOD | {"value": 1.5, "unit": "kbit/s"}, {"value": 1500.0, "unit": "bit/s"}),
    "frames a second": (GOOD | {"value": 25, "unit": "frames/s"}, {"value": 25.0, "unit": "1/s"}),
    "a blank before it": (b"  " + json.dumps(GOOD).encode() + b"\r", {"value": 1.5}),
    "words of any alphabet": (
        GOOD | {"reason": "überlastet\u2028\u0000"},
        {"reason": "überlastet\u2028\u0000"},
    ),
}


@pytest.mark.parametrize("what", FINE)
def test_an_event_is_read(what: str, tmp_path: Path) -> None:
    line, holds = FINE[what]
    events, faults = _read(_lines(line), tmp_path)
    assert faults == []
    assert holds.items() <= events[0].items()


BAD: dict[str, tuple[Any, str]] = {
    "broken": (b"{broken", "not JSON"),
    "half a line": (b'{"t_s": 3, "name": "le', "not JSON"),
    "not UTF-8": (b'{"t_s": 3, "name": "\xff"}', "not JSON"),
    "nested without end": (b"[" * 20_000, "nested too deeply"),
    "a list": ([GOOD], "not a JSON object"),
    "a text as value": (GOOD | {"value": "fast"}, 'value "fast" is not a number'),
    "a truth as value": (GOOD | {"value": True}, "value true is not a number"),
    "not a number": (b'{"t_s": 3, "name": "x", "value": NaN}', "value is not a finite number"),
    "infinite": (b'{"t_s": 3, "name": "x", "value": -Infinity}', "value is not a finite number"),
    "too large": (b'{"t_s": 3, "name": "x", "value": 1' + b"0" * 400 + b"}", "value is not a finite number"),
    "too large in its unit": (GOOD | {"value": 1e305, "unit": "Gbit/s"}, "value 1e+305 Gbit/s is too large"),
    "no sum of such is finite": (GOOD | {"value": -1e300}, "value -1e+300 1 is too large"),
    "no time": ({"name": "x"}, "has no time"),
    "a text as time": (GOOD | {"t_s": "3"}, 't_s "3" is not a number'),
    "before it was started": (GOOD | {"t_s": 0.5}, "0.5 s of the trial, before the player was started"),
    "long before any trial": (b'{"t_s": -1e300, "name": "x"}', "before the player was started"),
    "long after every trial": (b'{"t_s": 1e308, "name": "x"}', "after its end"),
    "an immense integer": (b'{"t_monotonic_ns": -1' + b"0" * 307 + b', "name": "x"}', "before the player"),
    "too many digits": (b'{"t_s": 3, "value": 1' + b"0" * 5_000 + b', "name": "x"}', "not JSON"),
    "nested in a key": (b'{"t_s": 3, "name": "x", "value": ' + b"[" * 900 + b"]" * 900 + b"}", "value"),
    "lines in a name": (GOOD | {"name": "a\nb"}, "is not one line of at most 200 characters"),
    "a name without end": (GOOD | {"name": "x" * 60_000}, "is not one line of at most 200 characters"),
    "NUL": (b'{"t_s": 3, "name": "x"}\x00', "not JSON"),
    "after the end": (GOOD | {"t_s": 14}, "14 s of the trial, after its end"),
    "another clock": (GOOD | {"t_monotonic_ns": 1_790_000_000 * S}, "after its end"),
    "no name": ({"t_s": 3, "value": 1}, "has no name"),
    "a number as name": (GOOD | {"name": 7}, "name 7 is not a text"),
    "half a character": (GOOD | {"reason": "\ud800"}, "reason is not Unicode text"),
    "an unknown unit": (GOOD | {"unit": "furlong"}, "unit 'furlong' is not known; known are 1, 1/s, ns,"),
    "a size for a time": (
        GOOD | {"name": "buffer", "unit": "kB"},
        "buffer is in kB, and its value is a time (ns, us, ms, s, min); give that, or another name",
    ),
    "a number for a time": (GOOD | {"name": "transfer_complete"}, "its value is a time"),
    "a time for a rate": (GOOD | {"name": "level_changed", "unit": "s"}, "its value is a bit rate"),
    "a slip of the pen": (GOOD | {"vlaue": 3}, "has a key 'vlaue'; an event has t_monotonic_ns, t_s, name,"),
    "a very long line": (GOOD | {"reason": "x" * 70_000}, "bytes (at most 65536)"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_event_is_named(what: str, tmp_path: Path) -> None:
    line, said = BAD[what]
    events, faults = _read(_lines(GOOD, line, GOOD), tmp_path)
    assert len(events) == 2, "the lines around it are read"
    (fault,) = faults
    assert fault.startswith("web-player-events.jsonl:2: ") and said in fault
    assert len(fault) < 300


def test_a_line_that_was_cut_off_by_its_programs_end_is_no_fault(tmp_path: Path) -> None:
    line = json.dumps(GOOD | {"reason": "zu spät"}, ensure_ascii=False).encode()
    for length in range(len(line)):
        events, faults = _read(_lines(GOOD) + line[:length], tmp_path)
        assert (len(events), faults) == (1, []), line[:length]
    assert len(_read(_lines(GOOD) + line, tmp_path)[0]) == 2
    # Whole, and still wrong.
    assert _read(_lines(GOOD) + _lines(GOOD | {"value": "fast"})[:-1], tmp_path)[1]


def test_many_bad_lines_are_few_faults(tmp_path: Path) -> None:
    _, faults = _read(b"nonsense\n" * 10_000, tmp_path)
    assert len(faults) == NAMED_LINES + 1
    assert faults[-1] == f"web-player-events.jsonl: {10_000 - NAMED_LINES} more lines that are no events"


def test_names_are_bounded(tmp_path: Path) -> None:
    """Each is a metric of every sample."""
    lines = _lines(
        *(GOOD | {"name": f"n{number}"} for number in range(MOST_NAMES + 2)), GOOD | {"name": "n0"}
    )
    events, faults = _read(lines, tmp_path)
    assert len(events) == MOST_NAMES + 1 and events[-1]["name"] == "n0"
    assert [fault.partition(": ")[2] for fault in faults] == [
        f"name 'n{MOST_NAMES + more}' is one more than the {MOST_NAMES} that events may have"
        for more in (0, 1)
    ]


def test_a_file_without_end_is_read_to_its_limit(tmp_path: Path) -> None:
    line = _lines(GOOD)
    events, faults = _read(line * 1000, tmp_path, largest=1000)
    assert len(events) == 1000 // len(line)
    assert faults == ["web-player-events.jsonl has more than 0.001 MB; what follows is not read"]


def test_nothing_but_a_plain_file_is_read(tmp_path: Path) -> None:
    assert _read(b"", tmp_path) == ([], [])
    flow = FlowSetup(name="web", index=0, system="command", folder=tmp_path)
    file = flow.out("player") / EVENTS_FILE
    file.unlink()
    made = {
        "is a folder, not a file": file.mkdir,
        "is a symbolic link, which is not followed": lambda: (file.rmdir(), file.symlink_to("/etc/hostname")),
    }
    for why, make in made.items():
        make()
        faults: list[str] = []
        assert read_events(flow, "player", CLOCK, faults) == []
        assert faults == [f"web-player-events.jsonl {why}"]


def test_a_machine_of_ours_prints_events_among_other_lines(tmp_path: Path) -> None:
    flow = FlowSetup(name="web", index=0, system="command", folder=tmp_path)
    flow.out("player").mkdir()
    told = GOOD | {"flow": "video"}
    (flow.out("player") / "stdout.log").write_bytes(
        _lines({"event": "ready"}, told, b"{broken", {"event": "stopped", "stats": {"a": 1}}) + b'{"na'
    )
    assert split_said(flow, "player", []) == {"event": "stopped", "stats": {"a": 1}}
    events, faults = _read((flow.out("player") / EVENTS_FILE).read_bytes(), tmp_path)
    assert [one["name"] for one in events] == ["level"]
    assert faults == ["web-player-events.jsonl:2: not JSON"]


def test_every_unit_of_scenarios_is_known() -> None:
    assert {base for base, _ in UNITS.values()} == {"", "1", "1/s", "s", "B", "bit/s", "%", "packets"}
    assert UNITS["KiB"] == ("B", 1024.0) and UNITS["us"][1] == pytest.approx(1e-6)


@given(st.lists(st.one_of(st.binary(max_size=60), st.just(json.dumps(GOOD).encode())), max_size=20))
@settings(max_examples=200)
def test_every_line_is_read_or_named(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    events, faults = _read(b"".join(line + b"\n" for line in lines), tmp_path_factory.mktemp("events"))
    named = sum("events.jsonl:" in fault and " more lines" not in fault for fault in faults)
    more = sum(int(fault.split(": ")[1].split()[0]) for fault in faults if " more lines" in fault)
    assert len(events) + named + more == sum(bool(line.strip()) for line in lines)


@pytest.mark.parametrize("unit", [None, "1", "bit/s", "kbit/s"])
def test_a_level_is_a_rate_or_a_number(unit: str | None, tmp_path: Path) -> None:
    events, faults = _read(_lines(GOOD | {"name": "level_changed", "unit": unit}), tmp_path)
    assert not faults and events[0]["name"] == "level_changed"


def test_whose_value_nobody_looks_at_may_have_any_unit(tmp_path: Path) -> None:
    lines = [GOOD | {"name": name, "unit": "B"} for name in ("stall", "resume", "frame_shown", "my_buffer")]
    events, faults = _read(_lines(*lines), tmp_path)
    assert not faults and len(events) == len(lines)
