"""What a stranger does, as tests. Those that need namespaces have the people of tests/emu, and their mark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "emu"))

from people import *  # noqa: F403
from stranger import Stranger

PEOPLE = {"person", "resident", "anyone"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and PEOPLE & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.emu)


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    """In an empty folder."""
    return Stranger(tmp_path)
