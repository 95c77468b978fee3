"""Figures and a table of single trials: a small campaign of the paper on RealVideo."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pytest
from streamgauge.campaign import run
from streamgauge.claims.expression import parse, parse_value
from streamgauge.claims.typing import dimension_of
from streamgauge.metrics import TrialMetrics
from streamgauge.paper import Paper, Reading, draw, papers, read, table_json, tables_text, write_page
from streamgauge.paper.course import _steps
from streamgauge.paper.gathering import gathered, wanted
from streamgauge.paper.published import SharesTable
from streamgauge.paper.shares import shares_of
from streamgauge.report.chart import WIDTH, DrawnFigure
from streamgauge.report.model import Group
from streamgauge.scenario import find

PAPER = papers()["realvideo"]
REPEAT = 3
RUN = ["realvideo/head2head-*", "realvideo/media-scaling-35-*"]


def paper() -> Paper:
    """Of its own, so that nothing is kept of another test."""
    return dataclasses.replace(PAPER)


def wanted_figure(number: int) -> Any:
    return next(figure for figure in PAPER.figures if figure.id == f"figure-{number}")


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    scenarios = find(RUN)
    modes = {scenario.id: ["sim"] for scenario in scenarios}
    result = run(scenarios, modes, tmp_path_factory.mktemp("runs"), repeat=REPEAT, keep="metrics")  # type: ignore[arg-type]
    return read([result], "", "", wall_s=0.0)


@pytest.fixture(scope="module")
def drawn(reading: Reading) -> dict[str, DrawnFigure]:
    found = [(figure.id, draw(PAPER, figure, reading)) for figure in PAPER.figures]
    return {id_: figure for id_, figure in found if figure is not None}


def rows(figure: DrawnFigure, part: str) -> list[dict[str, Any]]:
    every = [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]
    return [row for row in every if row["part"] == part]


def test_every_figure_of_the_paper_is_there_but_its_set_up() -> None:
    ours = ["Friendly by which reading"]
    assert [figure.title for figure in PAPER.figures] == [*(f"Figure {n}" for n in range(2, 22)), *ours]


def test_what_is_drawn_of_trials_is_a_value_in_the_unit_of_its_axis() -> None:
    for want in wanted(PAPER):
        if want.what == "statement":
            parse(want.text)
    for figure in PAPER.figures:
        axes = {side: figure.more[side] for side in ("x", "y") if isinstance(figure.more.get(side), dict)}
        for panel in figure.more.get("panels_of", ()):
            values = [("x", curve["value"]) for curve in panel.get("curves", ()) if "value" in curve]
            values += [(side, points[side]) for points in panel.get("points", ()) for side in ("x", "y")]
            for side, text in values:
                unit = axes[side]["unit"]
                of = dimension_of(parse_value(text))
                assert unit == "" or of == dimension_of(parse_value(f"1 {unit}")), text


def test_figures_are_drawn_of_what_was_run(drawn: dict[str, DrawnFigure]) -> None:
    known = {figure.id: json.dumps(figure.more) for figure in PAPER.figures}
    run_ids = {scenario.id for scenario in find(RUN)}
    for id_, more in known.items():
        scenarios = set(re.findall(r'"(realvideo/[^"]+)"', more))
        assert (id_ in drawn) is (scenarios <= run_ids), id_
    for figure in drawn.values():
        assert alt.Chart.from_dict(figure.vega_lite(), validate=True) is not None
        panels = {row[0] for row in figure.rows}
        assert all(json.dumps(panel) in json.dumps(figure.spec).replace("\\", "") for panel in panels)


def test_panels_fill_the_rows_in_which_they_stand(drawn: dict[str, DrawnFigure]) -> None:
    most = 0
    for figure in drawn.values():
        panels = figure.spec.get("concat", ())
        if len(panels) < 2 or any(panel.get("width") == panel.get("height") for panel in panels):
            continue  # one alone, or squares
        columns = figure.spec["columns"]
        most = max(most, len(panels))
        room = sum(panel["width"] for panel in panels[:columns])
        assert 0.75 * WIDTH < room < WIDTH, figure.id
    assert most > 2


def test_a_curve_is_of_each_trials_value(drawn: dict[str, DrawnFigure], reading: Reading) -> None:
    figure = drawn["figure-7"]
    curve = [row for row in rows(figure, "curve") if (row["panel"], row["series"]) == ("300 kbit/s", "TCP")]
    steps = Counter(row["x"] for row in curve[1:-1])
    group = reading.by_id["realvideo/head2head-300"].group("sim")
    assert group is not None
    ours = [
        trial.value("received", "tcp") / trial.value("transmission_time", "tcp") / 1e3
        for trial in group.each()
    ]
    assert sorted(steps) == pytest.approx(sorted(ours), rel=1e-5)
    assert [row["y"] for row in curve] == pytest.approx([0, 100 / 3, 200 / 3, 100, 100], rel=1e-5)
    assert "KS" in json.dumps(figure.spec) and "EMD" in json.dumps(figure.spec)
    assert "n = 3 each" in figure.caption and "KS is" in figure.caption


def test_what_the_text_says_stands_as_marks_that_the_caption_explains(drawn: dict[str, DrawnFigure]) -> None:
    said = {(row["series"], row["x"], row["y"]) for row in rows(drawn["figure-5"], "published")}
    assert said == {("UDP", 640.0, 50.0), ("TCP", 1100.0, 50.0)}
    for figure in drawn.values():
        assert bool(rows(figure, "published")) is ("◇" in figure.caption), figure.id


def test_what_is_never_keeps_a_curve_below_all(drawn: dict[str, DrawnFigure], reading: Reading) -> None:
    """Member 2 has one rate, above the link's."""
    found = gathered(PAPER, reading)["realvideo/media-scaling-35-udp", "sim"]
    (text,) = (text for text in found.values if text.startswith("first("))
    assert found.values[text][1] == float("inf")
    ends = {row["series"]: row["y"] for row in rows(drawn["figure-20"], "curve")}
    assert ends["UDP"] <= 100 * (1 - 1 / REPEAT) + 1e-3
    assert "EMD 0" not in json.dumps(drawn["figure-20"].spec)


def test_clips_of_the_population_are_drawn_as_they_are(
    drawn: dict[str, DrawnFigure], reading: Reading
) -> None:
    members = reading.by_id["realvideo/media-scaling-35-udp"].scenario["population"]["members"]
    dots = rows(drawn["figure-17"], "point")
    assert len({row["x"] for row in dots}) == len(members) == 79
    assert len(dots) == sum(len(member["clip"].get("ladder", [0])) for member in members)
    by_clip: dict[float, list[float]] = {}
    for row in dots:
        by_clip.setdefault(row["x"], []).append(row["y"])
    order = [(len(levels), min(levels)) for _, levels in sorted(by_clip.items())]
    assert order == sorted(order)
    single = 100 * sum(count == 1 for count, _ in order) / 79
    levels = rows(drawn["figure-16"], "curve")
    assert max(row["y"] for row in levels if row["x"] == 1) == pytest.approx(single, rel=1e-4)


def test_points_of_all_bottlenecks_have_one_line_and_one_r(drawn: dict[str, DrawnFigure]) -> None:
    figure = drawn["figure-10"]
    points, line = rows(figure, "point"), rows(figure, "line")
    assert Counter(row["series"] for row in points) == {f"{n} kbit/s": REPEAT for n in (600, 300, 150, 75)}
    x, y = (np.array([row[side] for row in points]) for side in ("x", "y"))
    slope, at_zero = np.polyfit(x, y, 1)
    assert [row["y"] for row in line] == pytest.approx([at_zero + slope * row["x"] for row in line], rel=1e-3)
    told = figure.spec["title"]["text"]
    assert told.startswith(f"r = {np.corrcoef(x, y)[0, 1]:.2f}".replace("-", "−"))
    assert told.endswith("; the paper −0.13")
    assert points[0]["label"] == "clip 1, seed 1"


def test_equal_shares_have_a_line_of_their_own(drawn: dict[str, DrawnFigure]) -> None:
    bound = rows(drawn["figure-8"], "bound")
    assert all(row["x"] == row["y"] for row in bound) and bound[0]["x"] == 0


def test_points_without_a_value_are_counted(drawn: dict[str, DrawnFigure]) -> None:
    """Member 1 plays for 56 s, and so has no rate after 100 s."""
    figure = drawn["figure-14"]
    assert re.search(r"\d+ without a value are left out", figure.caption)
    assert not any("clip 1," in row["label"] for row in rows(figure, "point") if row["panel"] == "UDP")


def test_ratios_of_all_trials_are_one_curve(reading: Reading, drawn: dict[str, DrawnFigure]) -> None:
    found = gathered(PAPER, reading)["realvideo/head2head-75", "sim"].ratios["receiver_rate.tcp"]
    assert len(found) == REPEAT and all(len(one) > 5 for one in found)
    assert not any(np.isnan(one).any() for one in found)
    curve = [
        row
        for row in rows(drawn["figure-21"], "curve")
        if (row["panel"], row["series"]) == ("75 kbit/s", "TCP")
    ]
    every = np.concatenate(found)
    assert curve[0]["y"] == pytest.approx(100 * np.mean(every < 0.1), abs=1e-3)
    assert curve[-1]["y"] == pytest.approx(100 * np.mean(every <= 10), abs=1e-3)


@pytest.mark.parametrize(("number", "metric"), [(6, "receiver_rate"), (18, "level")])
def test_one_trial_over_time(number: int, metric: str, reading: Reading) -> None:
    there = {
        "fair-example": "head2head-600",
        "foul-example": "head2head-75",
        "clip-65": "35",
        "clip-78": "35",
    }
    text = json.dumps(wanted_figure(number).more)
    for name, other in there.items():
        text = text.replace(name, other)
    figure = draw(PAPER, dataclasses.replace(wanted_figure(number), more=json.loads(text)), reading)
    assert figure is not None and "of seed 1" in figure.caption
    assert {row["series"] for row in rows(figure, "curve")} == {"UDP", "TCP"}
    first = figure.rows[0][0]
    curve = [row for row in rows(figure, "curve") if (row["panel"], row["series"]) == (first, "UDP")]
    scenario, flow = ("media-scaling-35-udp", "video") if metric == "level" else ("head2head-600", "udp")
    group = reading.by_id[f"realvideo/{scenario}"].group("sim")
    assert group is not None and group.shown is not None
    series = group.shown.series(metric, flow)
    held = series.high if metric == "level" else series.samples()
    assert held is not None
    known = {float(f"{value / 1e3:.6g}") for value in held[np.isfinite(held)]}
    assert {row["y"] for row in curve if row["y"] is not None} <= known | {0.0}
    assert bool(rows(figure, "bound")) is (metric == "level")


def test_a_step_stands_where_the_mean_of_its_sample_puts_it() -> None:
    times, widths = np.arange(5) * 0.5, np.full(5, 0.5)
    values = np.array([np.nan, 8.0, 6.5, 2.0, 2.0])
    low, high = np.array([np.nan, 8, 2, 2, 2]), np.array([np.nan, 8, 8, 2, 2])
    x, y = _steps(times, widths, values, low, high, slice(0, 5))
    told = [(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True) if not np.isnan(b)]
    assert told == [(0.5, 8.0), (1.375, 8.0), (1.375, 2.0), (2.0, 2.0)]


def test_each_trial_is_read_once_for_all(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[tuple[str, int]] = Counter()
    each = Group.each

    def counting(group: Group) -> Iterator[TrialMetrics]:
        for trial in each(group):
            counted[group.scenario, trial.seed] += 1
            yield trial

    monkeypatch.setattr(Group, "each", counting)
    mine = paper()
    tables_text(mine, reading)
    for figure in mine.figures:
        draw(mine, figure, reading)
    assert len(counted) == 6 * REPEAT and set(counted.values()) == {1}


def test_a_table_of_shares_stands_beside_the_printed_one(reading: Reading, tmp_path: Path) -> None:
    (table,) = PAPER.tables
    assert isinstance(table, SharesTable)
    printed = {row.label: row.printed for row in table.rows}
    assert printed["total"] == ("28 (11 %)", "5 (2 %)")
    for place, total in enumerate((28, 5)):
        counts = [int(row.printed[place].split()[0]) for row in table.rows]
        assert sum(counts[:-1]) == counts[-1] == total
    lines = shares_of(table, PAPER, reading, "sim")
    for line in lines[:-1]:
        group = reading.by_id[line.row.scenarios[0]].group("sim")
        assert group is not None
        lossy = [trial for trial in group.each() if trial.value("lost_packets", "ping") > 0]
        assert (line.n, line.left_out) == (len(lossy), REPEAT - len(lossy))
        for flow, ours in zip(("udp", "tcp"), line.ours, strict=True):
            rates = [
                trial.value("received", flow) / trial.value("transmission_time", flow) for trial in lossy
            ]
            most = [
                1.5
                * np.sqrt(2 / 3)
                * 12_000
                / (trial.value("rtt", "ping") * np.sqrt(trial.value("loss", "ping")))
                for trial in lossy
            ]
            assert ours.count == sum(rate > top for rate, top in zip(rates, most, strict=True))
    total = lines[-1]
    assert total.n == sum(line.n for line in lines[:-1])
    text = tables_text(PAPER, reading)
    assert "Table I beside ours (sim" in text and "28 (11 %)" in text
    data = table_json(table, PAPER, [reading])
    assert len(data["lines"]) == 10 and data["lines"][0]["published"] == "8 (12 %)"
    (measured,) = data["lines"][0]["measured"]
    assert measured["n"] + measured["left_out"] == REPEAT
    page = write_page(PAPER, [reading], [], {}, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "8 (12 %)" in page and str(lines[0].ours[0]) in page and "Wilson" in page


def test_a_scenario_without_trials_leaves_its_figures_out_and_its_line_empty(reading: Reading) -> None:
    some = dataclasses.replace(
        reading, entries=tuple(one for one in reading.entries if not one.id.endswith("-75")), kept={}
    )
    drawn_of = {figure.id for figure in PAPER.figures if draw(PAPER, figure, some) is not None}
    assert "figure-7" not in drawn_of and "figure-8" not in drawn_of and "figure-19" in drawn_of
    (table,) = PAPER.tables
    assert isinstance(table, SharesTable)
    first = shares_of(table, PAPER, some, "sim")[0]
    assert (str(first.ours[0]), first.ours[0].interval, first.n) == ("–", "", 0)
    assert "–" in tables_text(PAPER, some)


def test_a_mode_in_which_not_all_was_run_takes_no_figure_of_the_other_away(reading: Reading) -> None:
    """As if the narrowest bottleneck had been run in emu too."""
    entries = []
    for one in reading.entries:
        (group,) = one.groups
        emu = [dataclasses.replace(trial, header={**trial.header, "mode": "emu"}) for trial in group.trials]
        also = (Group(one.id, "emu", tuple(emu)),) if one.id.endswith("-75") else ()
        entries.append(dataclasses.replace(one, groups=(*one.groups, *also)))
    both = dataclasses.replace(reading, entries=tuple(entries), kept={})
    assert both.modes == ["sim", "emu"]
    seven = draw(PAPER, wanted_figure(7), both)
    assert seven is not None and {row[0] for row in seven.rows} == {
        f"{n} kbit/s" for n in (600, 300, 150, 75)
    }
    last = wanted_figure(7).more["panels_of"][3]
    alone = dataclasses.replace(wanted_figure(7), more={**wanted_figure(7).more, "panels_of": [last]})
    figure = draw(PAPER, alone, both)
    assert figure is not None and {row[0] for row in figure.rows} == {"75 kbit/s, sim", "75 kbit/s, emu"}
