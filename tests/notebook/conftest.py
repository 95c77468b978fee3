"""Campaigns of short scenarios, as `streamgauge.run` leaves them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import streamgauge as sg

sys.path.insert(0, str(Path(__file__).parent.parent / "campaign"))
from two_scenarios import both


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> sg.Runs:
    """Four trials of each of two scenarios, with packets. Not to be changed."""
    return sg.run(both(), mode="sim", out=tmp_path_factory.mktemp("kept"), progress=False)


@pytest.fixture(scope="session")
def metrics_alone(tmp_path_factory: pytest.TempPathFactory) -> sg.Runs:
    """The same with ``keep="metrics"``."""
    out = tmp_path_factory.mktemp("metrics")
    return sg.run(both(), mode="sim", out=out, keep="metrics", progress=False)
