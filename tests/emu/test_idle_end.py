"""A trial that ends after so long without a packet ends then, and not so long after it began."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from driving import Person, the_valid_one

TEXT = """
id: test/idle
title: A clip that ends by itself
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows:
  video: {role: subject, system: rtp, clip: {source: carphone, rate: 100 kbit/s, duration: 10 s}}
until: {idle: 4 s, time: 60 s}
"""


def lasted_s(trial: dict[str, Any]) -> float:
    header = json.loads((Path(trial["directory"]) / "trial.json").read_text(encoding="utf-8"))
    return float(header["duration_s"])


def test_it_ends_as_in_sim(anyone: Person) -> None:
    emulated, sim = the_valid_one(anyone.trials(TEXT)), anyone.simulated(TEXT, 1)[0]
    assert 10 < lasted_s(sim) < 60
    assert lasted_s(emulated) == pytest.approx(lasted_s(sim), abs=1)


def test_a_flow_that_is_yet_to_start_is_waited_for(anyone: Person) -> None:
    later = TEXT.replace("rtp, clip", "rtp, start: 6 s, clip").replace("duration: 10 s", "duration: 4 s")
    emulated, sim = the_valid_one(anyone.trials(later)), anyone.simulated(later, 1)[0]
    assert lasted_s(sim) > 10
    assert lasted_s(emulated) == pytest.approx(lasted_s(sim), abs=1)
