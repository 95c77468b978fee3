"""Networks that one test uses."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from laboratory import Laboratory


@pytest.fixture
def laboratory() -> Iterator[Laboratory]:
    if os.geteuid() != 0 or shutil.which("nft") is None:
        pytest.skip("a gateway needs root and nft")
    made = Laboratory()
    try:
        yield made
    finally:
        made.close()
