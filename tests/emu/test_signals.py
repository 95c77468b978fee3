"""Messages between the two sides of a flow before time runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamgauge.emu import signals
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.process import Running
from streamgauge.emu.signals import Signals
from streamgauge.systems.adapter import SIDES, SIGNALS, FlowSetup, Process


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[list[Running]]:
    """The two sides of a flow, each a process that repeats what it is told."""
    flow = FlowSetup(name="v", index=0, system="command", folder=tmp_path)
    made = []
    for side in SIDES:
        flow.out(side).mkdir(parents=True)
        spec = Process(side=side, command=["cat"], namespace="server", control=True, signals=True)
        popen = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        made.append(Running(flow=flow, spec=spec, is_main=True, popen=popen, pidfd=-1, started_ns=0))
    yield made
    for one in made:
        one.popen.kill()
        one.popen.communicate()


def told(one: Running) -> list[object]:
    """What a side was told, all in all; it takes no more."""
    said, _ = one.popen.communicate()
    return [json.loads(line) for line in said.splitlines()]


def test_whole_lines_reach_the_other_side_once(sides: list[Running]) -> None:
    server, player = sides
    carried = Signals()
    carried.carry([server])  # nobody is there to take it
    file = server.out / SIGNALS
    file.write_text('{"sdp": 1}\n{"sdp"')
    carried.carry([server])
    carried.carry(sides)
    carried.carry(sides)
    file.write_text('{"sdp": 1}\n{"sdp": 2}\n')
    carried.carry(sides)
    assert told(player) == [{"cmd": "signal", "signal": {"sdp": number}} for number in (1, 2)]
    assert told(server) == []


def test_a_line_that_is_no_json_and_too_many_break_the_trial(
    sides: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = sides[0].out / SIGNALS
    file.write_text("v=0\n")
    with pytest.raises(TrialBrokenError, match=r"the server of flow v wrote a line .* that is no JSON"):
        Signals().carry(sides)
    monkeypatch.setattr(signals, "LARGEST_BYTES", 10)
    file.write_text('{"sdp": 123456}\n')
    with pytest.raises(TrialBrokenError, match="wrote more than 10 B"):
        Signals().carry(sides)
    file.unlink()
    file.symlink_to("/etc/hostname")
    with pytest.raises(TrialBrokenError, match=SIGNALS):
        Signals().carry(sides)
