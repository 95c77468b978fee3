"""Subjects beside one another: all are in every figure, differences are of pairs, shares rise to all."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import numpy as np
import pytest
from streamgauge.campaign import run
from streamgauge.campaign.loaded import load
from streamgauge.report import gather
from streamgauge.report.comparing import comparisons
from streamgauge.report.side_by_side import SideBySide, side_by_side
from streamgauge.scenario import Scenario, from_text

SCENARIO = """\
id: test/{name}
title: Video beside constant traffic
path: {{down: {{rate: 400 kbit/s, queue: "{queue}", delay: 5 ms}}, up: {{delay: 5 ms}}}}
flows:
  video: {{role: subject, system: rtp, clip: carphone-300k}}
  cross:
    {{role: rival, traffic: cbr, from: router, parameters: {{rate: 30 packets/s}}, start: 2 s, stop: 5 s}}
until: {{time: 8 s}}
"""


def scenarios() -> list[Scenario]:
    queues = {"short-queue": "droptail 5 packets", "long-queue": "droptail 50 packets"}
    return [from_text(SCENARIO.format(name=name, queue=queue))[0] for name, queue in queues.items()]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> SideBySide:
    out: Path = tmp_path_factory.mktemp("beside")
    made = scenarios()
    run(made, {one.id: ["sim"] for one in made}, out, repeat=4, keep="metrics")
    entries = gather(load(out))
    return side_by_side(comparisons(entries), entries)


def test_each_kind_has_both_subjects(drawn: SideBySide) -> None:
    (over_time,), (difference,), (distribution,) = drawn.over_time, drawn.differences, drawn.distributions
    series = over_time.columns.index("series")
    assert {"short", "long"} <= {row[series] for row in over_time.rows}
    names = {row[distribution.columns.index("series")] for row in distribution.rows}
    assert names == {"short", "long"}
    # Less the baseline, which is the first.
    assert {row[difference.columns.index("series")] for row in difference.rows} == names - {
        difference.caption.split(" less ")[1].split(",")[0]
    }


def test_differences_are_of_pairs_and_inside_their_band(drawn: SideBySide) -> None:
    (figure,) = drawn.differences
    assert "medians of 4 pairs" in figure.caption
    at = {name: figure.columns.index(name) for name in ("value", "low", "high")}
    for row in figure.rows:
        assert row[at["low"]] <= row[at["value"]] <= row[at["high"]]
    assert any(row[at["value"]] != 0 for row in figure.rows), "another queue is another delay"


def test_shares_of_trials_rise_to_the_whole(drawn: SideBySide) -> None:
    (figure,) = drawn.distributions
    lines: dict[tuple[object, object], list[tuple[float, float]]] = {}
    for panel, series, value, share, _ in figure.rows:
        lines.setdefault((panel, series), []).append((value, share))
    assert lines
    for points in lines.values():
        values, shares = zip(*points, strict=True)
        assert (np.diff(values) >= 0).all() and (np.diff(shares) >= 0).all()
        assert shares[0] == 0 and shares[-1] == 100


def test_they_are_valid_vega_lite(drawn: SideBySide) -> None:
    for figure in (*drawn.over_time, *drawn.differences, *drawn.distributions):
        alt.Chart.from_dict(figure.vega_lite(), validate=True)
