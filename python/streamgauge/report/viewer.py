"""The experience of a flow's viewer, in a sentence: start of play, length of freezes, and the share that was
never shown. It precedes the network's view."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from streamgauge.claims.dimension import NUMBER, TIME
from streamgauge.compare.shown import shown_rate
from streamgauge.metrics import METRICS, Interval
from streamgauge.report.model import Group, listed, mean_of, say_half, say_mean
from streamgauge.systems.on_demand import is_on_demand

__all__ = ["VIEWER_METRICS", "has_viewer", "say_count", "shown_rate_of", "viewer_sentence", "viewer_value"]

VIEWER_METRICS = {
    "startup_delay": "start-up",
    "freeze_time": "stood still",
    "stall_time": "stalled",
    "frames_shown": "frames shown",
    "frames_lost": "frames lost",
    "live_latency": "behind live",
}
"""Metrics of the viewer, by our names, with a table's headings; those that a version does not measure are
unknown."""


def has_viewer(group: Group, flow: str) -> bool:
    """Returns whether anything is known of the experience of a flow's viewer."""
    return any(group.over(metric, flow) is not None for metric in VIEWER_METRICS)


def viewer_value(group: Group, metric: str, flow: str) -> Interval | None:
    """Returns the experience of a flow's viewer by one of `VIEWER_METRICS`; None where it is not known, and
    for the distance from live of a film on demand."""
    if metric == "live_latency" and is_on_demand(group.asked(flow)):
        return None
    return group.over(metric, flow)


def shown_rate_of(group: Group, flow: str) -> Interval | None:
    """Returns the bit rate of the pictures that a flow's viewer saw, see `streamgauge.compare.shown`; None
    where it is not known."""
    scenario = next((one.header["scenario"] for one in group.valid if "scenario" in one.header), None)
    if not isinstance(scenario, Mapping):
        return None
    values = []
    for place in range(len(group.valid)):

        def value(metric: str, at: int = place) -> float:
            return float(group.numbers.column(metric, flow)[at])

        values.append(shown_rate(value, scenario, flow))
    return mean_of(np.array(values))


def viewer_sentence(group: Group, flow: str, *, named: bool = False) -> str:
    """Returns one sentence; empty if nothing is known, as for a download without a viewer.

    Args:
        group: the valid trials.
        flow: the watched flow.
        named: whether the flow's name is needed, as there are several.
    """
    if not has_viewer(group, flow):
        return ""
    who = f"The viewer of {flow}" if named else "The viewer"
    begun, shown = group.over("startup_delay", flow), group.over("frames_shown", flow)
    if begun is None and shown is not None and shown.mean == 0:
        return f"{who} saw nothing."
    parts = [f"saw the first picture after {say_mean(begun, 'startup_delay')}"] if begun is not None else []
    parts += _level(group, flow)
    parts += _still(group, flow, shown is not None) + _frames(group, flow, shown)
    behind = viewer_value(group, "live_latency", flow)
    parts += [f"was {say_half(behind, TIME)} behind live"] if behind is not None else []
    return f"{who} {listed(parts)}." if parts else ""


def _level(group: Group, flow: str) -> list[str]:
    """At which bit rate the film was shown, and how often that changed, where there are levels."""
    level, changes = group.over("level", flow), group.over("level_changes", flow)
    if level is None:
        return []
    said = f"was shown {say_mean(level, 'level')}"
    if changes is None:
        return [said]
    one = changes.mean == 1 and not changes.half_width
    return [f"{said} with {say_count(changes, 'level_changes')} change{'' if one else 's'} of level"]


def _still(group: Group, flow: str, has_frames: bool) -> list[str]:
    """Returns how long nothing moved: freezes of the picture, among which are the stalls of a player that
    waits."""
    froze, stalled = group.over("freeze_time", flow), group.over("stall_time", flow)
    said = []
    # Without frames a freeze is invisible, and 0 of them means nothing.
    if froze is not None and (has_frames or froze.mean > 0):
        count = _count(group, flow, "freeze")
        inside = f" ({count})" if count else ""
        time = say_mean(froze, "freeze_time")
        said.append(
            f"saw it stand still for {time} in all{inside}" if froze.mean else "never saw it stand still"
        )
    if stalled is not None and stalled.mean > 0:
        share = group.over("rebuffer_ratio", flow)
        of = "" if share is None else f"{say_mean(share, 'rebuffer_ratio')} of the session"
        inside = ", ".join(filter(None, [_count(group, flow, "stall"), of]))
        time = say_mean(stalled, "stall_time")
        said.append(
            f"waited {time} of it for more to play" if said else f"waited {time} in all for more to play"
        )
        said[-1] += f" ({inside})" if inside else ""
    elif stalled is not None and not said:
        said.append("never waited for more to play")
    return said


def _count(group: Group, flow: str, one: str) -> str:
    """Returns ``8.0 ± 1.6 freezes``; empty if their number is not known."""
    count = group.over(f"{one}_count", flow)
    if count is None:
        return ""
    one_only = count.mean == 1 and not count.half_width
    return f"{say_count(count, f'{one}_count')} {one}{'' if one_only else 's'}"


def say_count(count: Interval, metric: str) -> str:
    """Returns a metric's mean, of a count a whole number where it is one."""
    whole = METRICS[metric].dimension == NUMBER and not count.half_width and count.mean.is_integer()
    return f"{count.mean:.0f}" if whole else say_mean(count, metric)


def _frames(group: Group, flow: str, shown: Interval | None) -> list[str]:
    lost = group.over("frames_lost", flow)
    if lost is None:
        # How many were due is not known either.
        return [] if shown is None else [f"was shown {say_count(shown, 'frames_shown')} frames"]
    if lost.mean == 0:
        return ["missed no frame"]
    return [f"missed {say_mean(lost, 'frames_lost')} of the frames"]
