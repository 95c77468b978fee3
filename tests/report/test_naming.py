"""Names beside points in a drawing: none meets another, each is inside, all points are there."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.claims.dimension import PERCENT, RATE
from streamgauge.report.dots import Point, ScatterAxis, scatter
from streamgauge.report.naming import Area, meet, place_names

AREA = Area((2.0, 14.0, 398.0, 288.0), 7.4)
RULES = (
    "dashjs-dynamic", "bba-2", "bola-e", "hlsjs", "shaka", "exoplayer", "robust-mpc", "throughput", "fixed",
    "rule.py:cautious",
)  # fmt: skip
spots = st.tuples(st.floats(50, 380), st.floats(30, 280))


@settings(max_examples=200)
@given(st.lists(spots, min_size=10, max_size=10))
def test_ten_names_meet_no_other(places: list[tuple[float, float]]) -> None:
    found = place_names(RULES, places, AREA)
    assert [one.text for one in found] == list(RULES)
    for one, other in itertools.combinations(found, 2):
        assert not meet(one.box, other.box)
    for one in found:
        assert one.box[0] >= AREA.box[0] and one.box[2] <= AREA.box[2]
        assert one.box[1] >= AREA.box[1] and one.box[3] <= AREA.box[3]


@pytest.mark.parametrize("spread", [0.0, 0.001, 0.02])
def test_names_of_points_in_one_place_have_lines(spread: float) -> None:
    places = [(200.0 + spread * place, 150.0) for place in range(10)]
    found = place_names(RULES, places, AREA)
    assert not any(meet(a.box, b.box) for a, b in itertools.combinations(found, 2))
    assert sum(one.line != "" for one in found) >= 6


def drawn(values: list[tuple[float, float]]) -> str:
    points = [
        Point(name, x, y, (x - 0.05, x + 0.05), (y, y)) for name, (x, y) in zip(RULES, values, strict=False)
    ]
    x = ScatterAxis("time frozen", PERCENT, "less")
    return str(scatter(points, x, ScatterAxis("bit rate shown", RATE, "more"), name="a"))


def test_every_point_is_drawn_inside_and_no_axis_goes_below_zero() -> None:
    picture = drawn([(0.005 * place, 1e6 - 5e4 * place) for place in range(10)])
    dots = re.findall(r'<circle class="dot[^"]*" cx="([\d.]+)" cy="([\d.]+)"', picture)
    assert len(dots) == 10 and len(set(dots)) == 10
    assert all(46 <= float(x) <= 386 and 20 <= float(y) <= 286 for x, y in dots)
    assert not any(tick.startswith("-") for tick in re.findall(r'<text class="tick"[^>]*>([^<]*)<', picture))
    assert all(f">{name}</text>" in picture for name in RULES)
