"""``population.members``: a playlist that is written down, played by several flows at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from streamgauge.campaign import run
from streamgauge.errors import ScenarioError
from streamgauge.record import Record
from streamgauge.scenario import Scenario, from_text, lower
from streamgauge.scenario.catalogue import catalogue_folder
from streamgauge.scenario.catalogue import load as load_scenarios
from streamgauge.scenario.lower import as_drawn
from streamgauge.scenario.words import in_words

ROOT = Path(__file__).parents[2]
TEXT = """\
id: test/members
title: The same clip twice
path:
  down: {rate: 300 kbit/s, queue: droptail 10 kB}
flows:
  one: {role: subject, system: realvideo, clip: {source: carphone, rate: 100 kbit/s}}
  two:
    role: subject
    system: realvideo
    parameters: {transport: tcp}
    clip: {source: carphone, rate: 100 kbit/s}
  ping: {role: rival, traffic: ping}
population:
  flow: [one, two]
  members:
  - {clip: {source: carphone, ladder: [20k, 60k], audio: 8 kbit/s, duration: 8 s}, rtt: 80 ms, loss: 1 %}
  - {clip: {source: carphone, rate: 34 kbit/s, audio: 8 kbit/s, duration: 5 s}, rtt: 41 ms, loss: 0 %}
until: {idle: 5 s, time: 100 s}
repetitions: {sim: 2}
"""


def scenario(*settings: str, text: str = TEXT) -> Scenario:
    (made,) = from_text(text, settings=settings)
    return made


def refused(*settings: str, text: str = TEXT) -> str:
    with pytest.raises(ScenarioError) as caught:
        from_text(text, settings=settings)
    return str(caught.value)


def test_each_trial_plays_a_member_in_all_of_its_flows() -> None:
    made = scenario()
    for seed, (rates, rtt_ns, down_ns, seconds) in {
        1: ([20_000, 60_000], 80_000_000, 40_000_000, 8),
        2: ([26_000], 41_000_000, 20_500_000, 5),
        3: ([20_000, 60_000], 80_000_000, 40_000_000, 8),
    }.items():
        plan = lower(made, "sim", seed)
        for flow in plan["flows"][:2]:
            ladder = flow["app"]["realvideo"]["ladder"]
            assert [level["bit_rate_bps"] for level in ladder["video"]] == rates
            assert ladder["video"][0]["clip"]["duration"] == seconds * 10**9
        drawn = as_drawn(made, "sim", seed)
        assert drawn.path.down.delay is not None and drawn.path.up.delay is not None
        assert drawn.path.down.delay.ns == down_ns
        assert drawn.path.down.delay.ns + drawn.path.up.delay.ns == rtt_ns
    assert "2 members, one a trial; each with its clip and its path" in "\n".join(in_words(made))


def test_a_ping_does_not_keep_a_trial_from_ending(tmp_path: Path) -> None:
    made = scenario()
    done = run([made], {made.id: ["sim"]}, tmp_path)
    ends = [Record.open(outcome.job.directory).trial["duration_s"] for outcome in done.outcomes]
    assert len(ends) == 2
    assert all(10 < end < 60 for end in ends), ends


def test_members_may_stand_in_a_file_beside_the_scenario(tmp_path: Path) -> None:
    head, _, rest = TEXT.partition("  members:\n")
    (tmp_path / "list.json").write_text(
        json.dumps([{"clip": {"source": "carphone", "rate": "34 kbit/s", "duration": "5 s"}}])
    )
    file = tmp_path / "mine.yaml"
    file.write_text(head + "  members: list.json\n" + rest[rest.index("until:") :])
    (made,) = load_scenarios(file)
    assert made.population is not None and made.population.count == 1
    for name, what, remedy in (
        ("none.json", "cannot be read", "paths are relative"),
        ("map.json", "has no list of members", "a line for each"),
    ):
        (tmp_path / "map.json").write_text("{}")
        file.write_text(head + f"  members: {name}\n" + rest[rest.index("until:") :])
        with pytest.raises(ScenarioError) as caught:
            load_scenarios(file)
        assert what in str(caught.value) and remedy in str(caught.value) and name in str(caught.value)


def test_what_makes_no_sense_is_refused_by_its_key() -> None:
    assert "population.rate" in refused("population.rate=uniform 50 kbit/s to 60 kbit/s")
    assert "population.flow" in refused("population.flow=[one, ping]")
    assert "member 2 has no 'rtt'" in refused(text=TEXT.replace(", rtt: 41 ms", ""))
    assert "path.down.delay" in refused("path.down.delay=10 ms")
    assert "either a 'size', 'clips' or 'members'" in refused("population.size=2")
    one = TEXT.replace("system: realvideo, clip", "system: darwin, clip").replace("one, two", "one")
    assert "population.members.0.clip.ladder" in refused(text=one)


def test_the_playlists_that_ship_are_what_is_drawn() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "playlists.py", "--check"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr


def test_the_band_of_playlists_has_numbers(tmp_path: Path) -> None:
    script = [sys.executable, ROOT / "scripts" / "playlist_band.py", "--playlists", "2", "--repeat", "2"]
    done = subprocess.run([*script, "--out", tmp_path], check=True, capture_output=True, text=True)
    row = next(line.split() for line in done.stdout.splitlines() if " RV-2 " in line and "-300" in line)
    first, least, median, most = map(float, row[2:6])
    assert 0.02 < least <= median <= most < 2 and least <= first <= most and row[6] == "s,"


def test_a_playlist_has_what_the_paper_says_of_it() -> None:
    folder = catalogue_folder() / "realvideo" / "playlists"
    files = sorted(folder.glob("??.json"))
    assert len(files) == 20
    lengths = []
    for file in files:
        members = json.loads(file.read_text())
        assert len(members) == 79
        levels = [len(member["clip"].get("ladder", [0])) for member in members]
        # RV-16: 35 % have one level, less than half have more than four.
        assert levels.count(1) == 28 and sum(count > 4 for count in levels) == 39
        rates = [int(member["clip"]["rate"].split()[0]) for member in members if "rate" in member["clip"]]
        # RV-17: of these 40 % need more than 150 kbit/s.
        assert sum(rate > 150 for rate in rates) == 11
        seconds = [int(member["clip"]["duration"].split()[0]) for member in members]
        assert min(seconds) >= 20 and max(seconds) <= 1800
        lengths += seconds
    # RV-1: the median of all is three minutes.
    assert 160 <= sorted(lengths)[len(lengths) // 2] <= 200


def test_the_exact_playlist_is_the_papers_in_its_median_and_its_levels() -> None:
    members = json.loads((catalogue_folder() / "realvideo" / "playlists" / "01-exact.json").read_text())
    seconds = sorted(int(member["clip"]["duration"].split()[0]) for member in members)
    assert (len(seconds), seconds[0], seconds[39], seconds[-1]) == (79, 20, 180, 1800)
    levels = [len(member["clip"].get("ladder", [0])) for member in members]
    assert levels.count(1) == 28 and sum(count > 4 for count in levels) == 34
    # RV-17: of those of 3 to 5 levels more than half cannot come below 50 kbit/s.
    few = [member["clip"] for member in members if 3 <= len(member["clip"].get("ladder", [])) <= 5]
    lowest = [int(clip["ladder"][0][:-1]) + int(clip["audio"].split()[0]) for clip in few]
    assert sum(rate >= 50 for rate in lowest) > len(few) / 2
