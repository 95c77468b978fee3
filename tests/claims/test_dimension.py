"""How numbers are said."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.claims.dimension import (
    DATA,
    NUMBER,
    PACKET_RATE,
    PACKET_SIZE,
    PACKETS,
    PERCENT,
    RATE,
    TIME,
    UNITS,
    Dimension,
    json_value,
    number,
    say,
    say_exactly,
    show,
    show_in,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.857, "0.857"), (1, "1.00"), (9.996, "10.0"), (99.96, "100"), (512.4, "512"),
        (-3.14159, "-3.14"), (1234.5, "1234"), (12345.6, "12\u202f346"), (0.00123456, "0.00123"),
        (1.5e-9, "0.00000000150"), (1e-300, "0"),
    ],
)  # fmt: skip
def test_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_units_that_people_read() -> None:
    assert say(546_000, RATE) == "546 kbit/s"
    assert say(0, RATE) == "0 kbit/s"
    assert say(0.0084, PERCENT) == "0.840 %"
    assert say(0.462, TIME) == "462 ms"
    assert say(8 * 14_356_900, DATA) == "14.4 MB"
    assert say_exactly(1e6, RATE) == "1 Mbit/s"
    assert say_exactly(8 * 16384, DATA) == "16.384 kB"
    assert str(show(244_561, 1240, RATE)) == "244.6 ± 1.2 kbit/s"
    assert str(show(0.00851, 0.0054, PERCENT)) == "0.85 ± 0.54 %"
    assert str(show(365_000, 98_000, RATE)) == "365 ± 98 kbit/s"
    narrow = show(0.11505, 0.00005, TIME, least=5e-6)
    assert (narrow.mean, narrow.low, narrow.high, narrow.unit) == ("115.050", "115.000", "115.100", "ms")
    assert json_value(8000, DATA) == (1000, "bytes")
    assert json_value(0.0084, PERCENT)[0] == pytest.approx(0.84)


def test_units_of_scenarios_are_units_of_checks() -> None:
    from streamgauge import units

    for kind in (units.Rate, units.Size, units.Time, units.Percent, units.Packets):
        for unit in kind.units:
            assert unit in UNITS
    assert UNITS["kB"][0] == 8000
    assert UNITS["KiB"][0] == 8192
    assert UNITS["ms"][0] == 1e-3


UNIT_SCALES = {
    RATE: {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    DATA: {"B": 8, "kB": 8e3, "MB": 8e6, "GB": 8e9},
    TIME: {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1},
    PERCENT: {"%": 0.01},
    PACKETS: {"packets": 1},
    NUMBER: {"": 1},
}
dimensions = st.sampled_from(list(UNIT_SCALES))
sizes = st.floats(1e-7, 1e11)


def read(text: str) -> float:
    return float(text.replace("\u202f", ""))


def taken_apart(text: str, dimension: Dimension) -> tuple[str, str, str, str, float]:
    """Mean, half-width, both ends (as shown), and what one of the unit is."""
    number = r"-?[\d\u202f]+(?:\.\d+)?"
    match = re.fullmatch(rf"({number})(?: ± ({number})| \[({number}), ({number})\])? ?(\D*)", text)
    assert match, text
    mean, half, low, high, unit = match.groups(default="")
    return mean, half, low, high, UNIT_SCALES[dimension][unit]


@given(sizes, st.floats(1e-9, 10), dimensions, st.booleans())
def test_a_mean_has_the_digits_that_its_interval_bears(
    value: float, share: float, dimension: Dimension, signed: bool
) -> None:
    half = share * value
    mean, width, low, high, unit = taken_apart(str(show(value, half, dimension, signed=signed)), dimension)
    if not width and not high:
        assert half <= 5e-4 * value, "an interval is left out where its digits do not show alone"
        assert read(mean) * unit == pytest.approx(value, rel=5.1e-3, abs=1e-12 * unit)
        return
    # The place of the second significant digit of the half-width: nothing is shown finer than that.
    place = 10.0 ** (math.floor(math.log10(float(f"{half / unit:.1e}"))) - 1)
    for shown, true in ((mean, value), (width, half), (high, value + half)):
        if shown:
            assert abs(read(shown) - true / unit) <= 0.5 * place * (1 + 1e-6)
            if place > 1:
                assert read(shown) % round(place) == 0
            else:
                assert 10.0 ** -len(shown.partition(".")[2]) >= place * (1 - 1e-9)
    if width:
        assert read(width) > 0, "± 0.000 says nothing"
    assert bool(low) == (not signed and half > value)
    if low:
        assert read(low) == 0 and "-" not in low


@given(st.floats(-1e15, 1e15), dimensions, st.integers(1, 6))
def test_no_quantity_is_said_with_a_power_of_ten(value: float, dimension: Dimension, digits: int) -> None:
    for text in (say(value, dimension, digits), say_exactly(value, dimension)):
        shown, *_, unit = taken_apart(text, dimension)
        if text == say(value, dimension, digits):
            last = 10.0 ** -len(shown.partition(".")[2])
            assert abs(read(shown) - value / unit) <= 0.5 * last * (1 + 1e-6)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 3))
def test_a_column_shows_no_interval_of_nothing(value: float, half: float, decimals: int) -> None:
    found = show_in(value, half, decimals)
    assert not found.half or read(found.half) > 0
    assert len(found.mean.partition(".")[2]) <= decimals
    assert abs(read(found.mean) - value) <= max(0.5 * 10.0**-decimals, 0.05 * half) * (1 + 1e-6)


every_dimension = st.builds(
    Dimension, st.integers(-2, 2), st.integers(-2, 2), st.integers(-1, 1)
) | st.sampled_from([RATE, DATA, TIME, PERCENT, PACKETS, PACKET_RATE, PACKET_SIZE, NUMBER])


@given(st.floats(-1e15, 1e15), st.none() | st.floats(0, 1e15), every_dimension, st.booleans())
def test_whatever_is_shown_has_its_unit_and_no_power_of_ten(
    value: float, half: float | None, dimension: Dimension, signed: bool
) -> None:
    found = show(value, half, dimension, signed=signed)
    for text in (found.mean, found.half, found.low, found.high):
        assert re.fullmatch(r"-?[\d\u202f]+(\.\d+)?|", text), text
        assert text != "-0"
    has_one = bool(dimension.data or dimension.time or dimension.packets or dimension.percent)
    assert bool(found.unit) == has_one and "number" not in found.unit
    assert str(found).endswith(found.unit)
    if found.half:
        assert read(found.half) > 0, "± 0.000 says nothing"
        places = {len(text.partition(".")[2]) for text in (found.mean, found.half, found.high)}
        assert len(places) == 1, "a mean has the digits of its interval, no more"
        assert found.low == "0" or len(found.low.partition(".")[2]) in places


def test_intervals_that_people_read() -> None:
    assert str(show(0.0000306, 0.0000491, PERCENT, signed=False)) == "0.0031 [0, 0.0080] %"
    assert str(show(8 * 1028, 8e-5, DATA)) == "1.03 kB", "± 1e-05 B"
    assert str(show(0.77, 0.0, NUMBER)) == "0.770", "± 0.000"
    assert str(show(1_365_432 * 8, 8 * 123_456, DATA)) == "1.37 ± 0.12 MB"
    assert str(show(1365, 123, PACKETS)) == "1360 ± 120 packets"
    assert number(91_420) == "91\u202f420"
    assert str(show_in(7294.4, 25.5, 1)) == "7294 ± 26"
    assert show_in(0.0031, 0.0049, 2).interval == ""
