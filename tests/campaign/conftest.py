"""Short scenarios for sim."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from short_scenario import SHORT
from streamgauge.scenario import Scenario, from_text


@pytest.fixture
def make() -> Callable[..., Scenario]:
    def build(*settings: str) -> Scenario:
        return from_text(SHORT, settings=settings)[0]

    return build
