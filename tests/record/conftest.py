"""One small record from sim, copied for each test that harms it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small import make


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record that nobody changes."""
    return make(tmp_path_factory.mktemp("records") / "whole")


@pytest.fixture
def spoilt(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    return copy
