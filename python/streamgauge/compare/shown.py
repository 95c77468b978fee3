"""The bit rate of the viewer's picture: encoded rates of the shown pictures, over the requested time.

A player that shows every picture of a film of 550 kbit/s has 550 kbit/s; one that shows half of them, or
shows them for half of the time, or shows an encoding of 275 kbit/s throughout, has half of that. It therefore
compares systems that lose pictures, that freeze and that choose another encoding, though each has a metric of
its own that the others lack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from streamgauge.scenario.clips import media_clip
from streamgauge.systems.adapters import has_camera
from streamgauge.units import Frequency, Rate, Time, UnitError

__all__ = ["SHOWN_RATE", "asked_s", "shown_rate"]

SHOWN_RATE = "shown_rate"
"""Its name among compared metrics."""
Json = Mapping[str, Any]


def shown_rate(value: Callable[[str], float], scenario: Json, flow: str) -> float:
    """Returns the bit rate that a flow's viewer sees over a trial: bits of the pictures shown, each counted
    at the rate of its encoding, over `asked_s`. NaN of a flow that plays no clip of a known rate.

    Args:
        value: gives a metric of the flow over the measurement window, NaN where it is not known.
        scenario: the scenario in normalised form.
        flow: the flow's name.
    """
    given = (scenario.get("flows") or {}).get(flow, {})
    clip = None if has_camera(given) else given.get("clip")
    frames, asked = value("frames_shown"), asked_s(value, scenario, flow)
    if clip is None or not math.isfinite(frames) or not asked > 0:
        return math.nan
    if not frames:
        return 0.0
    whole, frames_per_s = _encoding(clip)
    rate = value("shown_level")
    # A player that reports no level shows the one encoding that the clip has.
    return (rate if math.isfinite(rate) else whole) * frames / frames_per_s / asked


def asked_s(value: Callable[[str], float], scenario: Json, flow: str) -> float:
    """For how long a flow's viewer wanted to see something, in s: from the flow's first packet to the end of
    the window, pauses left out. NaN where a time is not fixed."""
    events = (scenario.get("flows") or {}).get(flow, {}).get("events") or []
    try:
        window = (scenario.get("measure") or {}).get("window")
        until = (scenario.get("until") or {}).get("time")
        end = _seconds(window[1]) if window else _seconds(until)
        paused, since = 0.0, math.nan
        for event in sorted(events, key=lambda one: _seconds(one["at"])):
            match event["do"]:
                case "pause":
                    since = _seconds(event["at"])
                case "resume" if math.isfinite(since):
                    paused, since = paused + _seconds(event["at"]) - since, math.nan
                case "stop":
                    end = min(end, _seconds(event["at"]))
    except (UnitError, TypeError, KeyError, ValueError):
        return math.nan
    still = max(0.0, end - since) if math.isfinite(since) else 0.0
    return end - value("start") - paused - still


def _seconds(text: Any) -> float:
    return Time(str(text)).ns / 1e9


def _encoding(clip: str | Json) -> tuple[float, float]:
    """Returns a clip's bit rate, NaN of a ladder, and its frames per second."""
    if isinstance(clip, str):
        encoding = media_clip(clip, Time("1 min"))
        return float(encoding.bit_rate_bps), float(encoding.frame_rate)
    rate = math.nan if clip.get("rate") is None else float(Rate(str(clip["rate"])).bps)
    return rate, float(Frequency(str(clip.get("frame_rate", "25 frames/s"))).per_s)
