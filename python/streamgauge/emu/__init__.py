"""emu: a scenario for real. Server and player processes and the kernel's TCP in network namespaces, joined by
our link emulator, inside a sandbox that vanishes with the trial.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamgauge.emu.doctor import Finding, cannot_run, examine
    from streamgauge.emu.errors import TrialBrokenError
    from streamgauge.emu.options import EmuOptions
    from streamgauge.emu.trial import run_trial

__all__ = ["EmuOptions", "Finding", "TrialBrokenError", "cannot_run", "examine", "run_trial"]

_HOMES = {
    "EmuOptions": "options",
    "Finding": "doctor",
    "TrialBrokenError": "errors",
    "cannot_run": "doctor",
    "examine": "doctor",
    "run_trial": "trial",
}


def __getattr__(name: str) -> Any:
    """Imported when asked for: a trial brings polars along, which `streamgauge link` has no time for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
