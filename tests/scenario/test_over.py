"""What ``--over`` reads: any values in, the same values out; one clear error for what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.errors import ScenarioError
from streamgauge.scenario.over import Scale, parse_over, parse_overs
from streamgauge.scenario.overrides import parse_assignment
from streamgauge.units import Rate, Size

READ = [
    ("path.down.queue=10kB,20kB,50kB", ("10kB", "20kB", "50kB"), ("10 kB", "20 kB", "50 kB")),
    ("path.down.rate = 0.5Mbit/s , 1 Mbit/s", ("0.5Mbit/s", "1 Mbit/s"), ("0.5 Mbit/s", "1 Mbit/s")),
    ("q=[droptail 10 kB, codel 20 kB]", ("droptail 10 kB", "codel 20 kB"), ("droptail 10 kB", "codel 20 kB")),
    ("q=[10 kB]", ("10 kB",), ("10 kB",)),
    ("measure.window=[0 s, 10 s],[0 s, 20 s]", ("[0 s, 10 s]", "[0 s, 20 s]"), None),
    ("measure.window=[[0 s, 10 s]]", ("[0 s, 10 s]",), None),
    ("r={square: {first: 1 Mbit/s, period: 1 s}},2 Mbit/s", None, None),
    ("t='a, b',c", ("'a, b'", "c"), ("a, b", "c")),
    ('t=["a]b", c]', ('"a]b"', "c"), ("a]b", "c")),
    ("t=it's,theirs", ("it's", "theirs"), None),
    ("n=1..3 step 1", ("1", "2", "3"), None),
    ("n=0.5..1 step 0.25,7", ("0.5", "0.75", "1", "7"), None),
    ("r=1Mbit/s..2.2Mbit/s step 500kbit/s", ("1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s"), None),
    ("r=500 kbit/s..1Mbit/s step 0.5Mbit/s", ("500 kbit/s", "1000 kbit/s"), None),
    ("r=30 packets/s..60 packets/s step 30/s", ("30 packets/s", "60 packets/s"), None),
    ("q=10kB..160kB times 4", ("10 kB", "40 kB", "160 kB"), None),
    ("clip=../a.mp4,1/../b.mp4", ("../a.mp4", "1/../b.mp4"), None),
    ("flows.cross=null,{traffic: ping}", ("null", "{traffic: ping}"), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "values", "labels"), READ, ids=[one[0] for one in READ])
def test_reads(text: str, values: tuple[str, ...] | None, labels: tuple[str, ...] | None) -> None:
    axis = parse_over(text)
    assert axis.address == text.partition("=")[0].strip()
    assert len(axis) == len(axis.labels) == len(axis.settings) > 0
    if values is not None:
        assert axis.values == values
    if labels is not None:
        assert axis.labels == labels


REFUSED = [
    ("path.down.rate", "is not an address with values"),
    ("=1Mbit/s", "is not an address with values"),
    ("path.down.rate=", "is not an address with values"),
    ("path.down.rate=1Mbit/s,,2Mbit/s", "a comma with nothing"),
    ("path.down.rate=1Mbit/s,", "a comma with nothing"),
    ("q=[]", "a comma with nothing"),
    ("q=[10 kB", "']' is missing at its end"),
    ("q=10 kB]", "']' closes nothing"),
    ("q={a: [1}", "'}' closes nothing"),
    ("q='10 kB", "''' is missing at its end"),
    ("q={a: b: c}", "is not a value"),
    ("r=1Mbit/s,1000 kbit/s", "stands here a second time"),
    ("r=codel,codel", "stands here a second time"),
    ("n=1,1.0", "stands here a second time"),
    ("r=1Mbit/s..2Mbit/s", "has no step"),
    ("r=1Mbit..2Mbit/s step 1Mbit/s", "unknown unit 'Mbit'"),
    ("r=1..2Mbit/s step 1Mbit/s", "mixes 1, 2 Mbit/s and 1 Mbit/s"),
    ("r=1Mbit/s..2Mbit/s step 2", "mixes"),
    ("r=1Mbit/s..2Mbit/s times 2Mbit/s", "mixes"),
    ("r=2Mbit/s..1Mbit/s step 1Mbit/s", "ends before it begins"),
    ("n=1..2 step 0", "never ends"),
    ("n=1..2 times 1", "never ends"),
    ("n=0..2 times 2", "never ends"),
    ("n=0..1000000 step 1", "more than 10,000 values"),
    ("q=1B..2B times 1.5", "comes to what is no value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[one[0] for one in REFUSED])
def test_refuses(text: str, why: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_over(text)
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"--over {text}: ")


def test_an_address_is_in_one_place() -> None:
    assert [axis.address for axis in parse_overs(["a=1,2", "b=3"], ["c=4"])] == ["a", "b"]
    with pytest.raises(ScenarioError, match=r"a second time .*--over a=1,2,3"):
        parse_overs(["a=1,2", "a=3"])
    with pytest.raises(ScenarioError, match="is set by --set as well"):
        parse_overs(["a=1,2"], [" a = 3"])


SCALES = [
    ("r=0.5Mbit/s,1Mbit/s,2 Mbit/s", Scale((0.5, 1, 2), "Mbit/s")),
        ("r=480kbit/s,512kbit/s,0.7Mbit/s", Scale((480, 512, 700), "kbit/s")),
    ("n=1,2.5,10", Scale((1, 2.5, 10), "")),
    ("q=[droptail 10 kB, droptail 100 kB]", Scale((10, 100), "kB", "droptail")),
    ("q=[codel 10 kB target 5 ms, codel 10 kB target 20 ms]", Scale((5, 20), "ms", "codel 10 kB target")),
    ("q=[droptail 10 kB, codel 20 kB]", None),
    ("q=[codel 10 kB target 5 ms, codel 20 kB target 6 ms]", None),
    ("q=[droptail 10 kB, droptail 10 packets]", None),
    ("q=codel,pie", None),
    ("r={steps: 1 Mbit/s},{steps: 2 Mbit/s}", Scale((1, 2), "Mbit/s", "{steps: }")),
    ("q=10 kB", Scale((10,), "kB")),
    ("r=10Mbit/s,1Gbit/s", Scale((10, 1000), "Mbit/s")),
    ("r=30 packets/s,60 packets/s", Scale((30, 60), "packets/s")),
    ("r=640 kB,1280 kB", Scale((640, 1280), "kB")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "scale"), SCALES, ids=[one[0] for one in SCALES])
def test_an_axis_as_numbers(text: str, scale: Scale | None) -> None:
    assert parse_over(text).scale() == scale


QUANTITIES = st.one_of(
    st.integers(1, 10**10).map(Rate.of), st.integers(1, 10**9).map(Size.of), st.integers(-99, 99)
)
VALUES = st.recursive(
    QUANTITIES.map(str) | st.sampled_from(["codel", "droptail 100 packets", "'a, b'", '"c]d"', "lte"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: f"[{', '.join(some)}]")
        | inner.map(lambda one: f"{{key: {one}}}")
    ),
    max_leaves=4,
)


@given(st.lists(VALUES, min_size=1, max_size=5, unique=True), st.booleans())
def test_values_come_out_as_they_went_in(values: list[str], bracketed: bool) -> None:
    """One by one they mean what ``--set`` makes of them."""
    said = ",".join(values)
    lone_list = len(values) == 1 and values[0].startswith("[")
    text = f"a.b=[{said}]" if bracketed or lone_list else f"a.b={said}"
    try:
        axis = parse_over(text)
    except ScenarioError as error:
        assert "second time" in str(error), "only what is another spelling of the same is refused"
        return
    assert list(axis.values) == values
    assert [parse_assignment(setting) for setting in axis.settings] == [
        parse_assignment(f"a.b={value}") for value in values
    ]


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(0, 30), st.integers(0, 10**5))
def test_a_range_has_both_ends_and_even_steps(first: int, step: int, steps: int, rest: int) -> None:
    last = first + steps * step + min(rest, step - 1)
    axis = parse_over(f"r={Rate.of(first)}..{Rate.of(last)} step {Rate.of(step)}")
    assert [Rate(value).bps for value in axis.values] == [first + i * step for i in range(steps + 1)]
    scale = axis.scale()
    assert scale is not None
    assert [Rate(f"{number!r} {scale.unit}").bps for number in scale.numbers] == [
        first + i * step for i in range(steps + 1)
    ]
