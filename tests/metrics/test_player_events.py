"""docs/player-events.md says which events metrics are made of: held against the code that makes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from streamgauge.claims.names import METRICS, fed_by
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.metrics.reported import ReportedEvents
from streamgauge.systems.machines import MACHINES
from streamgauge.systems.player_events import MEASURED
from synthetic import EVENTS, SECOND, constant, record

PAGE = Path(__file__).parents[2] / "docs" / "player-events.md"
Event = tuple[float, str, float | None]
COMMANDS = {
    "system": {"server": "a", "player": "b"},
    "clip": {"source": "carphone", "ladder": ["300 kbit/s", "900 kbit/s"]},
}


def frames(begin: float, end: float, first: int = 0) -> list[Event]:
    return [(begin + i / 25, "frame_shown", float(first + i)) for i in range(round((end - begin) * 25))]


STALLS: list[Event] = [
    (5.0, "stall", None), (7.0, "resume", 2.0), (12.0, "stall", None), (13.0, "resume", 1.0),
    (16.0, "stall", None),
]  # fmt: skip
RELIABLE_UDP: list[Event] = [
    (1.0, "rudp_cwnd", 3e3), (3.0, "rudp_cwnd", 5e3), (1.0, "rudp_rto", 0.5), (1.0, "overbuffer", 1.0),
    (9.0, "overbuffer", 2.0), (1.0, "thinning", 1.0), (2.0, "rudp_cut", 3e3), (2.0, "rudp_retransmit", 1.0),
    (2.0, "rudp_expired", 1.0), (2.0, "rudp_given_up", 1.0), (2.0, "stale_drop", 0.1),
]  # fmt: skip
CASES: dict[str, list[Event]] = {
    "all": [
        (0.9, "playout_start", 0.7), *frames(1, 5), *frames(7, 12, 100), *frames(13, 16, 225), *STALLS,
        (16.5, "frame_late", 0.1), (16.6, "frame_incomplete", None), (18.0, "media_end", None),
        (1.0, "level_changed", 300e3), (8.0, "level_changed", 900e3), (2.0, "buffer", 1.0), (2.0, "rtt", 0.1),
        (2.0, "tcp_cwnd", 3e3), (2.0, "tcp_srtt", 0.1), *RELIABLE_UDP,
    ],
    "ends late": [*frames(1, 5), (8.0, "frame_late", 0.1), (18.0, "media_end", None)],
    "ends incomplete": [*frames(1, 5), (8.0, "frame_incomplete", None), (18.0, "media_end", None)],
    "ends": [*frames(1, 5), (6.0, "media_end", None)],
    "stalls to its end": [*frames(1, 5), (5.0, "stall", None), (15.0, "media_end", None)],
    "resumes and ends": [
        *frames(1, 5), (5.0, "stall", None), (6.0, "resume", None), (15.0, "media_end", None),
    ],
    "no frames": [(1.0, "playout_start", None), *STALLS],
    "no stall": [(1.0, "playout_start", 0.5), (0.0, "stall_count", 0.0)],
    "no stall of frames": [*frames(1, 5), (0.0, "stall_count", 0.0)],
    "waits before it begins": [(0.5, "stall", None), (2.0, "resume", None), (1.0, "playout_start", 1.0)],
    "waits before its first frame": [(0.5, "stall", None), (2.0, "resume", None), *frames(1, 5)],
    "a call that gives packets up": [(5.0, "unrepaired", 2.0), (6.0, "discarded", 1.0)],
    "late alone": [(5.0, "frame_late", 0.1)],
    "segments": [
        (1.0, "playout_start", 0.5), (0.0, "stall_count", 0.0), (1.0, "segment_shown", 900e3),
        (3.0, "segment_shown", 300e3), (2.0, "level_changed", 600e3), (4.0, "stall", None),
        (5.0, "resume", 1.0), (6.0, "segment_shown", 300e3), (9.0, "media_end", None),
    ],
    "levels as they are chosen and shown": [
        (1.0, "playout_start", 0.5), (0.0, "stall_count", 0.0), (0.5, "level_changed", 900e3),
        (1.0, "level_shown", 900e3), (2.0, "level_changed", 300e3), (2.5, "level_changed", 600e3),
        (4.0, "level_shown", 600e3), (9.0, "media_end", None),
    ],
    "levels of a player that tells no stalls": [
        (1.0, "playout_start", 0.5), (1.0, "level_changed", 900e3), (3.0, "level_changed", 300e3),
    ],
    "a level that is never shown": [
        (1.0, "level_changed", 300e3), (3.0, "level_changed", 900e3), *frames(3.5, 9),
        (0.0, "stall_count", 0.0),
    ],
    "a level that a stall hides": [
        (1.0, "playout_start", 0.5), (1.0, "level_changed", 900e3), (4.0, "stall", None),
        (4.5, "level_changed", 300e3), (5.0, "level_changed", 600e3), (5.5, "resume", 1.5),
    ],
    "a level after the end": [
        (1.0, "level_changed", 900e3), (3.0, "level_changed", 300e3), (2.5, "media_end", None),
    ],
    "a level before play": [
        (1.0, "level_changed", 300e3), (2.0, "level_changed", 900e3), (3.0, "playout_start", 3.0),
    ],
    "says how far behind live": [*frames(1, 5), (2.0, "live_latency", 9.0), (2.0, "estimate", 1e6)],
    "a browser": [*frames(1, 5), (2.0, "dropped_frames", 3.0), (4.0, "dropped_frames", 7.0)],
    "incomplete alone": [(5.0, "frame_incomplete", None)],
    "transfers": [(3.0, "transfer_complete", 1.5), (4.0, "transfer_failed", None)],
    "transfers that do not fail": [(3.0, "transfer_complete", 1.5)],
    "transfers that fail": [(4.0, "transfer_failed", None)],
    "reliable": RELIABLE_UDP,
    "a window alone": [(1.0, "rudp_cwnd", 3e3)],
}  # fmt: skip


def measured(said: list[Event], app: Any = "external") -> TrialMetrics:
    """A flow that says these beside one that shows one level throughout."""
    made = record(constant(0, 60, 0, 20), flows=["video", "other"], duration_s=20.0)
    units = {name: event.unit for name, event in MEASURED.items()}
    rows = [(0, "other", "level_changed", 400e3, "bit/s", "")]
    rows += [(round(at * SECOND), "video", name, value, units[name], "") for at, name, value in said]
    made.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    made.trial["plan"]["flows"][0] |= {"start": 0, "app": app}
    made.trial["scenario"]["flows"] = {"video": COMMANDS if app == "external" else {}}
    return compute(made)


def numbers(metrics: TrialMetrics) -> dict[str, Any]:
    """All of a flow's metrics, and of its bottleneck's, as what can be compared."""
    flow = metrics.flows["video"]
    parts = ("numerator", "denominator", "low", "high")
    series = {**metrics.stages["bottleneck"].series, **flow.series}
    arrays = {name: [getattr(one, part) for part in parts] for name, one in series.items()}
    found: dict[str, Any] = {
        name: [None if one is None else np.nan_to_num(one, nan=-1.0).round(9).tolist() for one in of]
        for name, of in arrays.items()
    }
    return found | {name: scalar for name, scalar in flow.scalars.items() if scalar is not None}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def test_each_event_feeds_what_the_table_says() -> None:
    """Left out of what a player says, an event changes the metrics that it feeds, and no others."""
    feeds: dict[str, set[str]] = {name: set() for name in MEASURED}
    for said in CASES.values():
        whole = numbers(measured(said))
        for name in {name for _, name, _ in said}:
            feeds[name] |= changed(whole, numbers(measured([one for one in said if one[1] != name])))
    assert {name: set(fed_by(name)) for name in MEASURED} == feeds
    assert {event for metric in METRICS.values() for event in metric.reads} == set(MEASURED)


def test_metrics_look_at_no_event_that_is_not_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: set[str] = set()

    def watched(method: str) -> None:
        original = getattr(ReportedEvents, method)

        def watching(self: ReportedEvents, *arguments: Any) -> Any:
            looked.update(one for one in arguments if isinstance(one, str))
            return original(self, *arguments)

        monkeypatch.setattr(ReportedEvents, method, watching)

    for method in ("of", "has", "units", "instants"):
        watched(method)
    for said in CASES.values():
        measured(said)
    clip = {"name": "c", "duration": SECOND, "frame_interval": 40_000_000, "frame_bytes": [500] * 25}
    for machine in MACHINES.values():
        settings = machine.usual | ({"clip": clip} if machine.content == "clip" else {})
        measured(CASES["all"], {machine.name: settings})
    assert looked == set(MEASURED)


def test_what_our_machines_say_is_in_the_unit_of_the_table() -> None:
    for machine in MACHINES.values():
        for name, unit in machine.events.items():
            if name in MEASURED:
                assert MEASURED[name].takes(unit), (machine.name, name)


def test_the_page_lists_every_event_in_this_order() -> None:
    """Its tables are generated: tests/test_site.py compares them with the code."""
    page = PAGE.read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z_]+)` \| [^|]* \| [^|]+ \| `", page, re.MULTILINE)
    assert listed == list(MEASURED)
