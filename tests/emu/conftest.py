"""Every emu test runs as root and as an ordinary user with a home of his own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from driving import CHECKOUT
from people import *  # noqa: F403

# The odd trials and the faults that the bench counts, by the file: a folder of benches is called ns3, as is
# the module of ns-3.
_found = importlib.util.spec_from_file_location("verdict_trials", CHECKOUT / "benches" / "verdict_trials.py")
assert _found is not None and _found.loader is not None
sys.modules[_found.name] = importlib.util.module_from_spec(_found)
_found.loader.exec_module(sys.modules[_found.name])

# Need neither Linux nor a lock.
PURE = (
    "test_agreement",
    "test_conditions",
    "test_endings",
    "test_events",
    "test_in_order",
    "test_media",
    "test_taps",
    "test_verdict",
    "test_verdict_relays",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.stem not in PURE:
            item.add_marker(pytest.mark.emu)
