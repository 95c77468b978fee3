"""The figures of Nichols' thesis: their data, sweeps over trials made by hand, and packets of real ones."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
from streamgauge.campaign import run
from streamgauge.checks import CheckResult
from streamgauge.claims.expression import parse_value
from streamgauge.claims.typing import dimension_of
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.paper import (
    Reading,
    SentPackets,
    claims_of,
    claims_text,
    draw,
    flows_of_packets,
    papers,
    read,
)
from streamgauge.paper.published import PaperFigure, cases_of
from streamgauge.paper.sent import FILE, sent_packets
from streamgauge.report.chart import DrawnFigure
from streamgauge.report.model import Entry, Group, LoadedTrial
from streamgauge.scenario import find
from synthetic import EVENTS, SECOND, constant, record

PAPER = papers()["windows-media"]
SWEEPS = [figure for figure in PAPER.figures if figure.draw == "sweep"]
OF_PACKETS = ["windows-media/sbr-340-725", "windows-media/sbr-548-725"]


def figure_of(number: int) -> PaperFigure:
    return next(one for one in PAPER.figures if any(number in numbers(panel) for panel in panels_of(one)))


def panels_of(figure: PaperFigure) -> list[dict[str, Any]]:
    return list(figure.more["panels_of"])


def numbers(panel: dict[str, Any]) -> list[int]:
    return [int(found) for found in re.findall(r"^Figure (\d+)", panel["label"])]


# What the file says.


def test_every_figure_of_results_is_there_once_on_the_page_that_is_called_after_it() -> None:
    every = [number for figure in PAPER.figures for panel in panels_of(figure) for number in numbers(panel)]
    assert every == list(range(2, 93))
    for figure in PAPER.figures:
        mine = [number for panel in panels_of(figure) for number in numbers(panel)]
        assert [mine[0], mine[-1]] == [int(one) for one in re.findall(r"\d+", figure.title)] * (
            2 if len(mine) == 1 else 1
        )


def drawn_scenarios() -> Iterator[str]:
    for figure in PAPER.figures:
        for panel in panels_of(figure):
            if figure.draw == "sweep":
                yield from (scenario for _, scenario in cases_of(figure, panel))
            else:
                yield from (one["scenario"] for one in panel.get("curves") or panel["points"])


def test_what_is_drawn_is_in_the_catalogue() -> None:
    assert set(drawn_scenarios()) <= {scenario.id for scenario in find(["windows-media/*"])}


def test_what_is_drawn_is_a_value_in_the_unit_of_its_axis() -> None:
    for figure in SWEEPS:
        for panel in panels_of(figure):
            unit = dimension_of(parse_value(f"1 {panel['y']['unit']}"))
            for text in panel["series"].values():
                assert dimension_of(parse_value(text)) == unit, text


def test_what_the_text_says_stands_at_a_case() -> None:
    for figure in SWEEPS:
        for panel in panels_of(figure):
            places = [x for x, _ in cases_of(figure, panel)]
            assert all(one["x"] in places for one in panel.get("published", ())), panel["label"]


# Sweeps.


@cache
def measured(seed: int, *, plays: bool = True) -> TrialMetrics:
    """20 s of two flows, of which one fills its buffer from 2 s to 6 s at twice its later rate."""
    wsm = [*constant(0, 40 + 2 * seed, 2, 6), *constant(0, 20 + seed, 6, 18)]
    made = record([*wsm, *constant(1, 10, 0, 20)], flows=["wsm", "tcp"], duration_s=20.0, seed=seed)
    said = [(6 * SECOND, "wsm", "playout_start", 4.0, "s", "")] if plays else []
    made.events = pl.DataFrame(said, schema=EVENTS, orient="row")
    return compute(made)


def trial(scenario: str, mode: str, seed: int, *, plays: bool = True) -> LoadedTrial:
    header = {"scenario": {"id": scenario}, "mode": mode, "seed": seed, "validity": {"valid": True}}
    return LoadedTrial(header, {}, dataclasses.replace(measured(seed, plays=plays), mode=mode))


def entry(scenario: str, *modes: str, plays: bool = True) -> Entry:
    groups = [
        Group(scenario, mode, tuple(trial(scenario, mode, seed, plays=plays) for seed in (1, 2, 3)))
        for mode in modes or ("sim",)
    ]
    return Entry(scenario, {"id": scenario}, {}, tuple(groups), ())


def reading(*entries: Entry) -> Reading:
    return Reading("", "", entries, None, None, 3, 0, 0.0, Path("runs"))


def rows(figure: DrawnFigure, **wanted: Any) -> list[dict[str, Any]]:
    every = [dict(zip(figure.columns, row, strict=True)) for row in figure.rows]
    return [row for row in every if all(row[key] == value for key, value in wanted.items())]


def all_cases(figure: PaperFigure) -> list[str]:
    return list(
        dict.fromkeys(scenario for panel in panels_of(figure) for _, scenario in cases_of(figure, panel))
    )


@pytest.mark.parametrize("figure", SWEEPS, ids=lambda figure: figure.id)
def test_a_sweep_has_a_mean_of_each_case_and_series(figure: PaperFigure) -> None:
    found = draw(PAPER, figure, reading(*map(entry, all_cases(figure))))
    assert found is not None
    assert alt.Chart.from_dict(found.vega_lite(), validate=True) is not None
    for panel in panels_of(figure):
        mine = rows(found, panel=panel["label"], whose="sim")
        cases = [x for x, _ in cases_of(figure, panel)]
        assert {(row["x"], row["series"]) for row in mine} == {(x, s) for x in cases for s in panel["series"]}
    assert "● sim: means over the trials" in found.caption and "emu" not in found.caption


def test_a_mean_is_over_the_trials_and_its_bar_is_what_the_caption_says() -> None:
    sweep, queue = figure_of(14), figure_of(5)
    each = [measured(seed).value("receiver_rate", "wsm", 2.0, 6.0) / 1e3 for seed in (1, 2, 3)]
    for figure, half in ((sweep, 4.302653), (queue, 3**0.5)):
        found = draw(PAPER, figure, reading(*map(entry, all_cases(figure))))
        assert found is not None
        name = panels_of(figure)[0]["label"]
        first = rows(found, panel=name, whose="sim", series="WSM")[0]
        assert first["value"] == pytest.approx(statistics.mean(each), rel=1e-5)
        # Student's t(0.975, 2) over the root of 3, and the standard deviation itself.
        reach = half * statistics.stdev(each) / 3**0.5
        assert first["high"] - first["value"] == pytest.approx(reach, rel=1e-4)
        assert first["value"] - first["low"] == pytest.approx(reach, rel=1e-4)
    assert "± their standard deviation (n = 3)" in found.caption
    lengths = draw(PAPER, figure_of(26), reading(*map(entry, all_cases(figure_of(26)))))
    assert lengths is not None
    assert {row["value"] for row in rows(lengths, panel="Figure 26: 250 kbit/s", whose="sim")} == {4.0}


def test_cases_that_were_not_run_are_left_out_and_told() -> None:
    figure = figure_of(85)
    some = all_cases(figure)[:3]
    both = [entry(some[0], "sim", "emu"), *map(entry, some[1:])]
    found = draw(PAPER, figure, reading(*both))
    assert found is not None
    assert alt.Chart.from_dict(found.vega_lite(), validate=True) is not None
    assert [row["x"] for row in rows(found, panel="Figure 85", whose="sim", series="TCP")] == [45, 150, 350]
    assert [row["x"] for row in rows(found, panel="Figure 85", whose="emu", series="TCP")] == [45]
    assert "▲ emu" in found.caption
    assert "of up to 5 cases a panel there are no trials of sim" in found.caption
    assert "of up to 7 cases a panel there are no trials of emu" in found.caption
    assert draw(PAPER, figure, reading()) is None


def test_a_trial_whose_buffer_is_never_full_has_no_value() -> None:
    figure = figure_of(81)
    cases = all_cases(figure)
    found = draw(PAPER, figure, reading(entry(cases[0], plays=False), *map(entry, cases[1:])))
    assert found is not None
    assert [row["x"] for row in rows(found, panel="Figure 81", whose="sim", series="WSM")] == [3, 5, 10, 20]
    # Three trials, two series, two panels.
    assert "12 values of trials that have none are left out" in found.caption


def test_what_a_panel_is_compared_with() -> None:
    figure = figure_of(16)
    found = draw(PAPER, figure, reading(*map(entry, all_cases(figure))))
    assert found is not None
    name = panels_of(figure)[2]["label"]
    bounds = rows(found, panel=name, whose="bound")
    assert {row["value"] for row in bounds if row["label"] == "capacity"} == {725}
    for label, factor in (("encoded rate", 1), ("× 2", 2), ("× 4", 4)):
        assert all(
            row["value"] == pytest.approx(factor * row["x"], rel=1e-5)
            for row in bounds
            if row["label"] == label
        )
    (said,) = rows(found, panel=name, whose="paper")
    assert (said["x"], said["value"], said["series"]) == (548, 548, "WSM")


# Packets, and what goes on over time.


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    scenarios = find([*OF_PACKETS, "windows-media/tcp-warmup", "windows-media/sbr-548-250"])
    modes: Any = {scenario.id: ["sim"] for scenario in scenarios}
    extras = {name: SentPackets(flows) for name, flows in flows_of_packets(PAPER).items()}
    folder = tmp_path_factory.mktemp("runs")
    result = run(scenarios, modes, folder, repeat=3, keep="metrics", extras=extras)
    return read([result], "", "", wall_s=0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    scenarios = find(OF_PACKETS)
    modes: Any = {scenario.id: ["sim"] for scenario in scenarios}
    return read([run(scenarios, modes, tmp_path_factory.mktemp("runs"), repeat=3)], "", "", wall_s=0.0)


def test_packets_are_kept_of_the_scenarios_that_are_drawn_of_them(kept: Reading) -> None:
    assert flows_of_packets(PAPER) == dict.fromkeys(OF_PACKETS, ("wsm",))
    for one in kept.entries:
        for trial in one.groups[0].trials:
            assert trial.directory is not None
            left = {file.name for file in trial.directory.iterdir()}
            assert "packets.parquet" not in left
            assert (FILE in left) == (one.id in OF_PACKETS)


def test_a_trial_without_its_packets_is_run_again(kept: Reading, tmp_path: Path) -> None:
    scenarios = find(OF_PACKETS[:1])
    modes: Any = {OF_PACKETS[0]: ["sim"]}
    extras = {OF_PACKETS[0]: SentPackets(("wsm",))}

    def again(**more: Any) -> bool:
        (outcome,) = run(scenarios, modes, tmp_path, repeat=1, keep="metrics", **more).outcomes
        return outcome.reused

    assert not again() and again()
    assert not again(extras=extras) and again(extras=extras) and again()


@pytest.mark.parametrize("number", [32, 36])
def test_what_is_kept_draws_the_same_as_the_packets(kept: Reading, whole: Reading, number: int) -> None:
    figure = figure_of(number)
    one, other = draw(PAPER, figure, kept), draw(PAPER, figure, whole)
    assert one is not None and other is not None
    assert one.rows == other.rows and one.rows
    assert alt.Chart.from_dict(one.vega_lite(), validate=True) is not None


def test_gaps_are_those_of_the_metrics(kept: Reading) -> None:
    """Over the whole flow, which no sample's edge cuts."""
    figure = figure_of(32)
    panel = {**panels_of(figure)[0], "domain": [0, 5]}
    panel["curves"] = [{**curve, "from": "0 s", "to": "1000 s"} for curve in panel["curves"]]
    found = draw(PAPER, dataclasses.replace(figure, more={**figure.more, "panels_of": [panel]}), kept)
    assert found is not None
    for curve in panel["curves"]:
        group = kept.by_id[curve["scenario"]].group("sim")
        assert group is not None
        gaps = [trial.series("short_gaps", "wsm") for trial in group.each()]
        total = [sum(float(part.sum()) for part in parts) for parts in zip(*map(_parts, gaps), strict=True)]
        last = rows(found, series=curve["label"], part="curve")[-1]
        assert last["x"] == 5 and last["y"] == pytest.approx(100 * total[0] / total[1])


def _parts(series: Any) -> tuple[Any, Any]:
    return series.numerator, series.denominator


def test_longer_gaps_are_what_is_left(kept: Reading) -> None:
    found = draw(PAPER, figure_of(34), kept)
    assert found is not None
    longer = rows(found, panel="Figure 34: while buffering", part="curve", series="548 kbit/s")
    shares = [row["y"] for row in longer]
    assert shares == sorted(shares, reverse=True) and all(0.1 <= share <= 100 for share in shares)
    assert {row["label"] for row in rows(found, part="bound")} == {"300 ms", "475 ms"}


def test_numbers_ascend_but_for_what_is_sent_again(kept: Reading) -> None:
    found = draw(PAPER, figure_of(36), kept)
    assert found is not None
    for panel in panels_of(figure_of(36)):
        first = rows(found, panel=panel["label"], series="sent for the first time")
        assert [row["y"] for row in first] == sorted({row["y"] for row in first})
        assert len(first) > 100 and all(row["x"] >= 0 for row in first)
        known = {row["y"] for row in first}
        assert all(row["y"] in known for row in rows(found, panel=panel["label"], series="sent again"))


def test_packets_that_nobody_kept_are_no_figure(tmp_path: Path) -> None:
    scenarios = find(OF_PACKETS)
    modes: Any = {scenario.id: ["sim"] for scenario in scenarios}
    bare = read([run(scenarios, modes, tmp_path, repeat=1, keep="metrics")], "", "", wall_s=0.0)
    assert draw(PAPER, figure_of(32), bare) is None and draw(PAPER, figure_of(36), bare) is None
    assert sent_packets(tmp_path, "wsm") is None


def test_runs_beside_one_another_and_panels_of_one_time(kept: Reading) -> None:
    warm_up = draw(PAPER, figure_of(2), kept)
    assert warm_up is not None
    assert {row["series"] for row in rows(warm_up, part="curve")} == {"run 1", "run 2", "run 3"}
    assert "Trials of seeds 1, 2 and 3." in warm_up.caption
    assert max(row["x"] for row in rows(warm_up, part="curve")) <= 42
    found = draw(PAPER, figure_of(38), kept)
    assert found is not None
    assert alt.Chart.from_dict(found.vega_lite(), validate=True) is not None
    ends = {
        max(row["x"] for row in rows(found, panel=p["label"], part="bound")) for p in panels_of(figure_of(38))
    }
    assert len(ends) == 1, "panels of the same time stand above one another"
    shown = kept.by_id["windows-media/sbr-548-250"].groups[0].shown
    assert shown is not None
    asked = [row["x"] for row in rows(found, part="bound", label="PLAY")]
    assert asked == pytest.approx([shown.value("buffering_start", "wsm")] * len(asked), rel=1e-5)
    # A point is of two samples: what was received in them over their length.
    (point,) = [row for row in rows(found, part="curve", series="TCP") if row["x"] == 12.5][:1]
    assert point["y"] * 1e3 == pytest.approx(shown.value("receiver_rate", "tcp", 12.0, 13.0), rel=1e-5)


# Claims.


def check(mode: str, verdict: Any, scenario: str = "windows-media/sbr-340-725") -> CheckResult:
    published = {"rate": "340 kbit/s"}
    words = {"that": "1 > 0", "title": "It comes at its own rate", "origin": "predicted", "strict": False}
    return CheckResult(
        "W-2", scenario, mode, verdict, "as claimed", **words, published=published, measured=None,  # type: ignore[arg-type]
        n=3, trials=3, invalid=0, values={}, comparisons=(),
    )  # fmt: skip


def test_a_claim_is_one_row_with_both_modes() -> None:
    here = entry("windows-media/sbr-340-725", "sim", "emu")
    other = entry("windows-media/sbr-548-725")
    agreed = dataclasses.replace(other, checks=(check("sim", "pass", other.id),))
    apart = dataclasses.replace(here, checks=(check("sim", "pass"), check("emu", "fail")))
    both = reading(apart, agreed)
    one, two = claims_of(both)
    assert one.verdict(["sim", "emu"]) == "sim pass, emu fail"
    assert (two.verdict(["sim"]), two.verdict(["sim", "emu"])) == ("pass", "sim pass")
    assert one.to_json()["verdicts"] == {"sim": "pass", "emu": "fail"}
    told = claims_text(both).splitlines()
    assert told[1].split() == ["check", "scenario", "published", "sim", "emu", "verdict", "claim"]
    assert "rate 340 kbit/s" in told[2] and "sim pass, emu fail" in told[2]
    assert len(told) == 4
    assert claims_text(reading(here)) == ""
