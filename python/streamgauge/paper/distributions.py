"""A paper's figure of distributions: the percentage of clips with a value up to x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamgauge.checks.published import published_value
from streamgauge.metrics.grid import Floats
from streamgauge.paper.distances import Sample, distances
from streamgauge.paper.gathering import Gathered, population
from streamgauge.paper.panels import (
    DrawnPanels,
    PanelAxis,
    PanelRows,
    across,
    axis_channel,
    axis_of,
    bounded_words,
    counted_trials,
    grid,
    panel_of,
    parts_of,
    scaled,
    shown_number,
    width_of,
)
from streamgauge.paper.published import PaperFigure, scenarios_of
from streamgauge.paper.reading import Reading
from streamgauge.units import Time

__all__ = ["cumulative", "draw_distribution"]

_POINTS = 400
"""Most points of a curve."""
_HEIGHT, _LOW = 300, 190
"""Heights of a lone panel, and of one of several."""


def cumulative(values: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """Returns the corners of the distribution function from `low` to `high`, in per cent of all values: those
    below and above count, also those that are infinite."""
    ordered = np.sort(values)
    places = np.unique(ordered[(ordered >= low) & (ordered <= high)])
    shares = np.searchsorted(ordered, places, side="right")
    if len(places) > _POINTS:
        # At even steps of the share, so that steep stretches keep theirs.
        steps = np.linspace(shares[0], shares[-1], _POINTS)
        kept = np.unique(np.searchsorted(shares, steps).clip(max=len(shares) - 1))
        places, shares = places[kept], shares[kept]
    below, until = (np.searchsorted(ordered, low, "left"), np.searchsorted(ordered, high, "right"))
    x = np.concatenate([[low], places, [high]])
    return x, 100 * np.concatenate([[below], shares, [until]]) / max(1, len(ordered))


def draw_distribution(figure: PaperFigure, reading: Reading, trials: Gathered) -> DrawnPanels | None:
    """Panel by panel as `figure.more` has them; None if it was run in no mode, or a curve has no
    value at all."""
    axis = axis_of(figure.more["x"])
    share = PanelAxis(figure.more.get("y", "clips, %"), 1.0, "", False, (0.0, 100.0))
    panels = across(figure, reading)
    if not panels:
        return None
    found: list[dict[str, Sample]] = []
    counts, lacking = [], 0
    for panel, mode, _ in panels:
        curves = {}
        for curve in panel["curves"]:
            read = _sample(curve, mode, reading, trials)
            if read is None:
                return None
            sample, missing = read
            curves[curve["label"]] = Sample(sample.values / axis.scale, sample.clips)
            counts.append(len(np.unique(sample.clips)) if "ratios" in curve else len(sample))
            lacking += missing
        found.append(curves)
    names = list(dict.fromkeys(name for curves in found for name in curves))
    rows: PanelRows = []
    charts, compared = [], False
    for (panel, _, name), curves in zip(panels, found, strict=True):
        told = _apart(curves, axis)
        compared = compared or bool(told)
        low, high = axis.domain or _domain(panel, list(curves.values()), axis)
        for series, sample in curves.items():
            x, y = cumulative(sample.values, low, high)
            rows += [
                (name, series, "curve", shown_number(float(a)), shown_number(float(b)), "")
                for a, b in zip(x, y, strict=True)
            ]
        rows += _published(name, panel, axis, names)
        kinds = {row[2] for row in rows if row[0] == name}
        parts = parts_of(
            axis_channel("x", axis, (low, high)), axis_channel("y", share, share.domain), names, kinds,
            line="step-after", size=40,
        )  # fmt: skip
        height = _HEIGHT if len(panels) == 1 else _LOW
        charts.append(panel_of(name, parts, width=width_of(len(panels)), height=height, told=told))
    has_clips = any("member" in curve for panel, _, _ in panels for curve in panel["curves"])
    has_ratios = any("ratios" in curve for panel, _, _ in panels for curve in panel["curves"])
    what = "clips" if has_clips or has_ratios else "trials"
    text = f"Cumulative distribution over {what}, {counted_trials(counts, lacking)}."
    if compared:
        text += (
            " KS is Kolmogorov and Smirnov's distance of the two curves, EMD the earth mover's (the area "
            "between them), with 95 % intervals over clips."
        )
    said = [row for row in rows if row[2] == "published"]
    if said:
        colour = ", in the colour of its curve" if any(row[1] for row in said) else ""
        text += f" ◇ what the paper's text says{colour}."
    return DrawnPanels(grid(charts), tuple(rows), text)


def _sample(
    curve: Mapping[str, Any], mode: str, reading: Reading, trials: Gathered
) -> tuple[Sample, int] | None:
    """Returns a curve's values, and how many trials have none; None if there are none at all."""
    if "member" in curve:
        entry = reading.by_id.get(curve["scenario"])
        values = [_of_member(one, curve["member"]) for one in population(entry)] if entry else []
        return (Sample(np.array(values), np.arange(len(values))), 0) if values else None
    samples, missing = [], 0
    for scenario in scenarios_of(curve):
        found = trials.get((scenario, mode))
        if found is None:
            return None
        if "ratios" in curve:
            samples.append(found.all_ratios(curve["ratios"]))
            missing += sum(not len(one) for one in found.ratios[curve["ratios"]])
        else:
            samples.append(found.sample(curve["value"]))
            missing += len(found.seeds) - len(samples[-1])
    whole = Sample(
        np.concatenate([one.values for one in samples]), np.concatenate([one.clips for one in samples])
    )
    return (whole, missing) if len(whole) else None


def _of_member(member: Mapping[str, Any], what: str) -> float:
    """Returns the ``duration`` of a member's clip in s, or how many ``levels`` it has."""
    clip = member["clip"]
    return Time(clip["duration"]).ns / 1e9 if what == "duration" else float(len(clip.get("ladder") or [0]))


def _apart(curves: Mapping[str, Sample], axis: PanelAxis) -> str:
    """Returns how far the two curves of a panel are apart."""
    if len(curves) != 2 or (found := distances(*curves.values())) is None:
        return ""
    largest, area = found
    text = f"KS {bounded_words(largest)}"
    return text if area is None else f"{text}, EMD {bounded_words(area, axis.unit or ' ')}".rstrip()


def _domain(panel: Mapping[str, Any], samples: Sequence[Sample], axis: PanelAxis) -> tuple[float, float]:
    """Returns the range from 0, or the least value if that is below, to the greatest; it includes the values
    in the paper's text."""
    said = [scaled(one["x"], axis) for one in panel.get("published", ())]
    values = np.concatenate([*(sample.values for sample in samples), np.array(said)])
    values = values[np.isfinite(values) & ((values > 0) | (not axis.log))]
    if not len(values):
        return (1.0, 10.0) if axis.log else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if axis.log:
        return low / 1.05, high * 1.05
    low = min(0.0, low)
    room = 0.03 * (high - low) or 1.0
    # A mark at the very begin must not hide in the axis.
    return low - (2 * room if low < 0 or low in said else 0.0), high + room


def _published(name: str, panel: Mapping[str, Any], axis: PanelAxis, names: Sequence[str]) -> PanelRows:
    """Returns marks of the values in the text, each with its name beside it."""
    rows: PanelRows = []
    for one in panel.get("published", ()):
        place = (shown_number(scaled(one["x"], axis)), shown_number(100 * published_value(one["y"])[0]))
        label = one.get("label", "")
        of = one.get("of", "")
        rows.append((name, of if of in names and len(names) > 1 else "", "published", *place, label))
        if label:
            rows.append((name, "", f"published name {one.get('side', 'below')}", *place, label))
    return rows
