"""Two scenarios of some milliseconds, that differ in the congestion control of the flow under test."""

from __future__ import annotations

from short_scenario import SHORT
from streamgauge.scenario import Scenario, from_text

TWO = SHORT.replace("test/short", "test/two").replace("congestion_control: reno", "congestion_control: cubic")


def short(*settings: str) -> Scenario:
    return from_text(SHORT, settings=settings)[0]


def both() -> list[Scenario]:
    return [short(), from_text(TWO)[0]]
