"""Darwin on real sockets: a valid trial, and the same numbers as in sim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from driving import Person, the_valid_one
from streamgauge.record import Record

TEXT = """
id: test/darwin
title: Reliable UDP on a link that is too slow for its clip
path:
  down: {rate: 240 kbit/s, queue: droptail 10 kB, delay: 40 ms}
  up: {delay: 40 ms}
flows:
  qt: {role: subject, system: darwin, parameters: {preset: paper}, clip: carphone-242k}
  vlc: {role: subject, system: darwin, parameters: {player: vlc}, clip: carphone-100k, start: 2 s}
until: {time: 25 s}
measure: {window: [5 s, 25 s]}
"""


def simulated(person: Person) -> dict[str, Any]:
    out = person.out.parent / "simulated"
    words = ["run", person.scenario(TEXT), "--mode", "sim", "--seed", "1", "--out", str(out), "--json"]
    done = person.run(*words)
    assert done.stdout, f"status {done.returncode}: {done.stderr}"
    (trial,) = json.loads(done.stdout)["trials"]
    assert trial["valid"], trial["why"]
    return dict(trial)


def said(trial: dict[str, Any], flow: str) -> set[str]:
    events = Record.open(Path(trial["directory"])).events
    return {row["name"] for row in events.iter_rows(named=True) if row["flow"] == flow}


def test_sockets_give_what_sim_gives(anyone: Person) -> None:
    emulated, sim = the_valid_one(anyone.trials(TEXT)), simulated(anyone)
    for name in ("qt", "vlc"):
        ours, theirs = emulated["flows"][name], sim["flows"][name]
        assert ours["throughput_bps"] == pytest.approx(theirs["throughput_bps"], rel=0.1)
        assert ours["loss_percent"] == pytest.approx(theirs["loss_percent"], abs=4)
        assert ours["startup_delay_s"] == pytest.approx(theirs["startup_delay_s"], rel=0.25, abs=0.2)
    # Reliable UDP was at work in both, and for QuickTime alone.
    for trial in (emulated, sim):
        assert trial["flows"]["qt"]["rudp_retransmit_packets"] > 0
        assert trial["flows"]["qt"]["rudp_cwnd_mean_bytes"] > 0
        assert trial["flows"]["vlc"]["rudp_cwnd_mean_bytes"] is None
        assert trial["flows"]["qt"]["frames_shown"] > 0
    assert said(emulated, "qt") >= {"rudp_cwnd", "rudp_cut", "frame_shown", "playout_start", "buffer"}
