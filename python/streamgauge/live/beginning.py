"""A session of a plan, with emu's own bounds of lateness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streamgauge.emu.expectation import base_rtt_s
from streamgauge.emu.validity import LATE_OVER_SERVICE, LATENESS_OF_RTT, SMALLEST_LATENESS_S
from streamgauge.live.session import LiveSession
from streamgauge.live.verdict import Verdict

__all__ = ["session_for"]


def session_for(
    plan: Mapping[str, Any],
    *,
    title: str,
    mode: str,
    scenario: Callable[[list[dict[str, Any]], int], str],
    say: Callable[[str], None],
) -> LiveSession:
    """Returns a session of a plan, with emu's own bounds of lateness."""
    bound_s = max(SMALLEST_LATENESS_S, LATENESS_OF_RTT * base_rtt_s(plan))
    verdict = Verdict(mode, bound_s, LATE_OVER_SERVICE)
    return LiveSession(plan, verdict, title=title, mode=mode, scenario=scenario, say=say)
