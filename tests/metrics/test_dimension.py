"""How numbers are said."""

from __future__ import annotations

import pytest
from streamgauge.metrics.dimension import (
    DATA,
    PERCENT,
    RATE,
    TIME,
    UNITS,
    json_value,
    number,
    say,
    say_exactly,
    say_interval,
    say_with,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.857, "0.857"), (1, "1.00"), (9.996, "10.0"), (99.96, "100"), (512.4, "512"),
        (-3.14159, "-3.14"), (1234.5, "1234"), (12345.6, "12\u202f346"), (0.00123456, "0.00123"),
        (1.5e-9, "1.5e-09"),
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
    assert say_with(244_561, 1240, RATE) == "244.6 ± 1.2 kbit/s"
    assert say_with(0.00851, 0.0054, PERCENT) == "0.85 ± 0.54 %"
    assert say_with(365_000, 98_000, RATE) == "365 ± 98 kbit/s"
    assert say_interval(0.115, 0.1151, TIME) == "[115.0, 115.1] ms"
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
