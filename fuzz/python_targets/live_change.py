"""Whatever a page sends is a change of stages that there are, or one line that says why not."""

from __future__ import annotations

import json

from streamgauge.errors import ScenarioError
from streamgauge.live.controls import controls_of, read_change
from streamgauge.scenario import from_text
from streamgauge.scenario.lower import lower

BASE = """
id: fuzz/base
title: base
path:
  down: {rate: 1 Mbit/s, queue: codel 10 kB, delay: 10 ms}
  up: {}
  changes: []
flows:
  tcp: {role: subject, traffic: bulk}
until: {time: 10 s}
"""
PATH = lower(from_text(BASE)[0], "sim", 1)["path"]
CONTROLS = {one.name: one for one in controls_of(PATH)}


def target(data: bytes) -> None:
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        changes, mark, words = read_change(asked, CONTROLS, PATH)
    except ScenarioError as error:
        assert "\n" not in str(error)
        return
    assert changes or mark
    assert words.keys() <= CONTROLS.keys()
    names = {way: {stage["name"] for stage in PATH[way]} for way in ("down", "up")}
    assert all(one["stage"] in names[one["dir"]] for one in changes)
