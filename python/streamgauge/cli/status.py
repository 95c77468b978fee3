"""Exit statuses; docs/records.md lists them."""

from __future__ import annotations

__all__ = ["INTERNAL", "INTERRUPTED", "STATUS"]

STATUS: dict[str, int] = {"pass": 0, "fail": 1, "inconclusive": 2}
"""By verdict."""
INTERNAL = 70
INTERRUPTED = 130
