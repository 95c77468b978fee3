"""Hessler and Welzl: the printed table holds together, and every diagram is drawn."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import pytest
from streamgauge.campaign import run
from streamgauge.metrics import METRICS
from streamgauge.paper import Reading, draw, papers, read
from streamgauge.paper.published import PaperFigure, PaperTable
from streamgauge.paper.tables import lines_of
from streamgauge.scenario import find

PAPER = papers()["hessler"]
CLASSES = ("no", "little", "medium", "heavy", "burst")
SYSTEMS = ("ftp", "real", "wmp", "qt")


def panels() -> Iterator[dict[str, Any]]:
    for figure in PAPER.figures:
        yield from figure.more["panels_of"]


def test_table_2_holds_together() -> None:
    (table,) = PAPER.tables
    assert isinstance(table, PaperTable)
    assert [row.scenario for row in table.rows] == [f"hessler/{a}-{c}" for a in SYSTEMS for c in CLASSES]
    for row in table.rows:
        (flow,) = row.flows
        sent, received, lost = (flow.values[name] / 8e3 for name in ("sent", "received", "lost"))
        assert sent - received == pytest.approx(lost, abs=0.11), row.scenario
        assert lost / sent == pytest.approx(flow.values["loss"], abs=6e-5), row.scenario


def test_figures_2_to_13_are_there_once_and_the_grid_is_whole() -> None:
    told = [int(n) for one in panels() for n in re.findall(r"^Figure (\d+)", one["label"])]
    assert told == list(range(2, 14))
    grids = [figure for figure in PAPER.figures if figure.more.get("columns") == 4]
    assert [figure.id for figure in grids] == ["grid-rate", "grid-packets", "grid-round-trip"]
    every = [f"hessler/{system}-{name}" for name in CLASSES for system in SYSTEMS]
    for figure in grids:
        assert [panel["curves"][0]["scenario"] for panel in figure.more["panels_of"]] == every


def test_what_is_drawn_is_in_the_catalogue() -> None:
    flows = {scenario.id: set(scenario.flows) for scenario in find(["hessler/*"])}
    for panel in panels():
        for curve in panel["curves"]:
            assert curve["flow"] in flows[curve["scenario"]]
            assert curve.get("metric", panel["metric"]) in METRICS


@pytest.fixture(scope="module")
def medium(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    """One trial of each system with medium cross traffic, without the scenarios that checks read."""
    scenarios = [
        one.model_copy(update={"checks": {}}) for one in find([f"hessler/{a}-medium" for a in SYSTEMS])
    ]
    out: Path = tmp_path_factory.mktemp("hessler")
    result = run(scenarios, {one.id: ["sim"] for one in scenarios}, out, repeat=1, keep="metrics")
    return read([result], "", "", wall_s=0.0)


def rows_of(figure: PaperFigure, reading: Reading) -> list[tuple[Any, ...]]:
    drawn = draw(PAPER, figure, reading)
    assert drawn is not None
    alt.Chart.from_dict(drawn.spec)
    return list(drawn.rows)


def test_sender_rate_and_throughput_stand_in_one_panel(medium: Reading) -> None:
    figure = next(one for one in PAPER.figures if one.id == "figures-7-9")
    rows = rows_of(figure, medium)
    panel = next(one["label"] for one in panels() if one["label"].startswith("Figure 8"))
    curves = {
        name: {row[3]: row[4] for row in rows if row[:3] == (panel, name, "curve")}
        for name in ("sender rate", "throughput")
    }
    during = [second for second in curves["sender rate"] if 45 <= second <= 85]
    assert len(during) == 41
    sent, got = (sum(curves[name][second] for second in during) / 41 for name in curves)
    assert sent > 480 and got < 300, "kbit/s: what does not fit beside 720 is lost"
    marks = [row for row in rows if row[0] == panel and row[2] == "bound name up"]
    assert [(row[5], round(row[3])) for row in marks] == [("cross traffic", 30), ("its end", 90)]


def test_a_grid_has_its_axes_once_and_its_unnamed_lines_apart(medium: Reading) -> None:
    grid = next(one for one in PAPER.figures if one.id == "grid-rate")
    row = [one for one in grid.more["panels_of"] if one["label"].endswith("medium")]
    figure = dataclasses.replace(grid, more={**grid.more, "panels_of": row + row[::-1]})
    # Panels of one name would share their rows.
    for place, panel in enumerate(figure.more["panels_of"]):
        figure.more["panels_of"][place] = {**panel, "label": f"{panel['label']} {place}"}
    drawn = draw(PAPER, figure, medium)
    assert drawn is not None
    charts = drawn.spec["concat"]
    assert drawn.spec["columns"] == 4 and len(charts) == 8

    def titles(side: str) -> list[bool]:
        return [
            any(layer["encoding"][side]["title"] is not None for layer in chart["layer"]) for chart in charts
        ]

    assert titles("y") == [True, False, False, False] * 2
    assert titles("x") == [False] * 4 + [True] * 4
    name = row[0]["label"] + " 0"
    bounds = {r[5]: r[3] for r in drawn.rows if r[0] == name and r[2] == "bound"}
    assert len(bounds) == 2 and sorted(map(round, bounds.values())) == [30, 90]


def test_table_2_beside_ours(medium: Reading) -> None:
    (table,) = PAPER.means
    mine = [line for line in lines_of(table, medium, "sim") if line.scenario.endswith("medium")]
    assert len(mine) == 4
    for line in mine:
        sent, received = line.ours["sent"], line.ours["received"]
        assert sent is not None and received is not None and 0 < received.mean <= sent.mean
