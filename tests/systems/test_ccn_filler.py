"""What a simulated Data carries is filler, without a signature; where segments of TCP make zeros of it, it is
read all the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamgauge import _native
from streamgauge.scenario import from_text, lower

SCENARIO = """
id: t/ccn-filler
title: Small segments over TCP
path:
  down: {rate: 2 Mbit/s, delay: 10 ms, queue: droptail 20 kB, loss: 1 %}
  up: {delay: 10 ms}
flows:
  video:
    system: ccn
    role: subject
    parameters: {transport: tcp, interest_window: 20, chunk: CHUNK, metadata: METADATA}
    clip: {source: carphone, ladder: [100k, 200k, 400k], segment: 2 s, duration: 400 s}
until: {time: 20 s}
"""


@pytest.mark.parametrize("chunk", ["64 B", "256 B", "1000 B", "4096 B"])
@pytest.mark.parametrize("metadata", ["on", "off"])
def test_every_data_is_read(chunk: str, metadata: str) -> None:
    (scenario,) = from_text(SCENARIO.replace("CHUNK", chunk).replace("METADATA", metadata))
    text, _, events = _native.simulate_in_memory(json.dumps(lower(scenario, "sim", 1)), None)
    told: dict[str, Any] = {name: len(times) for name, _, times, *_ in events}
    assert told["object_fetched"] > 5
    # TCP brings all of it: what is asked for again was not understood.
    assert "interest_timeout" not in told and "face_down" not in told
    assert json.loads(text)["flows"]
