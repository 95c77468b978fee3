"""The scenario in words: relays, and what is drawn of a population, which is never given as one trial's."""

from __future__ import annotations

import re

import pytest
from streamgauge.report import LoadedTrial, gather
from streamgauge.report.drawing import path_drawing
from streamgauge.report.model import Entry
from streamgauge.report.words import drawn_words, flows_words
from streamgauge.scenario import from_text, lower

TEXT = """\
id: my/words
title: What a reader is told
path:
  down: {rate: 2 Mbit/s, queue: droptail 100 ms}
flows:
  video: {role: subject, system: rtp, clip: carphone-100k}
until: {time: 3 s}
"""
LADDER = "{source: carphone, ladder: [100 kbit/s, 200 kbit/s, 400 kbit/s], duration: 6 s}"
ONE = "{source: carphone, rate: 100 kbit/s, duration: 6 s}"


def entry_of(*settings: str, text: str = TEXT) -> Entry:
    """Of a trial that left nothing to measure."""
    (made,) = from_text(text, settings=settings)
    scenario = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    plan = lower(made, "sim", 1) if "sim" in made.modes else {}
    header = {
        "scenario": scenario,
        "plan": plan,
        "mode": "sim",
        "validity": {"valid": False, "why": ["none"]},
    }
    (entry,) = gather([LoadedTrial(header, {}, None)], checks=())
    return entry


@pytest.mark.parametrize(
    ("population", "clip", "drawn", "told"),
    [
        ("encodings: [1, 2]", LADDER, "1 to 2 encodings of the ladder",
         "carphone at encodings of the population for 6 s"),
        ("encodings: [2, 2]", LADDER, "2 encodings of the ladder",
         "carphone at encodings of the population for 6 s"),
        ("encodings: [1, 1], duration: uniform 2 s to 3 s", LADDER,
         "duration uniform 2 s to 3 s; 1 encoding of the ladder",
         "carphone at encodings of the population for a duration of the population"),
        ("duration: uniform 2 s to 3 s", ONE, "duration uniform 2 s to 3 s",
         "carphone at 100 kbit/s for a duration of the population"),
        ("duration: uniform 2 s to 3 s", "bikes-1M", "duration uniform 2 s to 3 s",
         "bikes-1M for a duration of the population"),
        ("rate: uniform 100 kbit/s to 300 kbit/s", ONE, "bit rate uniform 100 kbit/s to 300 kbit/s",
         "carphone at a bit rate of the population for 6 s"),
        ("rate: uniform 100 kbit/s to 300 kbit/s", "bikes-1M", "bit rate uniform 100 kbit/s to 300 kbit/s",
         "bikes at a bit rate of the population"),
        ("rtt: uniform 20 ms to 40 ms", ONE, "base RTT uniform 20 ms to 40 ms",
         "carphone at 100 kbit/s for 6 s"),
    ],
)  # fmt: skip
def test_what_is_drawn_is_named_and_no_clip_has_it(population: str, clip: str, drawn: str, told: str) -> None:
    video = f"{{role: subject, system: {{server: ./serve, player: ./play}}, clip: {clip}}}"
    entry = entry_of(f"flows.video={video}", "modes=[emu]", f"population={{size: 3, {population}}}")
    assert f"Each trial has a member of 3 of its own: {drawn}." in drawn_words(entry)
    (line,) = flows_words(entry)
    assert f", clip {told}, from 0 s" in line


RELAYED = """\
id: my/cache
title: Two behind a cache
path:
  down: {rate: 2 Mbit/s, queue: droptail 100 ms}
flows:
  first: {role: subject, system: http, clip: carphone-100k, via: home}
  second: {role: rival, system: http, clip: carphone-100k, via: far, start: 1 s}
  third: {role: rival, system: http, clip: carphone-100k, start: 2 s}
relays:
  home: {system: http-cache, at: client, parameters: {capacity: 0 B}}
  far: {system: http-cache, at: server, congestion_control: reno}
until: {time: 3 s}
"""


def test_relays_are_told_of_and_who_goes_through_them() -> None:
    assert flows_words(entry_of(text=RELAYED)) == [
        "first (subject): http, clip carphone-100k, through http-cache home at the client, from 0 s",
        "second (cross traffic): http, clip carphone-100k, through http-cache far at the server, from 1 s",
        "third (cross traffic): http, clip carphone-100k, from 2 s",
        "home (relay): http-cache, capacity 0 B, at the client; ours",
        "far (relay): http-cache, reno, at the server; ours",
    ]


def test_a_relay_stands_in_the_drawing_at_its_end() -> None:
    picture = path_drawing(entry_of(text=RELAYED))
    ends = dict(re.findall(r'class="head">(server|player)</text>(.*?)<(?:rect|path)', picture))
    small = {end: re.findall(r'class="small">([^<]*)<', words) for end, words in ends.items()}
    assert small == {"server": ["far (relay)", "first", "second", "third"], "player": ["home (relay)"]}
