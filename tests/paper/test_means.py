"""A figure of means, and a table of other columns: those of the paper on CCN."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import altair as alt
import numpy as np
import pytest
from streamgauge.metrics import compute
from streamgauge.metrics.result import Series
from streamgauge.paper import Reading, draw, papers, table_json, tables_text
from streamgauge.paper.means import COLUMNS
from streamgauge.report.model import Entry, Group, LoadedTrial
from streamgauge.scenario import find
from synthetic import constant, record

CCN = papers()["ccn"]
OVER, EACH = CCN.figures
NARROW = [f"ccn/narrow-{one}" for one in ("reno", "vegas", "cubic", "udp")]


def entry(
    scenario: str, mode: str = "sim", levels_kbps: tuple[float, ...] = (100.0, 600.0, 600.0, 600.0)
) -> Entry:
    """Three trials of 8 s, in which each level is shown for as long as any other."""
    trials = []
    for seed in (1, 2, 3):
        made = compute(record(constant(0, 30.0 + seed, 0, 8), flows=["video"], duration_s=8.0, seed=seed))
        width = made.grid.widths_s
        rates = 1e3 * np.repeat(np.array(levels_kbps), len(width) // len(levels_kbps))
        flow = made.flows["video"]
        told = {"level": Series(rates * width, width), "estimate": Series((rates + seed) * width, width)}
        held = dataclasses.replace(flow, series={**flow.series, **told})
        header = {"scenario": {"id": scenario}, "mode": mode, "seed": seed, "validity": {"valid": True}}
        trials.append(LoadedTrial(header, {}, dataclasses.replace(made, mode=mode, flows={"video": held})))
    return Entry(scenario, {"id": scenario}, {}, (Group(scenario, mode, tuple(trials)),), ())


def reading(*entries: Entry) -> Reading:
    return Reading("", "", entries, None, None, 3, 0, 0.0, Path("runs"))


def test_what_tables_and_figures_name_is_in_the_catalogue() -> None:
    known = {scenario.id for scenario in find(["ccn/*"])}
    assert {row.scenario for table in CCN.means for row in table.rows} == set(NARROW) <= known
    drawn = {name.format(x=x) for name in OVER.more["series"].values() for x in OVER.more["xs"]}
    assert len(drawn) == 20 and drawn <= known
    assert set(EACH.more["series"].values()) == set(NARROW)


def test_a_table_has_the_columns_of_its_paper() -> None:
    found = reading(*map(entry, NARROW))
    text = tables_text(CCN, found)
    assert "cwnd, kB" in text and "74.875" in text and "JFI" not in text
    (table,) = CCN.tables
    line = table_json(table, CCN, [found])["lines"][0]
    assert line["published"] == pytest.approx(
        {"srtt_mean_s": 0.115, "cwnd_mean_bytes": 25750, "estimate_mean_bps": 575e3, "loss_percent": 0.26}
    )
    assert line["measured"][0]["estimate_mean_bps"]["mean"] == pytest.approx(475_002, rel=1e-5)


def test_means_stand_beside_the_papers_text_and_levels_add_up() -> None:
    figure = draw(CCN, EACH, reading(*map(entry, NARROW)))
    assert figure is not None and figure.columns == COLUMNS
    assert alt.Chart.from_dict(figure.vega_lite(), validate=True) is not None
    level = [row for row in figure.rows if row[0] == "mean level shown, kb/s"]
    assert [row[4] for row in level if row[3] == "sim"] == [475.0] * 4
    assert [row[2:5] for row in level if row[3] == "paper"] == [("UDP", "paper", 600.0)]
    shares = [row for row in figure.rows if row[0] == "time shown, %"]
    assert {row[1:5] for row in shares if row[2] == "Reno"} == {
        (100.0, "Reno", "sim", 25.0),
        (600.0, "Reno", "sim", 75.0),
    }
    assert "● sim: means" in figure.caption and "◇ what the paper's text says" in figure.caption
    assert "emu" not in figure.caption


def test_a_figure_of_means_wants_every_case() -> None:
    assert draw(CCN, EACH, reading(*map(entry, NARROW[:3]))) is None


def test_lines_over_what_was_varied_have_one_legend() -> None:
    cases = [name.format(x=x) for name in OVER.more["series"].values() for x in OVER.more["xs"]]
    figure = draw(CCN, OVER, reading(*map(entry, cases)))
    assert figure is not None
    assert alt.Chart.from_dict(figure.vega_lite(), validate=True) is not None
    assert json.dumps(figure.spec).count('"orient": "top"') == 3, "one legend, in each layer of one panel"
    estimates = [row for row in figure.rows if row[0].startswith("mean estimate")]
    assert len(estimates) == 20 and all(row[5] < row[4] < row[6] for row in estimates)
    assert {row[0] for row in figure.rows if row[3] == "paper"} == {"mean level shown, kb/s"}
    at_five = [row for row in figure.rows if row[0] == "time shown, %, at 5 %"]
    assert {row[2] for row in at_five} == set(OVER.more["series"])
