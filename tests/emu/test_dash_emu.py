"""Players that adapt, in emu: what each of them fetches, shows and says on a link that takes some of its
levels."""

from __future__ import annotations

import importlib.util
import itertools
import json
import shutil
from typing import Any

import pytest
from driving import Person, events, the_valid_one
from streamgauge.systems.javascript import LIBRARIES
from streamgauge.systems.nginx_dash import PLAYERS

LEVELS = (100_000, 250_000, 800_000)
SECONDS = 15

TEXT = """
id: test/dash
title: A ladder on a link that takes two of its three levels
path:
  down: {{rate: 500 kbit/s, queue: droptail 50 packets, delay: 20 ms}}
  up: {{delay: 20 ms}}
flows:
  video:
    role: subject
    system: nginx-dash
    parameters: {{player: {player}{more}}}
    clip: {{source: testsrc2, ladder: [100k, 250k, 800k], audio: 48 kbit/s, segment: 1 s}}
until: {{time: {seconds} s}}
modes: [emu]
"""

SAYS = {
    "dashjs": {
        "playout_start",
        "buffer",
        "frames_rendered",
        "segment_fetched",
        "estimate",
        "cmcd",
    },
    "hlsjs": {"playout_start", "buffer", "frames_rendered", "segment_fetched", "estimate", "cmcd"},
    "shaka": {"playout_start", "buffer", "frames_rendered", "segment_fetched", "estimate", "cmcd"},
    "gstreamer": {"playout_start", "buffer", "frame_shown", "estimate"},
    "vlc": {"playout_start", "frames_rendered"},
    "mpv": {"play_requested", "buffer"},
    "ffmpeg": {"play_requested"},
}
ADAPTS = ("dashjs", "hlsjs", "shaka", "gstreamer")


def lacking(player: str, http: str) -> str | None:
    """What is not here that a player needs."""
    library = PLAYERS[player].library
    if library:
        if not LIBRARIES[library].path.is_file():
            return f"no {player} (make setup-browsers)"
        return None if shutil.which("chromium") else "no Chromium (make setup-browsers)"
    if http == "3" and importlib.util.find_spec("aioquic") is None:
        return "no aioquic (make setup-browsers)"
    program = "gst-launch-1.0" if player == "gstreamer" else player
    return None if shutil.which(program) else f"no {player}"


def trial_of(person: Person, player: str, http: str = "1.1", more: str = "") -> dict[str, Any]:
    if why := lacking(player, http):
        pytest.skip(why)
    cmcd = ", cmcd: query" if PLAYERS[player].library and "cmcd" not in more else ""
    said = f", http: '{http}'{cmcd}{more}"
    return the_valid_one(person.trials(TEXT.format(player=player, more=said, seconds=SECONDS)))


def plays(trial: dict[str, Any], player: str, http: str) -> None:
    """What is true of each player."""
    said = [one for one in events(trial) if one["flow"] == "video"]
    names = {one["name"] for one in said}
    assert SAYS[player] <= names, (player, sorted(names))
    assert "error" not in names, [one["reason"] for one in said if one["name"] == "error"]
    levels = [one for one in said if one["name"] == "level_changed"]
    assert levels and {one["value"] for one in levels} <= set(LEVELS)
    assert {one["unit"] for one in levels} == {"bit/s"}
    assert all(one["value"] != other["value"] for one, other in itertools.pairwise(levels))
    # The server's own word on the same: what it was asked for, and how.
    sent = [one["reason"] for one in said if one["name"] == "response_sent"]
    version = {"1.1": "HTTP/1.1", "2": "HTTP/2.0", "3": "HTTP/3.0"}[http]
    assert len(sent) > 4 and all(f" {version}" in one for one in sent)
    asked = {int(one.partition("/segment-")[2][0]) for one in sent if "/segment-" in one}
    told = {LEVELS.index(int(one["value"])) for one in levels}
    assert told <= asked, (levels, sent)
    if player in ADAPTS:
        flow = trial["flows"]["video"]
        assert flow["startup_delay_s"] < SECONDS / 2
        # It holds more than it began with, by taking what the link has room for.
        assert max(one["value"] for one in said if one["name"] == "buffer") > 1
    errors = [one["value"] for one in said if one["name"] == "page_clock_error"]
    assert bool(errors) == bool(PLAYERS[player].library) and all(0 < one < 0.05 for one in errors)


@pytest.mark.parametrize("player", ["dashjs", "gstreamer", "mpv"])
def test_a_player_plays_a_ladder(anyone: Person, player: str) -> None:
    plays(trial_of(anyone, player), player, "1.1")


@pytest.mark.long
@pytest.mark.parametrize("player", ["hlsjs", "shaka", "vlc", "ffmpeg"])
def test_other_players_play_a_ladder(anyone: Person, player: str) -> None:
    plays(trial_of(anyone, player), player, "1.1")


@pytest.mark.long
@pytest.mark.parametrize("player", ["dashjs", "hlsjs", "shaka"])
@pytest.mark.parametrize("http", ["2", "3"])
def test_browsers_play_it_over_later_versions_of_http(anyone: Person, player: str, http: str) -> None:
    plays(trial_of(anyone, player, http), player, http)


@pytest.mark.long
@pytest.mark.parametrize("rule", [rule for rule in PLAYERS["dashjs"].rules if rule != "default"])
def test_rules_of_dashjs(anyone: Person, rule: str) -> None:
    trial = trial_of(anyone, "dashjs", more=f", rule: {rule}, cmcd: header")
    plays(trial, "dashjs", "1.1")


@pytest.mark.long
def test_a_browser_pauses_goes_on_and_stops(anyone: Person) -> None:
    if why := lacking("dashjs", "1.1"):
        pytest.skip(why)
    acts = "    events: [{at: 6 s, do: pause}, {at: 9 s, do: resume}]\n    stop: 13 s\n"
    text = TEXT.format(player="dashjs", more="", seconds=SECONDS)
    trial = the_valid_one(anyone.trials(text.replace("until:", f"{acts}until:")))
    said = [one for one in events(trial) if one["flow"] == "video"]
    names = [one["name"] for one in said if one["name"] in ("paused", "resumed", "stopped", "stall")]
    assert names == ["paused", "resumed", "stopped"]
    at_s = {one["name"]: one["time"] / 1e9 for one in said}
    assert at_s["paused"] == pytest.approx(6, abs=0.3) and at_s["resumed"] == pytest.approx(9, abs=0.3)


def test_a_missing_player_is_said_before_anything_starts(anyone: Person) -> None:
    anyone.environment["STREAMGAUGE_PLAYERS"] = str(anyone.home / "nothing")
    file = anyone.scenario(TEXT.format(player="hlsjs", more="", seconds=SECONDS))
    done = anyone.run("run", file, "--mode", "emu", "--out", str(anyone.out))
    assert done.returncode == 4
    last = done.stderr.strip().splitlines()[-1]
    assert "hls.js-" in last and "is missing; " in last and "systems.javascript" in last
    assert not list(anyone.out.rglob("trial.json"))
    told = anyone.run("doctor", "--json")
    found = {one["id"]: one for one in json.loads(told.stdout)["findings"]}
    assert not found["player.hlsjs"]["ok"] and "systems.javascript" in found["player.hlsjs"]["remedy"]
