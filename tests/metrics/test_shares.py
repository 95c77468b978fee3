"""Max-min fair shares with rate caps, and harm."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.cli import main
from streamgauge.metrics import compute, harm, max_min
from streamgauge.metrics.capacity import carried_bits
from streamgauge.metrics.grid import grid_of
from streamgauge.metrics.shares import as_rtp, wire_rate_bps
from streamgauge.record import Record
from streamgauge.scenario import from_text, lower
from synthetic import constant, record


def allocation(capacity: float, *caps: float) -> list[float]:
    return [float(x) for x in max_min(np.array([capacity]), np.array([[cap] for cap in caps]))[:, 0]]


def test_prudentias_example() -> None:
    """A service that takes 10 Mbit/s alone, beside a greedy one, on 8 and on 50 Mbit/s."""
    assert allocation(8, 10, math.inf) == [4, 4]
    assert allocation(50, 10, math.inf) == [10, 40]


def test_water_filling_by_hand() -> None:
    assert allocation(10, math.inf, 2, 2.6, 4) == pytest.approx([2.7, 2, 2.6, 2.7])
    assert allocation(10, 1, 2, 0) == [1, 2, 0]
    assert allocation(0, 1, math.inf) == [0, 0]


caps = st.lists(st.floats(0, 1e3) | st.just(math.inf), min_size=1, max_size=8)


@given(st.floats(0, 1e3), caps)
def test_nobody_can_have_more_without_one_with_less_losing(capacity: float, wants: list[float]) -> None:
    got = allocation(capacity, *wants)
    assert all(0 <= x <= want for x, want in zip(got, wants, strict=True))
    assert sum(got) == pytest.approx(min(capacity, sum(wants)), abs=1e-9)
    # Who has less than it wants has as much as anybody.
    for x, want in zip(got, wants, strict=True):
        if x < want - 1e-9:
            assert x >= max(got) - 1e-9


def test_shares_over_a_window_of_changing_company() -> None:
    """A greedy flow alone for 4 s and then beside one capped at 80 kbit/s on the wire."""
    cbr = {"packets_per_s": 10.0, "payload_bytes": 958, "burst": 1, "windows": []}
    made = record(
        [*constant(0, 100, 0, 10, payload=958), *constant(1, 10, 4, 10, payload=958)],
        flows=["greedy", "capped", "ping"], duration_s=10.0, rate_bps=1_000_000, limit_bytes=10**6,
    )  # fmt: skip
    plans: list[dict[str, Any]] = made.trial["plan"]["flows"]
    plans[0] |= {"start": 0, "app": {"bulk": {"bytes": None}}}
    plans[1] |= {"start": 4 * 10**9, "app": {"cbr": cbr}}
    metrics = compute(made)
    # Due 1000 kbit/s for 4 s and 920 kbit/s for 6 s; it sends 800 kbit/s throughout.
    assert metrics.value("max_min_share", "greedy") == pytest.approx(8000 / 9520, rel=2e-3)
    assert metrics.value("max_min_share", "capped") == pytest.approx(1, rel=2e-2)
    assert metrics.value("max_min_share", "greedy", 0, 4) == pytest.approx(0.8, rel=5e-3)
    assert metrics.flow_json("capped")["max_min_share_percent"] == pytest.approx(100, rel=2e-2)
    assert metrics.flow_json("ping")["max_min_share_percent"] is None


def test_capacity_in_each_sample() -> None:
    grid = grid_of({"sample": "0.5 s"}, 4.0)
    steps = {"steps": [[0, 1000], [1_250_000_000, 3000]]}
    assert carried_bits(steps, grid) == pytest.approx([500, 500, 1000, 1500, 1500, 1500, 1500, 1500])
    square = {"square": {"first": 1000, "second": 3000, "period": 2_000_000_000}}
    assert carried_bits(square, grid) == pytest.approx([500, 500, 1500, 1500] * 2)
    assert carried_bits({"constant": 100}, grid) == pytest.approx([50] * 8)
    trace = {"times": [1, 600_000_000, 700_000_000, 1_000_000_000], "bytes": 125, "period": 1_000_000_000}
    # One at the end of a second is in the next one's first half.
    expected = [1000, 2000] + [2000, 2000] * 3
    assert carried_bits({"opportunities": trace}, grid) == pytest.approx(expected)
    assert carried_bits({}, grid) is None


def test_what_a_clip_comes_to_on_the_link() -> None:
    clip = {"name": "c", "duration": 10**9, "frame_interval": 40_000_000, "frame_bytes": [3000, 500, 500]}
    # Three packets of a frame of 3000 B, one of each other; 54 B of headers each, at 25 frames/s.
    rtp = {"rtp": {"clip": clip, "max_payload": 1388, "tcp": None}}
    assert wire_rate_bps(rtp) == pytest.approx((4000 + 5 * 54) * 8 * 25 / 3)
    assert wire_rate_bps(rtp, ethernet=False) == pytest.approx((4000 + 5 * 40) * 8 * 25 / 3)
    # A fragment's two bytes stand for the NAL unit's first.
    server, player = {"max_payload": 1450}, {"transport": "udp"}
    darwin = {"darwin": {"clip": clip, "server": server, "player": player, "tcp": {"mss": 1448}}}
    assert wire_rate_bps(darwin) == pytest.approx((2999 + 3 * 2 + 1000 + 5 * 54) * 8 * 25 / 3)
    over_tcp = {"rtp": {"clip": clip, "max_payload": 1388, "tcp": {"mss": 1448}}}
    stream = 4000 + 5 * 16
    assert wire_rate_bps(over_tcp) == pytest.approx((stream + round(stream / 1448 * 66)) * 8 * 25 / 3)
    assert wire_rate_bps("external") == wire_rate_bps({"bulk": {}}) == math.inf


@pytest.mark.parametrize("burst", [1, 10])
def test_bursts_leave_the_mean_rate_as_it_is(burst: int) -> None:
    cbr = {"cbr": {"packets_per_s": 100.0, "payload_bytes": 958, "burst": burst}}
    assert wire_rate_bps(cbr) == 800_000
    # 2008 B of UDP in two fragments.
    assert wire_rate_bps({"cbr": cbr["cbr"] | {"payload_bytes": 2000}}, ethernet=False) == 8 * 100 * 2048


RTP = """
id: test/rtp
title: A clip over RTP
path: {down: {rate: 2 Mbit/s, queue: droptail 20 packets}}
flows: {video: {role: subject, system: rtp, clip: carphone-550k}}
until: {time: 10 s}
"""


def test_a_clip_caps_somebody_elses_system_as_it_would_ours() -> None:
    asked = {"system": "rtsp", "clip": "carphone-550k", "parameters": {"transport": "udp"}}
    theirs = wire_rate_bps(as_rtp(asked))
    (scenario,) = from_text(RTP)
    assert theirs == wire_rate_bps(lower(scenario, "sim", 1)["flows"][0]["app"])
    assert 550_000 < theirs < 620_000
    made = record(
        [*constant(0, 150, 0, 10, payload=958), *constant(1, 60, 0, 10, payload=958)],
        flows=["greedy", "video"], duration_s=10.0, rate_bps=2_000_000, limit_bytes=10**6,
    )  # fmt: skip
    made.trial["scenario"] |= {"flows": {"video": asked}}
    metrics = compute(made)
    assert metrics.value("max_min_share", "video") == pytest.approx(480_000 / theirs, rel=1e-2)
    assert metrics.value("max_min_share", "greedy") == pytest.approx(
        1_200_000 / (2_000_000 - theirs), rel=1e-2
    )
    assert as_rtp({"traffic": "bulk"}) == "external"
    own = as_rtp({"clip": {"file": "/my.mp4", "rate": "1 Mbit/s"}, "parameters": {"transport": "tcp"}})
    assert wire_rate_bps(own) == pytest.approx(1.06e6, rel=1e-2)


def test_harm_as_defined() -> None:
    """12 Mbit/s alone and 3 beside is a harm of three quarters; 10 ms alone and 40 beside likewise."""
    assert harm(12, 3, more_is_better=True) == pytest.approx(0.75)
    assert harm(10, 40, more_is_better=False) == pytest.approx(0.75)
    assert harm(12, 15, more_is_better=True) == pytest.approx(-0.25)
    assert harm(0, 0, more_is_better=True) == harm(0, 0, more_is_better=False) == 0
    assert harm(0, 5, more_is_better=False) == 1
    assert math.isnan(harm(0, 5, more_is_better=True))
    with pytest.raises(ValueError, match="negative"):
        harm(-1, 1, more_is_better=True)


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_harm_is_none_to_all_where_company_makes_worse(x: float, y: float, more: bool) -> None:
    alone, beside = (max(x, y), min(x, y)) if more else (min(x, y), max(x, y))
    found = harm(alone, beside, more_is_better=more)
    assert 0 <= found < 1
    assert found == pytest.approx(harm(1 / alone, 1 / beside, more_is_better=not more))


GREEDY = """
id: test/greedy
title: One greedy download on a trace
path: {down: {rate: {trace: NAME}, queue: droptail 150 kB, delay: 10 ms}, up: {delay: 10 ms}}
flows: {bulk: {role: subject, traffic: bulk, congestion_control: cubic}}
until: {time: 60 s}
repetitions: {sim: 1}
measure: {window: [10 s, 60 s], sample: 1 s}
"""


@pytest.mark.parametrize("trace", ["lte-walking", "hsdpa-bus"])
def test_a_lone_greedy_flow_has_its_fair_share_in_every_window(trace: str, tmp_path: Path) -> None:
    """Whose link goes from 1.2 to 4.9 Mbit/s, by opportunities or by steps."""
    scenario = tmp_path / "greedy.yaml"
    scenario.write_text(GREEDY.replace("NAME", trace))
    assert main(["run", str(scenario), "--mode", "sim", "--out", str(tmp_path / "out")]) == 0
    (trial,) = (tmp_path / "out").rglob("trial.json")
    metrics = compute(Record.open(trial.parent))
    shares = [metrics.value("max_min_share", "bulk", begin, begin + 5.0) for begin in range(10, 60, 5)]
    assert min(shares) > 0.9 and max(shares) < 1.02, shares
