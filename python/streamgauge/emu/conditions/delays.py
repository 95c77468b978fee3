"""Each packet's delay, to the nanosecond where it is fixed, by its distribution where it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.emu.conditions import timeline
from streamgauge.emu.conditions.chances import drawn_from, least_jitter
from streamgauge.emu.conditions.rows import Numbers, Rows
from streamgauge.emu.conditions.timeline import spans, switches

FEW = 50
"""Fewer packets than these do not show a distribution."""


def _in_force(settings: list[tuple[int, int]], t_in: Numbers) -> Numbers:
    times = np.array([at for at, _ in settings])
    values = np.array([value for _, value in settings])
    return np.asarray(values[np.searchsorted(times, t_in, side="right") - 1])


def delay(settings: Mapping[str, Any], rows: Rows, duration: int) -> tuple[list[str], int]:
    """Faults, a sentence each, and how many spans were judged; see `stages`."""
    jitter = settings.get("jitter")
    steps = timeline.delays(settings)
    # A packet that is held at the end would have left after all that did, and changes nothing.
    left = rows.delivered
    t_in, t_out, flow = rows.t_in[left], rows.t_out[left], rows.flow[left]
    extras = {int(index): int(extra) for index, extra in settings.get("flows") or ()}
    fixed = t_in + _in_force(steps, t_in)
    for index, extra in extras.items():
        fixed = fixed + np.where(flow == index, extra, 0)
    edge = np.isin(t_in, [at for at, _ in steps[1:]])
    drawn = np.zeros(len(t_in), dtype=bool)
    if jitter is not None:
        toggles = switches(jitter)
        edge |= np.isin(t_in, [at for at, _ in toggles[1:]])
        edge |= np.isin(t_in, [at for at, one in settings.get("changes") or () if "jitter" in one])
        drawn = _in_force([(at, int(on)) for at, on in toggles], t_in) == 1
    # Where draw or setting is unknown, the record's own value counts: the rows before and after it are
    # judged.
    due = np.where(drawn | edge, t_out, fixed)
    if jitter is None or jitter.get("keep_order", True):
        for pipe in [flow == index for index in extras] + [~np.isin(flow, list(extras))]:
            due[pipe] = np.maximum.accumulate(due[pipe]) if pipe.any() else due[pipe]
    faults, judged = [], 0
    for span in spans(steps, duration):
        here = (t_in > span.begin) & (t_in < span.end)
        judged += bool(here.any())
        wrong = int((here & (due != t_out)).sum())
        if wrong:
            faults.append(f"{wrong} of {int(here.sum())} packets were not delayed as the plan says {span}")
    if jitter is not None:
        more, count = _jitter(
            jitter, settings.get("changes"), t_in, t_out - fixed, fixed - t_in, drawn & ~edge, duration
        )
        faults, judged = faults + more, judged + count
    return faults, judged


def _jitters(jitter: Mapping[str, Any], changes: Any) -> list[tuple[int, Any]]:
    """Returns the distribution in force over time; None while there is none. A change holds from then on."""
    own = [(at, jitter["distribution"] if on else None) for at, on in switches(jitter)]
    later = [
        (int(at), {"uniform": {"spread": one["jitter"]}}) for at, one in changes or () if "jitter" in one
    ]
    found = dict(own)
    found.update({at: value for at, value in later if at > 0})
    return sorted(found.items(), key=lambda one: one[0])


def _jitter(
    jitter: Mapping[str, Any],
    changes: Any,
    t_in: Numbers,
    added: Numbers,
    base: Numbers,
    drawn: Any,
    duration: int,
) -> tuple[list[str], int]:
    """Returns the delay that was `added` to the `base` delay of each packet with a draw, ns."""
    faults, judged = [], 0
    for span in spans(_jitters(jitter, changes), duration):
        here = drawn & (t_in > span.begin) & (t_in < span.end)
        if span.value is None or here.sum() < FEW:
            continue
        distribution = span.value
        least = least_jitter(distribution)
        judged += 1
        draws = added[here]
        low = int((draws < np.maximum(-base[here], least if least is not None else draws.min())).sum())
        if low:
            faults.append(f"{low} packets were delayed by less than jitter allows {span}")
        if timeline.jitter_size(distribution) > 0 and len(np.unique(draws)) == 1:
            faults.append(f"all {len(draws)} packets had the same delay {span}, while jitter was on")
        # Kept in order, a packet's delay is also that of those before it; nor is one cut off at zero a draw.
        whole = int(draws.min()) > -int(base[here].min())
        if not jitter.get("keep_order", True) and whole and not drawn_from(draws, distribution):
            faults.append(f"the delays of {len(draws)} packets {span} are not of the plan's distribution")
    return faults, judged
