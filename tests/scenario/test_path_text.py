"""A direction in one line: read, printed, read again; slips are answered as in a file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Direction
from streamgauge.scenario.path import direction_of_text, text_of_direction

SAID: list[tuple[str, dict[str, Any]]] = [
    ("", {}),
    ("rate 1 Mbit/s, queue 10 kB", {"rate": "1 Mbit/s", "queue": "droptail 10 kB"}),
    ("rate 1Mbit/s,queue droptail 300 ms", {"rate": "1 Mbit/s", "queue": {"droptail": "300 ms"}}),
    ("rate 1 Mbit/s", {"rate": "1 Mbit/s", "queue": "droptail 100 packets"}),
    ("rate 1 Mbit/s, queue codel", {"rate": "1 Mbit/s", "queue": {"codel": {}}}),
    (
        "queue fq_codel 50 packets target 7 ms ecn off, rate 1 Mbit/s",
        {"rate": "1 Mbit/s", "queue": {"fq_codel": {"limit": "50 packets", "target": "7 ms", "ecn": False}}},
    ),
    (
        "rate 1 Mbit/s, queue 10 kB, shaper token_bucket 1600 B",
        {"rate": "1 Mbit/s", "queue": "droptail 10 kB", "shaper": {"token_bucket": {"burst": "1600 B"}}},
    ),
    ("loss 1 %", {"loss": {"bernoulli": "1 %"}}),
    (
        "loss gilbert good 11.63 packets bad 1.78 packets",
        {"loss": {"gilbert": {"good": "11.63 packets", "bad": "1.78 packets"}}},
    ),
    ("delay 20 ms, jitter 5 ms", {"delay": {"constant": "20 ms", "jitter": {"uniform": "5 ms"}}}),
    (
        "jitter normal 5 ms keep_order off, delay 20 ms",
        {"delay": {"constant": "20 ms", "jitter": {"normal": "5 ms", "keep_order": False}}},
    ),
    ("mtu 1400 B", {"mtu": {"size": "1400 B"}}),
    ("reorder 1 % 5 ms", {"reorder": {"probability": "1 %", "extra": "5 ms"}}),
    ("duplicate 0.1 %", {"duplicate": {"probability": "0.1 %"}}),
    ("block tcp ports 554 1755", {"block": {"protocol": "tcp", "ports": [554, 1755]}}),
    ("corrupt 0.01 %, block udp", {"corrupt": {"probability": "0.01 %"}, "block": {"protocol": "udp"}}),
    ("rate 1 Mbit/s, queue 10 kB, layer ip", {"rate": "1 Mbit/s", "queue": "droptail 10 kB", "layer": "ip"}),
]


@pytest.mark.parametrize(("text", "keys"), SAID, ids=[text or "nothing" for text, _ in SAID])
def test_a_line_says_what_a_file_says(text: str, keys: dict[str, Any]) -> None:
    assert direction_of_text(text) == Direction(**keys)


SLIPS = [
    ("ratte 1 Mbit/s", "ratte", ["did you mean 'rate 1 Mbit/s'?"]),
    ("rate 1 Mbps", "rate", ["did you mean 1 Mbit/s?"]),
    ("rate", "rate", ["has no value"]),
    ("rate 1 Mbit/s, rate 2 Mbit/s", "rate", ["said twice"]),
    ("rate 1 Mbit/s, trace lte", "trace", ["exclude each other"]),
    ("rate 1 Mbit/s, queue codell 10 kB", "queue", ["did you mean 'codel 10 kB'?"]),
    ("rate 1 Mbit/s, queue codel 10 kB targt 5 ms", "queue.codel.targt", ["did you mean 'target'?"]),
    ("rate 1 Mbit/s, queue codel target 100 ms", "queue.codel.target", ["below the interval"]),
    ("rate 1 Mbit/s, queue 1 kB", "queue", ["cannot hold one packet of 1514 B"]),
    ("queue 10 kB", "queue", ["needs the rate"]),
    ("rate 1 Mbit/s, shaper token_bucket 1000 B", "shaper.token_bucket.burst", ["1514 B"]),
    ("shaper cbq", "shaper", ["needs the rate"]),
    ("delay 20", "delay", ["has no unit"]),
    ("jitter 5 ms", "jitter", ["none is said"]),
    ("delay 20 ms, jitter nrmal 5 ms", "jitter", ["did you mean 'normal 5 ms'?"]),
    ("delay 20 ms,, loss 1 %", None, ["comma"]),
    ("block dns", "block.protocol", ["expected one of udp, tcp, icmp"]),
    ("reorder 1 %", "reorder.extra", ["missing"]),
    ("loss 101 %", "loss.bernoulli", ["more than everything"]),
]


@pytest.mark.parametrize(("text", "key", "words"), SLIPS, ids=[slip[0] for slip in SLIPS])
def test_slips(text: str, key: str | None, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        direction_of_text(text, source="--down")
    assert (caught.value.file, caught.value.key) == ("--down", key)
    for word in words:
        assert word in str(caught.value)


shares = st.integers(0, 10_000).map(lambda n: f"{n / 100:g} %")
times = st.integers(1, 10**10).map(lambda n: f"{n} ns")
limits = st.one_of(
    st.integers(1514, 10**8).map(lambda n: f"{n} B"), st.integers(1, 10**6).map(lambda n: f"{n} packets")
)
runs = st.integers(100, 9999).map(lambda n: f"{n / 100:g} packets")
flags = st.sampled_from(["", " ecn on", " ecn off"])
codels = st.tuples(limits, st.integers(1, 99), flags).map(lambda t: f"{t[0]} target {t[1]} ms{t[2]}")
queues = st.one_of(
    limits.map(lambda limit: f"droptail {limit}"),
    st.tuples(st.sampled_from(["codel", "fq_codel"]), codels).map(" ".join),
    st.tuples(st.sampled_from(["pie", "red"]), limits, flags).map(lambda t: f"{t[0]} {t[1]}" + t[2]),
    st.sampled_from(["fq_codel", "dualpi2", "dualpi2 300 ms l4s_step 1 ms", "pie derandomize off"]),
    st.integers(1, 500).map(lambda n: f"nistnet {n} packets"),
    st.integers(1, 50).map(lambda n: f"drd min {n} packets max {2 * n} packets"),
)
values = {
    "block": st.sampled_from(["udp", "tcp", "icmp", "tcp ports 80", "udp ports 6970 6971"]),
    "loss": st.one_of(shares, st.tuples(runs, runs).map(lambda t: f"gilbert good {t[0]} bad {t[1]}")),
    "corrupt": shares,
    "duplicate": shares,
    "mtu": st.integers(68, 1500).map(lambda n: f"{n} B"),
    "rate": st.integers(10**5, 10**8).map(lambda n: f"{n} bit/s"),
    "delay": times,
    "reorder": st.tuples(shares, times).map(" ".join),
}


@st.composite
def lines(draw: st.DrawFn) -> str:
    said = {key: draw(value) for key, value in values.items() if draw(st.booleans())}
    if "rate" in said:
        said["queue"] = draw(queues)
        said |= draw(
            st.sampled_from([{}, {"shaper": "token_bucket 3 kB"}, {"shaper": "cbq device_rate 1 Gbit/s"}])
        )
        said |= draw(st.sampled_from([{}, {"layer": "ip"}]))
    if "delay" in said and draw(st.booleans()):
        name = draw(st.sampled_from(["", "normal ", "pareto ", "uniform "]))
        said["jitter"] = name + draw(times) + draw(st.sampled_from(["", " keep_order off"]))
    return ", ".join(f"{key} {said[key]}" for key in draw(st.permutations(list(said))))


@pytest.mark.parametrize(
    "line", ["trace lte-driving", "trace lte-driving format csv, queue codel", "csv hsdpa-bus"]
)
def test_traces_read_back_the_same(line: str) -> None:
    direction = direction_of_text(line)
    assert direction_of_text(text_of_direction(direction)) == direction


NO_LINE = [
    {"rate": {"steps": [{"at": "0 s", "rate": "1 Mbit/s"}]}, "queue": "codel"},
    {"rate": {"square": {"first": "1 Mbit/s", "second": "2 Mbit/s", "period": "1 s"}}, "queue": "codel"},
    {"loss": {"list": [1, 2]}},
    {"loss": {"bernoulli": "1 %", "switch": [{"at": "1 s", "to": "off"}]}},
    {"delay": {"steps": [{"at": "0 s", "delay": "1 ms"}]}},
    {"delay": {"constant": "1 ms", "flows": {"a": "1 ms"}}},
    {"stages": [{"name": "a", "loss": "1 %"}]},
]


@pytest.mark.parametrize("keys", NO_LINE, ids=str)
def test_what_no_line_can_say_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one-line form"):
        text_of_direction(Direction(**keys))


@given(lines())
@settings(max_examples=200)
def test_what_is_printed_reads_back_the_same(line: str) -> None:
    direction = direction_of_text(line)
    printed = text_of_direction(direction)
    assert direction_of_text(printed) == direction
    assert text_of_direction(direction_of_text(printed)) == printed


@given(st.text(alphabet="rateqund loscj,.%kMb/0123456789", max_size=40))
@settings(max_examples=200)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        direction_of_text(text)
    except ScenarioError as error:
        assert str(error)
