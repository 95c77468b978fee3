"""Curves and heat maps: every point of the table is drawn once, in a panel of its metric, on the axis that it
belongs to."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.report import DrawnFigure, save
from streamgauge.sweeps import SweepResult, axes_of, points_of, run_points
from streamgauge.sweeps.figure import curves, figures, heat_map, spans_decades, write_files


def swept(*over: str, names: tuple[str, ...] = ("my.yaml",), **more: Any) -> SweepResult:
    axes = axes_of(over)
    return run_points(points_of(names, axes, mode="sim"), axes, Path("runs"), repeat=2, **more)


def panels(figure: DrawnFigure) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = figure.vega_lite()["concat"]
    return found


def plot_of(panel: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = panel.get("spec", panel)
    return found


def column(figure: DrawnFigure, name: str) -> list[Any]:
    return [row[figure.columns.index(name)] for row in figure.rows]


def drawn(figure: DrawnFigure, folder: Path) -> str:
    """Its letters, as SVG has them."""
    root = ElementTree.parse(save(figure, folder / "a.svg")).getroot()
    return " | ".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))


def test_one_axis_of_numbers_is_a_curve(folder: Path) -> None:
    (figure,) = figures(swept("path.down.rate=500kbit/s,1Mbit/s,2Mbit/s", metrics=["goodput", "rtt"]))
    titles = [panel["title"]["text"] for panel in panels(figure)]
    assert titles == ["Goodput, ftp", "Round-trip time, ftp"]
    x = plot_of(panels(figure)[0])["layer"][-1]["encoding"]["x"]
    assert x["title"] == "path.down.rate, Mbit/s" and x["scale"]["type"] == "linear"
    assert sorted(set(column(figure, "x"))) == [0.5, 1, 2]
    words = drawn(figure, folder)
    assert "test/swept over path.down.rate" in words and "n = 2, with 95 % intervals" in words
    assert "Goodput, ftp" in words and "0.5 | 1 | 2" in words


def test_every_measurement_is_drawn_once_with_its_interval(folder: Path) -> None:
    result = swept(
        "path.down.rate=500kbit/s,1Mbit/s", "path.down.queue=10kB,50kB", metrics=["goodput.ftp", "loss.cross"]
    )
    figure = curves(result)
    assert len(figure.rows) == len(result.rows) == 8
    assert set(column(figure, "m")) == {"goodput", "loss"} and set(column(figure, "s")) == {"10 kB", "50 kB"}
    for row in figure.rows:
        low, value, high = (row[figure.columns.index(name)] for name in ("lo", "v", "hi"))
        assert low <= value <= high
    points = {(row[0], row[2], row[4]) for row in figure.rows}
    assert len(points) == 8


def test_words_are_points_side_by_side(folder: Path) -> None:
    result = swept("path.down.queue=[droptail 10 kB, codel, pie]", "flows.ftp.congestion_control=reno,cubic",
                   metrics=["goodput.ftp"])  # fmt: skip
    (figure,) = figures(result)
    layers = plot_of(panels(figure)[0])["layer"]
    assert not any(one["mark"]["type"] == "line" for one in layers)
    assert all(one["encoding"]["x"]["type"] == "nominal" and "xOffset" in one["encoding"] for one in layers)
    words = drawn(figure, folder)
    assert all(name in words for name in ("droptail 10 kB", "codel", "pie", "reno", "cubic"))


def test_two_axes_of_numbers_are_a_heat_map_too(folder: Path) -> None:
    result = swept(
        "path.down.rate=1Mbit/s..3Mbit/s step 1Mbit/s",
        "path.down.queue=10kB,20kB,40kB",
        metrics=["goodput.ftp"],
    )
    first, second = figures(result)
    assert (first.id, second.id) == (result.name, f"{result.name}-map")
    assert len(second.rows) == 9 and set(column(second, "x")) == {"1", "2", "3"}
    assert set(column(second, "y")) == {"10", "20", "40"}
    assert all("±" in said for said in column(second, "said") if said.count(" ")), "with their intervals"
    words = drawn(second, folder)
    assert "path.down.rate, Mbit/s" in words and "path.down.queue, kB" in words
    files = write_files(result)
    assert [file.suffix for file in files] == [".csv", ".svg", ".png", ".svg", ".png"]
    assert all(file.stat().st_size for file in files)
    many = swept(
        "path.down.rate=1Mbit/s..3Mbit/s step 1Mbit/s",
        "path.up.delay=1ms..7ms step 1ms",
        metrics=["goodput.ftp"],
    )
    assert figures(many)[0].id.endswith("-map"), "more lines than can be told apart"


def test_a_third_axis_and_several_scenarios_are_panels(folder: Path) -> None:
    Path("more.yaml").write_text("extends: my.yaml\nid: my/more\nflows: {cross: null}\n")
    result = swept("path.down.rate=1Mbit/s,2Mbit/s", "path.down.queue=10kB,50kB", "path.up.delay=1ms,9ms",
                   names=("my.yaml", "more.yaml"), metrics=["goodput.ftp"])  # fmt: skip
    (figure,) = figures(result)
    (panel,) = panels(figure)
    assert len(set(column(figure, "p"))) == 4 and "facet" in panel
    words = drawn(figure, folder)
    assert "path.up.delay 9 ms, scenario my/more" in words
    assert heat_map(result).rows, "of these two it can be asked for"


def test_many_points_have_a_band(folder: Path) -> None:
    few, many = (
        swept(f"path.down.rate=1Mbit/s..{n}Mbit/s step 1Mbit/s", metrics=["goodput.ftp"]) for n in (5, 20)
    )
    marks = [
        {one["mark"]["type"] for one in plot_of(panels(curves(result))[0])["layer"]} for result in (few, many)
    ]
    assert marks[0] == {"rule", "tick", "line", "point"} and marks[1] == {"area", "line", "point"}


def test_nothing_measured_is_no_figure(folder: Path) -> None:
    assert figures(swept("path.down.rate=1Mbit/s,2Mbit/s", metrics=["startup_delay.ftp"])) == []


@pytest.mark.parametrize(
    ("numbers", "decades"),
    [
        ((1, 10, 100), True),
        ((10, 20, 40, 80, 160), True),
        ((1, 2, 3, 4, 5, 6, 7, 8, 9, 10), False),
        ((10, 20, 50), False),
        ((0, 1, 100), False),
        ((1, 200), False),
        ((1, 1000, 1001), True),
    ],
)
def test_what_spans_decades(numbers: tuple[float, ...], decades: bool) -> None:
    assert spans_decades(numbers) == decades


@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=12, unique=True), st.integers(0, 20))
def test_the_unit_does_not_decide_it(numbers: list[int], power: int) -> None:
    assert spans_decades(sorted(numbers)) == spans_decades(sorted(one * 2**power for one in numbers))
