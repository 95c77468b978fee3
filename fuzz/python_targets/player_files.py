"""Any bytes that the processes of a flow leave are events and totals, or faults by name: of each system, with
the same bytes in every file that its adapter reads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from streamgauge.systems.adapter import EVENTS_FILE, SIDES, Clock, FlowSetup
from streamgauge.systems.adapters import ADAPTERS
from streamgauge.systems.nginx import ACCESS_LOG

FOLDER = Path(tempfile.mkdtemp(prefix="streamgauge-fuzz-"))
CLOCK = Clock(
    t0_monotonic_ns=10**9,
    t0_realtime_ns=10**18,
    started={"server": 0, "player": 0},
    ended_monotonic_ns=10**11,
)
NAMES = (EVENTS_FILE, ACCESS_LOG, "stdout.log", "stderr.log", "mgen.log", "progress.txt")
APPS = {"cbr": {"payload_bytes": 1000, "burst": 1.0}}
"""What an adapter reads of its plan before it reads a file."""


def _flows() -> Iterator[FlowSetup]:
    for system in sorted(ADAPTERS):
        plan = {"start": 0, "app": {system: APPS.get(system, {})}}
        for player in ("gstreamer", "ffmpeg", "dashjs"):
            yield FlowSetup(
                name="v",
                index=0,
                system=system,
                parameters={"player": player},
                plan=plan,
                trial={"duration": 10**9},
                folder=FOLDER,
            )


FLOWS = list(_flows())


def target(data: bytes) -> None:
    if len(data) < 2:
        return
    flow = FLOWS[data[0] % len(FLOWS)]
    for side in SIDES:
        out = flow.out(side)
        out.mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (out / name).write_bytes(data[1:])
    found = ADAPTERS[flow.system].collect(flow, CLOCK)
    assert all(isinstance(fault, str) for fault in found.faults)
