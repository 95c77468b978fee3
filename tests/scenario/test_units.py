"""Quantities: exact, with a unit or not at all."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.units import DIMENSIONS, Packets, Percent, Quantity, Rate, Size, Time, UnitError, parse

whole = st.integers(min_value=0, max_value=10**17)


@st.composite
def quantities(draw: st.DrawFn) -> Quantity:
    kind = draw(st.sampled_from(DIMENSIONS))
    if kind.whole:
        return kind.of(draw(whole))
    return kind.of(draw(st.decimals(min_value=0, max_value=10**9, places=6, allow_nan=False)))


@given(quantities())
def test_what_is_printed_parses_to_the_same(quantity: Quantity) -> None:
    assert type(quantity)(str(quantity)) == quantity
    assert parse(str(quantity)) == quantity


@given(quantities())
def test_survives_copying_and_pickling(quantity: Quantity) -> None:
    assert copy.deepcopy(quantity) == quantity
    assert pickle.loads(pickle.dumps(quantity)) == quantity


@given(st.sampled_from(DIMENSIONS), whole, st.data())
def test_every_unit_scales_exactly(kind: type[Quantity], number: int, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(kind.units)))
    spaced = data.draw(st.sampled_from(["", " ", "  "]))
    number = min(number, 9 * 10**18 // kind.units[unit])
    assert kind(f"{number}{spaced}{unit}").amount == number * kind.units[unit]


@given(quantities(), quantities())
def test_order_is_that_of_the_amounts(a: Quantity, b: Quantity) -> None:
    if type(a) is type(b):
        assert (a < b) == (a.amount < b.amount)
        assert (a <= b) == (a.amount <= b.amount)
    else:
        assert a != b
        with pytest.raises(TypeError):
            _ = a < b


@given(st.text(max_size=12))
def test_any_text_parses_or_says_what_was_expected(text: str) -> None:
    for kind in DIMENSIONS:
        try:
            assert kind(text).amount >= 0
        except UnitError as error:
            assert kind.noun in str(error)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("480 kbit/s", 480_000),
        ("1.5 Mbit/s", 1_500_000),
        ("300kbit/s", 300_000),
        (".5 Gbit/s", 500_000_000),
        ("1e3 bit/s", 1000),
    ],
)
def test_rates(text: str, amount: int) -> None:
    assert Rate(text).bps == amount


def test_decimal_and_binary_prefixes() -> None:
    assert Size("10 kB").bytes == 10_000
    assert Size("16 KiB").bytes == 16_384
    assert Size("1 MB").bytes == 1_000_000
    assert Size("1 MiB").bytes == 1_048_576


def test_prints_with_the_fewest_digits() -> None:
    assert str(Size.of(16_384)) == "16 KiB"
    assert str(Size.of(16_000)) == "16 kB"
    assert str(Time.of(120 * 10**9)) == "120 s"
    assert str(Time.of(500_000_000)) == "500 ms"
    assert str(Time.of(0)) == "0 s"
    assert str(Percent("13.27 %")) == "13.27 %"


def test_fractions() -> None:
    assert Percent("13.27 %").fraction == 0.1327
    assert Packets("11.63 packets").amount == Decimal("11.63")


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (Rate, "300", ["has no unit", "480 kbit/s"]),
        (Rate, 300, ["has no unit"]),
        (Rate, True, ["is not a bit rate"]),
        (Rate, "480 kbps", ["'kbps'", "did you mean 480 kbit/s?"]),
        (Rate, "480 Kbit/s", ["did you mean 480 kbit/s?"]),
        (Rate, "10 ms", ["'ms' is not a unit of a bit rate"]),
        (Rate, "-1 kbit/s", ["negative"]),
        (Rate, "1e30 Mbit/s", ["too much", "9,000,000,000,000,000,000 bit/s at most"]),
        (Time, "1e12 min", ["too much", "ns at most"]),
        (Rate, "0.5 bit/s", ["whole number of bit/s"]),
        (Size, "10 KB", ["did you mean 10 kB?"]),
        (Time, "5 sec", ["did you mean 5 s?"]),
        (Time, "0.3 ns", ["whole number of ns"]),
        (Time, "soon", ["is not a time", "10 ms"]),
        (Time, "1234567890123456789012 ns", ["digits"]),
        (Percent, "half", ["is not a percentage"]),
        (Packets, "3 pkts", ["did you mean 3 packets?"]),
    ],
)
def test_refuses(kind: type[Quantity], text: str, words: list[str]) -> None:
    with pytest.raises(UnitError) as caught:
        kind(text)
    for word in words:
        assert word in str(caught.value)


def test_a_kind_does_not_pass_for_another() -> None:
    with pytest.raises(UnitError, match="is a size, not a bit rate"):
        Rate(Size("10 kB"))


def test_is_immutable() -> None:
    with pytest.raises(AttributeError):
        Rate("1 Mbit/s").amount = Decimal(5)  # type: ignore[misc]
