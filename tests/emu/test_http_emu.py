"""Progressive download on real sockets: a valid trial, and the same viewer's figures as in sim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from driving import Person, the_valid_one
from streamgauge.record import Record

TEXT = """
id: test/http
title: A download on a link that is too slow for its clip
path:
  down: {rate: 400 kbit/s, queue: droptail 50 packets, delay: 20 ms}
  up: {delay: 20 ms}
flows:
  video:
    role: subject
    system: http
    parameters: {request: 50 kB, prebuffer: 1 s, rebuffer: 1 s}
    clip: carphone-550k
until: {time: 18 s, media_end: video}
measure: {window: [0 s, 18 s]}
"""


def simulated(person: Person) -> dict[str, Any]:
    out = person.out.parent / "simulated"
    words = ["run", person.scenario(TEXT), "--mode", "sim", "--repeat", "1", "--out", str(out)]
    done = person.run(*words, "--json")
    assert done.stdout, f"status {done.returncode}: {done.stderr}"
    (trial,) = json.loads(done.stdout)["trials"]
    assert trial["valid"]
    return dict(trial)


def said(trial: dict[str, Any], name: str) -> list[float]:
    events = Record.open(Path(trial["directory"])).events
    return [row["value"] for row in events.iter_rows(named=True) if row["name"] == name]


def reasons(trial: dict[str, Any], name: str) -> list[str]:
    events = Record.open(Path(trial["directory"])).events
    return [row["reason"] for row in events.iter_rows(named=True) if row["name"] == name]


def test_sockets_give_what_sim_gives(anyone: Person) -> None:
    emulated, sim = the_valid_one(anyone.trials(TEXT)), simulated(anyone)
    one, other = emulated["flows"]["video"], sim["flows"]["video"]
    assert one["goodput_bps"] == pytest.approx(other["goodput_bps"], rel=0.03)
    assert one["startup_delay_s"] == pytest.approx(other["startup_delay_s"], abs=0.3)
    assert one["stall_time_s"] == pytest.approx(other["stall_time_s"], rel=0.2, abs=0.5)
    assert other["stall_time_s"] > 1
    # Each frame once and in order, in both.
    for trial in (emulated, sim):
        shown = said(trial, "frame_shown")
        assert shown == [float(number) for number in range(len(shown))] and len(shown) > 100
        assert set(said(trial, "http_response")) == {206.0} and not said(trial, "http_failure")
        # The path's own word on the same: each request and each answer, on the one connection.
        ways = [reason.split(" ", 1) for reason in reasons(trial, "message")]
        assert {way: what.split(" ")[0] for way, what in ways} == {"up": "GET", "down": "206"}
        assert len(ways) == 2 * len(said(trial, "http_response")) and set(said(trial, "message")) == {0.0}
