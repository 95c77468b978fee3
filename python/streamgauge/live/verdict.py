"""A trial's validity, as far as it is known while the trial runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.claims.dimension import plain

__all__ = ["Verdict"]


class Verdict:
    """In a few words, from the emulator's own account. Findings that need a whole record follow at the
    end."""

    def __init__(self, mode: str, bound_s: float, over_service: float) -> None:
        self._mode = mode
        self._bound_s = bound_s
        self._over_service = over_service

    def of(self, sample: Mapping[str, Any]) -> str:
        """Such as ``valid, late p99 38 us``."""
        if self._mode == "sim":
            return "valid, no clock to be late by"
        late = sample["late"]
        packets, p99 = late["packets"], late["p99_s"]
        if not packets:
            return "valid, no packet yet"
        why = []
        if p99 > self._bound_s:
            why.append(f"late p99 {_time(p99)} of at most {_time(self._bound_s)}")
        if late["over_service"] > self._over_service * packets:
            why.append(f"{late['over_service']} of {packets} packets late by more than their length")
        if sample["own_losses"]:
            why.append(f"the emulator lost {sample['own_losses']} packets")
        if why:
            return f"INVALID: {'; '.join(why)}"
        return f"valid, late p99 {_time(p99)}"


def _time(seconds: float) -> str:
    return f"{plain(seconds * 1e6, 3)} us" if seconds < 1e-3 else f"{plain(seconds * 1e3, 3)} ms"
