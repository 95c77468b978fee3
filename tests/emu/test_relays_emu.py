"""A cache that flows share, on real sockets: what sim says of it, and its death."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from driving import Beside, Person, Watched, end, events, side_by_side

CLIP = "{source: carphone, rate: 200 kbit/s, duration: 2 s}"
TEXT = f"""
id: test/cache
title: Two viewings behind one cache
path:
  down: {{rate: 600 kbit/s, queue: droptail 50 packets, delay: 50 ms}}
  up: {{delay: 50 ms}}
flows:
  first: {{role: subject, system: http, clip: {CLIP}, via: home, congestion_control: reno}}
  second: {{role: subject, system: http, clip: {CLIP}, via: home, start: 4 s}}
relays:
  home: {{system: http-cache, at: client, ecn: on}}
until: {{time: 8 s}}
"""
#: Whose player, unlike those of the others, is not there before the trial has begun.
BESIDE = TEXT.replace("relays:\n", "  beside: {role: rival, traffic: bulk, start: 500 ms}\nrelays:\n")
AT_SERVER = TEXT.replace("at: client, ecn: on", "at: server").replace("test/cache", "test/far")
CACHED, FAR = side_by_side(TEXT), side_by_side(AT_SERVER)


def happened(trial: dict[str, Any], *names: str) -> list[tuple[str, str, float]]:
    """Flow, name and value of those events, in order."""
    return [(row["flow"], row["name"], row["value"]) for row in events(trial, *names)]


def shown(trial: dict[str, Any], flow: str) -> list[float]:
    return [value for whose, _, value in happened(trial, "frame_shown") if whose == flow]


CACHE = ("cache_hit", "cache_miss", "cache_joined", "cache_validated", "cache_error")


def test_the_second_viewing_comes_from_the_cache_as_in_sim(beside: Beside, anyone: Person) -> None:
    emulated, sim = beside(CACHED), anyone.simulated(TEXT)[0]
    for trial in (emulated, sim):
        (whose, what, missed), (whose_too, what_too, hit) = happened(trial, *CACHE)
        assert (whose, what, whose_too, what_too) == ("home", "cache_miss", "home", "cache_hit")
        assert missed == hit > 40_000
        assert [len(shown(trial, flow)) for flow in ("first", "second")] == [50, 50], "both saw all of it"
        assert not events(trial, "stall")
        for flow in ("first", "second"):
            assert trial["flows"][flow]["received_bytes"] == 0, "what the cache hands out crosses no path"
    for name in ("received_bytes", "goodput_bps"):
        one, other = emulated["flows"]["home"][name], sim["flows"]["home"][name]
        assert one == pytest.approx(other, rel=0.02), name
    provenance = json.loads((Path(emulated["directory"]) / "provenance.json").read_text())
    # What the first flow's server has, and what the relay asked for.
    assert provenance["systems"]["home"]["congestion_control_used"] == ["ecn", "reno"]
    record = json.loads((Path(emulated["directory"]) / "trial.json").read_text())
    measured = record["validity"]["measured"]
    # The head of its one response leaves with media.
    assert measured["player_bytes_off.home"] == 0 and measured["witness"] == []
    assert not [name for name in measured if name.startswith("player_") and not name.endswith(".home")]


def test_a_relay_that_dies_makes_the_trial_invalid_and_is_named(anyone: Person) -> None:
    file = anyone.scenario(BESIDE)
    watched = Watched(
        anyone.popen("run", file, "--mode", "emu", "--seed", "1", "--out", str(anyone.out), "--json")
    )
    try:
        relay = watched.find("relay")
        watched.find("emulator")
        watched.find("player")
        os.kill(relay, signal.SIGKILL)
        answer, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert watched.popen.returncode == 2, said
    (trial,) = json.loads(answer)["trials"]
    assert not trial["valid"]
    (death,) = [why for why in trial["why"] if "SIGKILL" in why]
    assert death.startswith("the relay home was killed by SIGKILL, ") and death.endswith(
        " into the trial; see logs/home-relay-*"
    )
    logs = Path(trial["directory"]) / "logs"
    assert '"event":"ready"' in (logs / "home-relay-stdout.log").read_text()


def test_ctrl_c_leaves_no_relay(anyone: Person) -> None:
    watched = Watched(
        anyone.popen("run", anyone.scenario(TEXT), "--mode", "emu", "--seed", "1", "--out", str(anyone.out))
    )
    try:
        watched.find("relay")
        watched.popen.send_signal(signal.SIGINT)
        _, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert "Traceback" not in said
    assert not list(anyone.out.rglob(".seed=*.partial"))


def test_at_the_server_every_viewing_crosses_under_its_own_name(
    beside: Beside,
) -> None:
    trial = beside(FAR)
    assert [what for _, what, _ in happened(trial, *CACHE)] == ["cache_miss", "cache_hit"]
    assert trial["flows"]["home"]["received_bytes"] == 0
    both = [trial["flows"][flow]["received_bytes"] for flow in ("first", "second")]
    assert both[0] == pytest.approx(both[1], rel=0.02) and both[0] > 40_000
