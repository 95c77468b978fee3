"""Curves and heat maps: every point of the table is drawn once, in a panel of its metric, on the axis that it
belongs to."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.report import DrawnFigure, save
from streamgauge.report.naming import meet
from streamgauge.sweeps import SweepResult, axes_of, points_of, run_points
from streamgauge.sweeps.figure import curves, figures, heat_map, spans_decades, write_files


def swept(*over: str, names: tuple[str, ...] = ("my.yaml",), **more: Any) -> SweepResult:
    axes = axes_of(over)
    return run_points(points_of(names, axes, mode="sim"), axes, Path("runs"), repeat=2, **more)


def panels(figure: DrawnFigure) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = figure.vega_lite()["concat"]
    return found


def plot_of(panel: dict[str, Any]) -> dict[str, Any]:
    (grid,) = panel.get("concat", [panel])
    found: dict[str, Any] = grid.get("spec", grid)
    return found


def column(figure: DrawnFigure, name: str) -> list[Any]:
    return [row[figure.columns.index(name)] for row in figure.rows]


def words_of(file: Path) -> list[tuple[str, tuple[float, float, float, float]]]:
    """What a picture says, each with the box that its letters take."""
    found = []

    def walk(node: ElementTree.Element, x: float, y: float, turned: bool) -> None:
        for what, numbers in re.findall(r"(translate|rotate)\(([^)]*)\)", node.get("transform", "")):
            values = [float(one) for one in re.split("[, ]+", numbers)]
            if what == "rotate":
                turned = turned or values[0] != 0
            else:
                x, y = x + values[0], y + values[1]
        text = "".join(node.itertext()).strip()
        if node.tag.endswith("}text") and text and node.get("opacity") != "0":
            size = float(node.get("font-size", "11px").removesuffix("px"))
            length = 0.5 * size * len(text)
            begin = {"middle": -length / 2, "end": -length}.get(node.get("text-anchor", ""), 0.0)
            box = (begin, -0.7 * size, begin + length, 0.1 * size)
            if turned:
                box = (box[1], box[0], box[3], box[2])
            found.append((text, (x + box[0], y + box[1], x + box[2], y + box[3])))
        for child in node:
            walk(child, x, y, turned)

    walk(ElementTree.parse(file).getroot(), 0.0, 0.0, False)
    return found


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
    points = {(row[0], row[2], row[5]) for row in figure.rows}
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
    assert "rate, Mbit/s" in words and "queue, kB" in words
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
    (grid,) = panel["concat"]
    assert set(grid["facet"]) == {"column", "row"}
    assert len({(a, b) for a, b in zip(column(figure, "across"), column(figure, "down"), strict=True)}) == 4
    words = drawn(figure, folder).split(" | ")
    assert {"delay", "1 ms", "9 ms", "scenario", "test/swept", "my/more"} <= set(words)
    assert heat_map(result).rows, "of these two it can be asked for"


AXES = (
    "path.down.rate=1Mbit/s,2Mbit/s,3Mbit/s",
    "path.down.queue=10kB,20kB,40kB",
    "path.up.delay=1ms,9ms",
    "flows.ftp.congestion_control=reno,cubic,bbr",
    "start_phase=0ms,1ms",
)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_no_two_words_of_a_figure_overprint(count: int, folder: Path) -> None:
    result = swept(*AXES[:count], metrics=["goodput.ftp", "loss.cross"])
    for figure in (curves(result), heat_map(result)):
        boxes = words_of(save(figure, folder / "a.svg"))
        assert len(boxes) > 10
        for (one, a), (other, b) in itertools.combinations(boxes, 2):
            assert not meet(a, b), f"{one!r} over {other!r} in {figure.id}"


@pytest.mark.parametrize("count", [3, 4, 5])
def test_an_axis_has_its_title_once_in_each_part(count: int, folder: Path) -> None:
    result = swept(*AXES[:count], metrics=["goodput.ftp", "loss.cross"])
    words = [text for text, _ in words_of(save(heat_map(result), folder / "a.svg"))]
    assert words.count("rate, Mbit/s") == 2
    assert not any("path." in text and "over" not in text for text in words)


def test_numbers_fit_their_cells(folder: Path) -> None:
    """In a cell stands its whole number or none."""
    for count in (2, 3, 4):
        figure = heat_map(swept(*AXES[:count], metrics=["goodput.ftp"]))
        (panel,) = panels(figure)
        cells = plot_of(panel)
        size = cells["layer"][1]["mark"]["fontSize"]
        longest = max(map(len, column(figure, "said")))
        assert size * 0.6 * longest <= cells["width"] / 3


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
