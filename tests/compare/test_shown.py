"""The bit rate seen: what is shown, at what it was encoded, over the time that it was asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.compare import COMPARED, SubjectTrials, compare
from streamgauge.compare.shown import asked_s, shown_rate


def scenario(clip: Any = None, events: Any = (), **more: Any) -> dict[str, Any]:
    whole = {"source": "carphone", "rate": "500 kbit/s", "frame_rate": "25 /s"}
    return {
        "flows": {
            "film": {"role": "subject", "clip": whole if clip is None else clip, "events": list(events)}
        },
        "until": {"time": "100 s"},
        "measure": {"window": ["0 s", "100 s"]},
        **more,
    }


def rate(values: Mapping[str, float], told: Mapping[str, Any] | None = None) -> float:
    known = {"start": 0.0, **values}
    return shown_rate(lambda name: known.get(name, math.nan), told or scenario(), "film")


def test_all_of_it_is_its_rate() -> None:
    assert rate({"frames_shown": 2500}) == pytest.approx(500e3)


def test_a_clip_by_its_name() -> None:
    assert rate({"frames_shown": 2500}, scenario(clip="carphone-300k")) == pytest.approx(300e3)


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ({"frames_shown": 1250}, 0.5),
        ({"frames_shown": 2500, "shown_level": 250e3}, 0.5),
        ({"frames_shown": 1250, "shown_level": 250e3}, 0.25),
        ({"frames_shown": 2250, "start": 10.0}, 1.0),
        ({"frames_shown": 0}, 0.0),
    ],
)
def test_what_is_missing_is_missing(values: dict[str, float], share: float) -> None:
    assert rate(values) == pytest.approx(share * 500e3)


def test_pauses_are_not_asked_for() -> None:
    events = [{"at": "40 s", "do": "pause"}, {"at": "60 s", "do": "resume"}]
    assert rate({"frames_shown": 2000}, scenario(events=events)) == pytest.approx(500e3)
    assert asked_s(lambda _: 0.0, scenario(events=events[:1]), "film") == 40.0
    assert asked_s(lambda _: 0.0, scenario(events=[{"at": "30 s", "do": "stop"}]), "film") == 30.0


@pytest.mark.parametrize(
    "told",
    [
        scenario(clip={"ladder": ["100 kbit/s", "200 kbit/s"], "frame_rate": "25 /s"}),
        {**scenario(), "flows": {"film": {"role": "subject"}}},
        {**scenario(), "measure": {}, "until": {"media_end": "film"}},
        scenario(events=[{"at": "film.start + 3 s", "do": "pause"}]),
    ],
)
def test_what_nobody_tells_is_not_known(told: dict[str, Any]) -> None:
    """A ladder whose player tells no level, a flow without a clip, times that are not fixed."""
    assert math.isnan(rate({"frames_shown": 2500}, told))


def test_who_shows_nothing_is_not_known_to_show_anything() -> None:
    assert math.isnan(rate({}))


@given(st.floats(0, 1), st.floats(1e4, 1e7))
def test_more_pictures_are_never_less(share: float, level: float) -> None:
    low, high = (rate({"frames_shown": 2500 * part, "shown_level": level}) for part in (share, 1.0))
    assert 0 <= low <= high * (1 + 1e-9)


def test_it_is_compared_where_it_is_asked_for_alone() -> None:
    assert COMPARED["shown_rate"].on_request
    sides = [
        SubjectTrials(
            subject=name,
            id="test/a",
            scenario=scenario(),
            mode="sim",
            trials={1: {"shown_rate": 1e5, "goodput": 2e5}},
        )
        for name in ("one", "two")
    ]
    assert {row.metric for row in compare(sides).rows} == {"goodput"}
    assert {row.metric for row in compare(sides, metrics=["shown_rate"]).rows} == {"shown_rate"}
