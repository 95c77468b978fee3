"""Exit statuses; docs/records.md lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For checkers alone: every start of the program needs this module, and checks take half a second.
    from streamgauge.checks import Verdict

__all__ = ["INTERNAL", "INTERRUPTED", "STATUS", "VERDICT"]

STATUS: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 2}
"""By verdict."""
VERDICT = {status: verdict for verdict, status in STATUS.items()}
INTERNAL = 70
INTERRUPTED = 130
