"""The ladder that a flow plays, as far as its plan and the scenario say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.media import ClipEncoding, content_given
from streamgauge.metrics.frame import Trial
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.scenario.flow import Clip

SEGMENT_S = 2.0
"""How long segments are taken to be where nobody says it."""


@dataclass(frozen=True)
class LadderRates:
    """What is known of a ladder without its frames."""

    rates_bps: tuple[int, ...]
    """Of its pictures, the lowest first; empty if nobody says."""
    segment_s: float


def ladder_rates(trial: Trial, flow: int) -> LadderRates:
    """Of our machines by the plan, of programs of others by what they were given, else by the scenario."""
    app = trial.plans[flow].get("app", "external")
    if isinstance(app, Mapping):
        ladder = next(iter(app.values())).get("ladder") or {}
        rates = tuple(int(level["bit_rate_bps"]) for level in ladder.get("video", ()))
        return LadderRates(rates, ladder.get("segment", 0) / SECOND_NS or SEGMENT_S)
    if (given := content_given(trial.plans[flow], trial.folder)) is not None:
        rates = tuple(sorted(encoding.bit_rate_bps for encoding in given.video.encodings))
        return LadderRates(rates, _mean_segment_s(given.boundaries_ns().tolist(), given.duration_ns))
    return _asked(trial.asked[flow].get("clip"))


def _mean_segment_s(begins_ns: list[int], duration_ns: int) -> float:
    return duration_ns / len(begins_ns) / SECOND_NS


def _asked(named: Any) -> LadderRates:
    """Of a clip as a scenario (normalised) has it."""
    if named is None:
        return LadderRates((), SEGMENT_S)
    if isinstance(named, str):
        return LadderRates((ClipEncoding.named(named, duration_s=1).bit_rate_bps,), SEGMENT_S)
    clip = Clip.model_validate(named)
    rates = clip.ladder or (() if clip.rate is None else (clip.rate,))
    return LadderRates(
        tuple(rate.bps for rate in rates), SEGMENT_S if clip.segment is None else clip.segment.s
    )
