"""Judges whether a plan's settings of the path took effect, by the record and by the fates of packets."""

from __future__ import annotations

from streamgauge.emu.conditions.judge import Conditions, judge, judge_record

__all__ = ["Conditions", "judge", "judge_record"]
