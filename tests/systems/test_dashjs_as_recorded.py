"""Sim's dash.js beside the real one, as it was recorded: a film in segments of 4 s, on two links.

`dashjs-film.json` has the bytes of the film's segments at each level, and what real trials of each link
showed.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from streamgauge import _native
from streamgauge.scenario import from_text, lower

RECORDED = json.loads((Path(__file__).parent / "dashjs-film.json").read_text(encoding="utf-8"))
WITHIN = 0.15
SEEDS = 24
"""Sessions on the train take several courses, as real ones do."""
FRAMES = 100
"""Of a segment."""
TRAIN = [(0, 6000), (12, 3500), (20, 900), (26, 60), (38, 2500), (50, 7000), (65, 1800), (72, 50), (80, 4500)]
"""From which second on, kbit/s."""


def step(at_s: int, kbps: int) -> dict[str, str]:
    """A change of the link's rate."""
    return {"at": f"{at_s} s", "rate": f"{kbps} kbit/s"}


LINKS = {
    "steady": ("6 Mbit/s", 45),
    "browser": (
        json.dumps({"steps": [{"at": f"{at} s", "rate": f"{kbps} kbit/s"} for at, kbps in TRAIN]}),
        90,
    ),
}
SCENARIO = """
id: t/film
title: A film by dash.js
path:
  down: {rate: RATE, queue: droptail 200 kB, delay: 30 ms}
  up: {delay: 30 ms}
flows:
  video:
    system: dash
    role: subject
    parameters: {player: dashjs}
    clip: {source: carphone, ladder: [300k, 700k, 1500k, 3000k], segment: 4 s, duration: 90 s}
until: {time: LENGTH s}
"""


def plan(rate: str, length_s: int) -> dict[str, Any]:
    """The scenario with the film's own segments, each of frames of equal size."""
    (scenario,) = from_text(SCENARIO.replace("RATE", rate).replace("LENGTH", str(length_s)))
    made: dict[str, Any] = lower(scenario, "sim", 1)
    levels = made["flows"][0]["app"]["dash"]["ladder"]["video"]
    for level, (rate_bps, sizes) in zip(levels, RECORDED["bytes"].items(), strict=True):
        level["bit_rate_bps"] = int(rate_bps)
        clip = level["clip"]
        assert clip["frame_interval"] * FRAMES == 4_000_000_000
        clip["frame_bytes"] = [size // FRAMES for size in sizes[:-1] for _ in range(FRAMES)]
        clip["frame_bytes"] += [sizes[-1] // (FRAMES // 2)] * (FRAMES // 2)
        clip["key_frames"] = list(range(0, len(clip["frame_bytes"]), FRAMES))
    return made


def shown(made: dict[str, Any], length_s: float) -> tuple[float, int, float, int]:
    """Of the session: bit/s shown while it plays, changes of level, seconds stalled, stalls."""
    _, _, events = _native.simulate_in_memory(json.dumps(made), None)
    told = {name: (times / 1e9, values) for name, _, times, values, _ in events}
    times, rates = told["segment_shown"]
    stalls = told["stall"][0] if "stall" in told else []
    resumes = told["resume"][0] if "resume" in told else []
    standing = list(zip(stalls, [*resumes, length_s][: len(stalls)], strict=True))
    bits, played_s = 0.0, 0.0
    for begin, end, rate in zip(times, [*times[1:], length_s], rates, strict=True):
        still = sum(max(0.0, min(end, over) - max(begin, since)) for since, over in standing)
        bits, played_s = bits + rate * (end - begin - still), played_s + end - begin - still
    changes = sum(one != other for one, other in pairwise(rates))
    return bits / played_s, changes, sum(over - since for since, over in standing), len(standing)


@pytest.mark.parametrize("link", LINKS)
def test_the_bit_rate_shown_and_its_changes_are_those_of_the_real_player(link: str) -> None:
    rate, length_s = LINKS[link]
    made = plan(rate, length_s)
    sessions = [shown(made | {"seed": seed}, length_s) for seed in range(1, SEEDS + 1)]
    bps, changes, stalled_s, stalls = zip(*sessions, strict=True)
    real = RECORDED["real"][link]
    assert mean(bps) == pytest.approx(mean(real["shown_bps"]), rel=WITHIN)
    assert mean(map(float, changes)) == pytest.approx(mean(real["changes"]), rel=WITHIN)
    # How long a player stalls on the train depends on which of two segments it gives up: 2 to 10 s.
    assert min(real["stall_s"]) * (1 - WITHIN) <= min(stalled_s)
    assert max(stalled_s) <= max(real["stall_s"]) * (1 + WITHIN)
    assert {stall > 0 for stall in stalls} == {link == "browser"}
