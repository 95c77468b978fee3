"""Trials that are shown while they run need what the page is served by."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="starlette is not here (the extra 'live'; make setup installs it)")
pytest.importorskip("uvicorn", reason="uvicorn is not here (the extra 'live'; make setup installs it)")
