"""Any text after ``--set`` is an address with a value or an error."""

from __future__ import annotations

from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text

BASE = """
id: fuzz/base
path: {down: {rate: 1 Mbit/s, queue: droptail 10 kB, delay: 10 ms}, up: {}}
flows:
  video:
    role: subject
    system: dash
    clip: {source: carphone, ladder: [100k, 250k], segment: 2 s, duration: 10 s}
  tcp: {role: rival, traffic: bulk, start: video.start + 1 s}
until: {time: 10 s}
"""


def target(data: bytes) -> None:
    settings = data.decode("utf-8", "replace").split("\0")[:4]
    try:
        (scenario,) = from_text(BASE, settings=settings)
    except ScenarioError as error:
        assert error.file is not None
        return
    assert scenario.model_dump(mode="json", by_alias=True)
