"""The emulator's measured behaviour on this machine, here and now, against its settings."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgauge.calibrate.run import CalibrationProgress, busy, calibrate

__all__ = ["CalibrationProgress", "busy", "calibrate"]


def __getattr__(name: str) -> object:
    """Returns a public name, imported at its first use (PEP 562): the worker needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'streamgauge.calibrate' has no attribute {name!r}")
    return getattr(importlib.import_module("streamgauge.calibrate.run"), name)
