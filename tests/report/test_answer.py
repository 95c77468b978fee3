"""The sentences of the answer: who was alone, at what rate whom sent, and what became of what was sent."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from streamgauge.metrics import compute
from streamgauge.metrics.dimension import RATE, UNITS
from streamgauge.report import LoadedTrial, answer
from synthetic import CROSS, SIGNALLING, Sent, SyntheticRecord, constant, record

SENTENCE = re.compile(r"test/one:? (\w.*?average\.)")


def loaded(built: SyntheticRecord, rivals: tuple[str, ...] = (), **scenario: Any) -> LoadedTrial:
    for flow in built.trial["flows"]:
        flow["role"] = "rival" if flow["name"] in rivals else "subject"
    built.trial["scenario"] |= scenario
    return LoadedTrial(built.trial, {}, compute(built))


def test_a_flow_beside_another_subject_is_not_alone() -> None:
    """Subjects from 0 s and 10 s, a rival from 20 s to 30 s: only the first is ever alone."""
    sent = constant(0, 25, 0, 40) + constant(1, 25, 10, 40) + constant(2, 50, 20, 30, kind=CROSS)
    said = answer([loaded(record(sent, flows=["one", "two", "cross"], duration_s=40.0), ("cross",))])
    first, second = SENTENCE.findall(said)
    assert "sent 206 kbit/s alone and 206 kbit/s beside" in first
    assert "beside two sending 206 kbit/s and cross sending 411 kbit/s for 10.0 s (10 s to 40 s)" in first
    assert "alone" not in second
    assert "beside one sending 206 kbit/s and cross sending 411 kbit/s for 10.0 s (10 s to 40 s)" in second


def test_alone_ends_with_the_first_packets_of_anybody() -> None:
    """A flow that begins with little is company too; what its signalling sends before is not."""
    begin = [Sent(1.0 + i / 50, 1, 200, kind=SIGNALLING) for i in range(20)]
    sent = constant(0, 25, 0, 30) + begin + constant(1, 4, 10, 20) + constant(1, 100, 20, 30)
    said = answer([loaded(record(sent, flows=["v", "other"], duration_s=30.0), ("other",))])
    assert "(10 s to 30 s)" in said
    only = record(constant(0, 25, 0, 30) + begin, flows=["v", "other"], duration_s=30.0)
    assert "beside" not in answer([loaded(only, ("other",))])


def test_a_burst_is_told_by_its_own_rate() -> None:
    sent = constant(0, 25, 0, 20) + constant(1, 200, 10, 10.72, kind=CROSS)
    measure = {"sample": "1 s", "layer": "payload"}
    built = record(sent, flows=["ftp", "cross"], duration_s=20.0, measure=measure, limit_bytes=10**6)
    said = answer([loaded(built, ("cross",))])
    assert "beside cross sending 1.60 Mbit/s for 720 ms (10 s to 11 s)" in said


@st.composite
def flows(draw: st.DrawFn) -> SyntheticRecord:
    """Up to three flows at rates that change, through a bottleneck that may hold seconds of them."""
    sent = []
    for flow in range(draw(st.integers(1, 3))):
        at = draw(st.floats(0, 5))
        for _ in range(draw(st.integers(1, 3))):
            until = at + draw(st.floats(0.5, 8))
            sent += constant(flow, draw(st.sampled_from([5, 40, 120])), at, until)
            at = until + draw(st.sampled_from([0.0, 0.0, 3.0]))
    measure = {
        "layer": draw(st.sampled_from(["ip", "payload", "ethernet"])),
        "window": [f"{draw(st.floats(0, 3)):.3f} s", f"{draw(st.floats(8, 19)):.3f} s"],
    }
    return record(
        sent, flows=["a", "b", "c"], duration_s=20.0, measure=measure,
        rate_bps=draw(st.sampled_from([100_000, 400_000, 5_000_000])),
        limit_bytes=draw(st.sampled_from([5_000, 200_000])),
    )  # fmt: skip


def drained() -> SyntheticRecord:
    """A queue of four seconds gives out, beside a burst, what was sent before it."""
    sent = constant(0, 60, 0, 10) + constant(0, 10, 10, 20) + constant(1, 20, 10, 12, kind=CROSS)
    return record(sent, flows=["a", "b", "c"], duration_s=20.0, rate_bps=400_000, limit_bytes=200_000)


@example(drained(), ("b", "c"))
@given(flows(), st.sampled_from([(), ("b", "c")]))
@settings(max_examples=60, deadline=None)
def test_no_sentence_gets_more_through_than_it_sends(made: SyntheticRecord, rivals: tuple[str, ...]) -> None:
    said = answer([loaded(made, rivals)])
    rate = r"([\d.\u202f]+) ([kMG]?bit/s)"
    for text in SENTENCE.findall(said):
        sent = re.search(rf"sent {rate} (?:beside|alone and {rate} beside)", text)
        got = re.search(rf"got {rate} of payload through", text)
        assert (sent is None) == (got is None), text
        if sent is None or got is None:
            continue
        amount, unit = [part for part in sent.groups() if part][-2:]
        sent_bps, got_bps = (
            float(number.replace("\u202f", "")) * UNITS[unit][0]
            for number, unit in ((amount, unit), got.groups())
        )
        assert UNITS[unit][1] == RATE
        # Both are said to three digits.
        assert got_bps <= sent_bps * 1.005 + 1e-9, text
