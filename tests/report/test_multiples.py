"""Small multiples: what stands beside lines, what is off the scale, what a page is told."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.report.chart import BLUE, VERMILION, DrawnFigure
from streamgauge.report.courses import GroupCourse
from streamgauge.report.multiples import COLUMNS, multiples
from streamgauge.report.plot_words import _apart
from streamgauge.report.plots import Column, Plot, PlotBlock, PlotLine, Threshold

HEIGHT = 11.5


@given(st.lists(st.floats(-50, 200), min_size=1, max_size=9), st.floats(10, 150))
def test_labels_do_not_overlap_and_keep_their_order(wanted: list[float], height: float) -> None:
    found = _apart(wanted, height)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [found[i] for i in order]
    assert all(later - earlier >= HEIGHT - 1e-6 for earlier, later in pairwise(placed))
    if HEIGHT * len(wanted) <= height:
        assert placed[0] >= -1e-6 and placed[-1] <= height + 1e-6


def test_labels_that_have_room_stay_where_their_lines_end() -> None:
    assert _apart([80.0, 10.0, 40.0], 100.0) == [80.0, 10.0, 40.0]


def course(*values: float, single: int = 3) -> GroupCourse:
    found = np.array(values, dtype=float)
    edges = np.arange(len(found) + 1, dtype=float)
    begins, ends = edges[:-1], edges[1:]
    each = np.array([found + n for n in range(single)])
    known = np.full(len(found), single)
    middles = (begins + ends) / 2
    return GroupCourse(begins, ends, middles, found, found, found - 1, found + 1, known, single, each)


def drawn(*lines: PlotLine, limit: float | None = None, **more: Any) -> DrawnFigure:
    bounds = []
    if limit is not None:
        bounds = [Threshold("capacity", f"capacity {limit:g} kbit/s", {"sim": [(0.0, limit), (4.0, limit)]})]
    plot = Plot("Received, kbit/s", 80, 1.0, lines, bounds, **more)
    colours = {line.series: colour for line, colour in zip(lines, (BLUE, VERMILION), strict=False)}
    column = Column("sim", "sim, n = 3", [(1.0, 2.0)], "cross sends")
    return multiples("f", "F", "", [PlotBlock([plot], [column], 4.0)], colours | {"capacity": "#777777"})


def texts(figure: DrawnFigure) -> list[str]:
    """All words that stand in a figure."""
    found: list[str] = []

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            found.extend([part["text"]] if isinstance(part.get("text"), str) else [])
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    walk(figure.spec)
    return found


def test_a_bound_is_shown_or_said_to_be_off_the_scale() -> None:
    line = PlotLine("video", {"sim": course(1, 2, 10, 5)})
    near, far = drawn(line, limit=12), drawn(line, limit=2000)
    assert "capacity" in texts(near) and not any("off the scale" in text for text in texts(near))
    assert "↑ capacity 2000 kbit/s, off the scale" in texts(far) and "capacity" not in texts(far)
    (top,) = [plot["top"] for plot in far.spec["usermeta"]["streamgauge"]["plots"]]
    assert top == pytest.approx(1.06 * 11), "up to the band's edge, as without the capacity"


def test_a_line_is_broken_where_nothing_is_known() -> None:
    gap = float("nan")
    rows = drawn(PlotLine("video", {"sim": course(gap, 2, gap, gap, 5, gap)})).rows
    assert [row[6] for row in rows] == [2.0, None, 5.0]
    assert [(row[7], row[8]) for row in rows] == [(1.0, 3.0), (None, None), (4.0, 6.0)]


def test_bars_of_equal_height_are_one_and_stand_on_their_row() -> None:
    line = PlotLine("video frozen", {"sim": course(0, 0.5, 0.5, 1.0)}, "bar")
    other = PlotLine("video stalled", {"sim": course(0, 0, 0, 0)}, "bar")
    figure = drawn(line, other)
    assert [row[4:7] for row in figure.rows] == [(1.0, 3.0, 0.5), (3.0, 4.0, 1.0)]
    (plot,) = figure.spec["usermeta"]["streamgauge"]["plots"]
    assert plot["bars"] == ["video frozen", "video stalled"] and plot["top"] == 2


def test_names_shading_and_modes_are_in_the_picture() -> None:
    figure = drawn(PlotLine("video", {"sim": course(1, 2, 3, 4)}))
    assert {"Received, kbit/s", "video", "cross sends", "sim, n = 3"} <= set(texts(figure))
    assert figure.columns == COLUMNS
    assert alt.Chart.from_dict(figure.vega_lite(), validate=True) is not None


def test_a_page_is_told_single_trials() -> None:
    figure = drawn(PlotLine("video", {"sim": course(1, 2, 10, 5)}))
    single = figure.beside["single"]
    (plot,) = figure.spec["usermeta"]["streamgauge"]["plots"]
    assert single["times"] == [0.5, 1.5, 2.5, 3.5]
    for n, text in enumerate(single["plots"][plot["name"]]["video"]):
        steps = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
        values = np.minimum(np.array([1, 2, 10, 5]) + n, plot["top"])
        assert np.allclose(steps / 250 * plot["top"], values, atol=plot["top"] / 250)


def test_words_of_a_flow_cannot_leave_their_expression() -> None:
    name = "a' || true || \"b\\"
    plot = Plot(name, 80, 1.0, [PlotLine(name, {"sim": course(1, 2)})])
    figure = multiples("f", "F", "", [PlotBlock([plot], [Column("sim", "")], 2)], {name: BLUE})
    (spec,) = figure.spec["hconcat"][0]["vconcat"]
    assert json.loads(spec["transform"][0]["filter"].split(" && ")[0].removeprefix("datum.panel == ")) == name
