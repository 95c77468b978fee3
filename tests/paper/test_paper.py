"""What papers printed, and how ours stands beside it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import altair as alt
import numpy as np
import pytest
from streamgauge.campaign import Alternative, MutantResult, score, standings
from streamgauge.checks import CheckResult, evaluate
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.metrics.fairness import jain
from streamgauge.metrics.result import Series
from streamgauge.paper import Paper, Reading, compare, draw, papers, table_json, tables_text
from streamgauge.paper.tables import lines_of
from streamgauge.report.courses import Courses
from streamgauge.report.model import Entry, Group, LoadedTrial
from synthetic import constant, record

DARWIN = papers()["darwin"]


def trial(scenario: str, seed: int, flows: dict[str, float]) -> TrialMetrics:
    """Each flow sends 1000 B packets at so many a second for 10 s, of which the queue drops some."""
    sent = [
        packet
        for index, pps in enumerate(flows.values())
        for packet in constant(index, pps, 0, 10, payload=972)
    ]
    made = record(sent, flows=list(flows), duration_s=10.0, seed=seed, scenario=scenario)
    return compute(made)


def entry(scenario: str, flows: dict[str, float], checks: tuple[CheckResult, ...] = ()) -> Entry:
    trials = []
    for seed in (1, 2, 3):
        metrics = trial(scenario, seed, {name: pps + seed for name, pps in flows.items()})
        header = {"scenario": {"id": scenario}, "mode": "sim", "seed": seed, "validity": {"valid": True}}
        trials.append(LoadedTrial(header, {}, metrics))
    return Entry(scenario, {"id": scenario}, {}, (Group(scenario, "sim", tuple(trials)),), checks)


def reading(preset: str, *entries: Entry) -> Reading:
    return Reading(preset, "as tested", entries, None, None, 3, 0, 0.0, Path("runs"))


def test_the_tables_hold_together() -> None:
    rows = [row for table in DARWIN.means for row in table.rows]
    assert len(rows) == 11 and sum(len(row.flows) for row in rows) == 32
    for row in rows:
        if row.jain is not None:
            got = [flow.values["throughput"] - flow.values["loss_rate"] for flow in row.flows]
            assert round(jain(got), 2) == row.jain, row.experiment


def test_figures_draw_what_tables_or_bars_name() -> None:
    known = {row.scenario for table in DARWIN.means for row in table.rows}
    assert [figure.title for figure in DARWIN.figures] == [f"Figure {n}" for n in range(3, 11)]
    for figure in DARWIN.figures:
        assert {panel.scenario for panel in figure.panels} <= known
        assert figure.panels or figure.more["bars"]


def test_a_line_has_the_papers_numbers_and_ours() -> None:
    found = reading("", entry("darwin/1qt1tcp-const", {"qt1": 30.0, "tcp1": 20.0}))
    lines = [
        line for line in lines_of(DARWIN.means[1], found, "sim") if line.scenario == "darwin/1qt1tcp-const"
    ]
    first, second = lines
    assert first.published["loss"] == pytest.approx(22.24 / 265.96)
    ours = first.ours["throughput"]
    assert ours is not None and ours.mean == pytest.approx(32 * 8000) and ours.n == 3
    assert "jain" in first.ours and "jain" not in second.ours
    text = tables_text(DARWIN, found)
    assert "265.96" in text and "256 ± 20" in text
    data = table_json(DARWIN.tables[1], DARWIN, [found])
    line = next(
        line for line in data["lines"] if line["flow"] == "tcp1" and line["scenario"] == first.scenario
    )
    assert line["published"]["throughput_bps"] == pytest.approx(150_300)
    assert line["measured"][0]["throughput_bps"]["mean"] == pytest.approx(22 * 8000)


def judged(that: str, found: Entry, published: dict[str, str]) -> Entry:
    check = {"that": that, "origin": "predicted", "published": published}
    trials = [one.metrics for one in found.groups[0].trials if one.metrics]
    return dataclasses.replace(found, checks=(evaluate("C", check, found.id, "sim", trials),))


def test_a_verdict_counts_before_nearness_and_nearness_before_nothing() -> None:
    near = entry("darwin/1qt1tcp-const", {"qt1": 30.0, "tcp1": 20.0})
    far = entry("darwin/1qt1tcp-const", {"qt1": 60.0, "tcp1": 20.0})

    def better(that: str, published: dict[str, str]) -> str:
        (one,) = compare(
            [reading("near", judged(that, near, published)), reading("far", judged(that, far, published))]
        )
        return one.better

    assert better("throughput.qt1 >= 100 kbit/s", {"qt1": "265.96 kbit/s"}) == "near"
    assert better("throughput.qt1 >= 400 kbit/s", {"qt1": "265.96 kbit/s"}) == "far"
    assert better("throughput.qt1 >= 100 kbit/s", {}) == "both"
    assert better("throughput.qt1 >= 900 kbit/s", {}) == "neither"


def test_a_figure_is_drawn_only_when_all_of_it_was_run() -> None:
    one = reading("", entry("darwin/1qt1tcp-const", {"qt1": 30.0, "tcp1": 20.0}))
    drawn = [draw(DARWIN, wanted, one) for wanted in DARWIN.figures]
    (figure,) = [found for found in drawn if found is not None]
    assert figure.title == "Figure 8"
    throughput = [row for row in figure.rows if row[0].startswith("throughput")]
    samples = [row for row in throughput if row[2:4] == ("QT1", "line")]
    assert len(samples) == 20, "every 0.5 s of 10 s"
    said = {row[2]: row[6] for row in throughput if row[1] == "paper"}
    assert said == {"QT1": 265.96, "TCP1": 150.3}
    ours = {row[2]: row[6:] for row in throughput if row[1] == "sim" and row[3] == "mean"}
    assert ours["QT1"][0] == pytest.approx(256, rel=1e-3) and ours["QT1"][1] < 256 < ours["QT1"][2]
    assert alt.Chart.from_dict(figure.vega_lite(), validate=True) is not None


def test_what_looks_back_shows_nothing_before_it_happens() -> None:
    """A spike in one sample of 0.5 s: the mean of the last 2 s has it from then on, and no sooner."""
    metrics = trial("t", 1, {"a": 10.0})
    width = metrics.grid.widths_s
    spike = np.zeros(len(metrics.grid))
    spike[10] = 8.0
    flow = metrics.flows["a"]
    for bits, expected in ((7.0 * width, np.full(20, 7.0)), (spike, np.repeat([0.0, 4.0, 0.0], [10, 4, 6]))):
        held = dataclasses.replace(flow, series={**flow.series, "throughput": Series(bits, width)})
        courses = Courses(len(metrics.grid), [("throughput", "trailing")], trailing=4)
        courses.add(dataclasses.replace(metrics, flows={"a": held}))
        course = courses.course("a", "throughput", "trailing")
        assert course is not None and np.allclose(course.median, expected)
        assert np.allclose(course.times_s, course.ends_s), "drawn where its time ends"


def test_what_is_drawn_is_said() -> None:
    one = reading("", entry("darwin/1qt1tcp-const", {"qt1": 30.0, "tcp1": 20.0}))
    (figure,) = [found for wanted in DARWIN.figures if (found := draw(DARWIN, wanted, one)) is not None]
    assert "mean of the last 2 s" in json.dumps(figure.spec)
    assert "● sim with 95 % intervals (n = 3), ◇ the paper." in figure.caption
    assert "emu" not in figure.caption and "emu" not in json.dumps(figure.spec)
    assert "from the least to the greatest of 3 trials" in figure.caption
    # The link has twice what the two flows send.
    assert "capacity 480 kbit/s, off the scale" not in json.dumps(figure.spec, ensure_ascii=False)


def test_bars_stand_beside_what_the_paper_says() -> None:
    wanted = next(figure for figure in DARWIN.figures if figure.draw == "bars")
    entries = [entry(one["scenario"], {"video": 30.0}) for one in wanted.more["bars"]]
    figure = draw(DARWIN, wanted, reading("", *entries))
    assert figure is not None
    said = [row for row in figure.rows if row[2].endswith("the paper's text")]
    assert {(row[1], row[2], row[3]) for row in said} >= {
        ("160", "QTP, the paper's text", 5.0),
        ("160", "VLC, the paper's text", 50.0),
        ("800", "VLC, the paper's text", 0.0),
    }
    panels = figure.spec["hconcat"]
    assert all(layer["encoding"]["y"]["scale"]["zero"] for panel in panels for layer in panel["layer"][:1])
    assert [layer["mark"]["type"] for layer in panels[1]["layer"]] == ["bar", "rule", "text"]
    ours = [row for row in figure.rows if row[2].endswith("ours")]
    assert all(row[4] is not None and row[4] <= row[3] <= row[5] for row in ours)


def test_only_predicted_checks_count_in_the_mutation_score() -> None:
    def one(origin: str, verdict: str) -> MutantResult:
        return MutantResult("C", "s", "sim", {}, verdict, "", origin=origin)

    assert score([one("predicted", "fail"), one("predicted", "pass"), one("input", "fail")]) == 0.5
    assert score([one("input", "fail")]) is None


def test_a_check_is_robust_or_hangs_on_what_turns_it() -> None:
    def one(check: str, value: str, verdict: str) -> Alternative:
        return Alternative("path.down.queue", value, "s", "sim", check, verdict, "pass", "")

    found = standings([one("A", "1 kB", "pass"), one("A", "2 kB", "pass"), one("B", "1 kB", "fail")])
    assert [(each.check, each.words()) for each in found] == [
        ("A", "robust, 2 alternatives"),
        ("B", "hangs on path.down.queue = 1 kB: fail"),
    ]


def test_a_paper_is_known_by_its_folder() -> None:
    assert isinstance(DARWIN, Paper)
    assert DARWIN.did("darwin/2qt-const")


def test_what_a_paper_never_did_is_known() -> None:
    assert not papers()["ccn"].did("ccn/tcp-loss-1-reno") and papers()["ccn"].did("ccn/loss-1-reno")
    assert not papers()["realvideo"].did("realvideo/tcp-in-place-600")
