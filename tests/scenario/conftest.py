"""A small scenario that the tests bend."""

from __future__ import annotations

import pytest
from small_scenario import BASE


@pytest.fixture
def base() -> str:
    return BASE
