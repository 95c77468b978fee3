"""Whether what a plan does to the path took effect: by the record alone, and by what packets met there."""

from __future__ import annotations

from streamgauge.emu.conditions.judge import Conditions, judge, judge_record

__all__ = ["Conditions", "judge", "judge_record"]
