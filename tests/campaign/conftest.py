"""Short scenarios for sim."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator

import pytest
from short_scenario import SHORT
from streamgauge.scenario import Scenario, from_text


@pytest.fixture(autouse=True)
def dask_as_it_was() -> Iterator[None]:
    """What a test has Dask read from a file holds for its process."""
    before = copy.deepcopy(sys.modules["dask"].config.config) if "dask" in sys.modules else None
    yield
    if "dask" in sys.modules:
        config = sys.modules["dask"].config
        if before is None:
            config.config.pop("scheduler-address", None)
        else:
            config.config.clear()
            config.config.update(before)


@pytest.fixture
def make() -> Callable[..., Scenario]:
    def build(*settings: str) -> Scenario:
        return from_text(SHORT, settings=settings)[0]

    return build
