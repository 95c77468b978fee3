"""The sentences of the answer: who was alone, at what rate whom sent, and what became of what was sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streamgauge.campaign import run
from streamgauge.claims.dimension import RATE, UNITS
from streamgauge.metrics import compute
from streamgauge.report import LoadedTrial, answer, build, gather
from streamgauge.report.answer import _remedy, by_question
from streamgauge.report.model import labels
from streamgauge.scenario import Scenario, from_text, load
from synthetic import CROSS, EVENTS, SIGNALLING, Sent, SyntheticRecord, constant, record

SENTENCE = re.compile(r"(?:test/one: |(?<=average\. ))(\w.*?average\.)")


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
@settings(max_examples=60)
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


def asked(id_: str, mode: str, valid: bool = True, seed: int = 1) -> LoadedTrial:
    sent = constant(0, 25, 0, 10) + constant(1, 50, 4, 10, kind=CROSS)
    built = record(
        sent, flows=["v", "cross"], duration_s=10.0, scenario=id_, mode=mode, valid=valid, seed=seed
    )
    return loaded(built, ("cross",), question="Which is better?")


def both(id_: str, valid: bool) -> list[LoadedTrial]:
    return [asked(id_, "sim"), asked(id_, "sim", seed=2), asked(id_, "emu", valid)]


WHY = "no emulated trial of test/b is valid (1 tried: conservation failed)"


def test_scenarios_of_one_question_are_answered_from_one_mode(tmp_path: Path) -> None:
    trials = [*both("test/a", True), *both("test/b", False)]
    said = answer(trials)
    assert "emulated with" not in said and said.count("simulated, n = 2") == 1
    assert [line for line in said.splitlines() if WHY in line] == [f"    Answered by simulation: {WHY}."]
    page = build(trials, tmp_path / "r.html").read_text()
    answers = page[page.index('id="answer"') : page.index('id="test-a"')]
    assert WHY in answers and "emulated with" not in answers
    # The reason stands at the row that it is about, too.
    assert "no valid trial of 1 (seed 1: conservation failed)" in answers
    section = page[page.index('id="test-a"') :]
    assert "emulated with" not in section[: section.index("<table")]


def test_emulation_answers_where_all_of_a_question_have_it() -> None:
    said = answer([*both("test/a", True), *both("test/b", True)])
    assert "simulat" not in said and "emulated with our programs, n = 1" in said


def test_without_simulation_of_all_each_answers_as_it_can() -> None:
    said = answer([asked("test/a", "emu"), asked("test/b", "emu", False)])
    assert "test/a: v did not back off" in said and "No valid trial, so no answer" in said
    alone = answer(both("test/b", False))
    assert f"Answered by simulation: {WHY}." in alone


def test_what_was_never_emulated_is_said_not_to_be() -> None:
    said = answer([*both("test/a", True), asked("test/b", "sim")])
    assert "Answered by simulation: test/b was not emulated." in said
    assert "Answered by" not in answer([asked("test/a", "sim"), asked("test/b", "sim")])


def test_labels_tell_the_catalogue_s_scenarios_apart(catalogue: tuple[Scenario, ...]) -> None:
    questions: dict[str, list[str]] = {}
    for scenario in catalogue:
        questions.setdefault(scenario.question or "", []).append(scenario.id)
    groups = [ids[:count] for ids in questions.values() for count in range(1, len(ids) + 1)]
    whole = [id_ for ids in questions.values() for id_ in ids]
    for group in [*groups, whole]:
        found = labels(group)
        assert len(set(found.values())) == len(group)
        for id_, label in found.items():
            assert id_ == label or id_.endswith(("/" + label, "-" + label))
    assert len(whole) > 50
    squares = ["darwin/1qt-square", "darwin/2qt-square", "darwin/4qt-square"]
    assert list(labels(squares).values()) == ["1qt-square", "2qt-square", "4qt-square"]
    assert labels(["hessler/ftp-no", "hessler/ftp-heavy"]) == {
        "hessler/ftp-no": "no", "hessler/ftp-heavy": "heavy"
    }  # fmt: skip
    assert labels(["my/own", "own"]) == {"my/own": "my/own", "own": "own"}


def test_a_summary_tells_its_scenarios_apart() -> None:
    trials = [asked(f"test/{n}qt-square", "sim") for n in (1, 2, 4)]
    (one,) = by_question(gather(trials))
    assert re.findall(r"(\S+) 200 kbit/s", one.summary) == ["1qt-square", "2qt-square", "4qt-square"]


def test_both_transports_of_rtsp_answer_one_question() -> None:
    """What is compared is answered from one mode: UDP by emulation beside TCP by simulation says nothing."""
    questions = {load(f"today/demo-rtsp-{way}-medium")[0].question for way in ("udp", "tcp")}
    assert len(questions) == 1


RELAYED = {"role": "subject", "system": "http", "via": "home"}


def behind_a_cache(at: str, sender: int | None, *events: str, **more: Any) -> LoadedTrial:
    """Flow `v` goes through the cache `home`; one of the two, 0 or 1, sends, or none, and `v` says this."""
    sent = [] if sender is None else constant(sender, 25, 0, 10)
    built = record(sent, flows=["v", "home"], duration_s=20.0, **more)
    rows = [(second * 10**9, "v", name, 0.5, "s", "") for second, name in enumerate(events, 5)]
    built.events = pl.DataFrame(rows, schema=EVENTS, orient="row")
    relays = {"home": {"system": "http-cache", "at": at}}
    return loaded(built, flows={"v": RELAYED}, relays=relays)


@pytest.mark.parametrize("event", ["frame_shown", "playout_start"])
def test_who_is_served_beside_the_path_is_said_to_be(event: str) -> None:
    """Behind one cache at the client: nothing of the flow's crosses, and what the cache fetched does."""
    said = answer([behind_a_cache("client", 1, event)])
    assert "v sent nothing across the path: http-cache home at the client served it." in said
    assert "home sent 103 kbit/s" in said


def test_who_was_not_served_is_not_said_to_be() -> None:
    """Its player showed nothing: a server that refuses, or a path on which nothing arrives in time."""
    through = "v sent nothing across the path, because http-cache home at the client is between."
    for trials in (
        [behind_a_cache("client", 1)],
        [behind_a_cache("client", 1, "frame_late")],
        [behind_a_cache("client", 1, "frame_shown"), behind_a_cache("client", 1, seed=2)],
    ):
        said = answer(trials)
        assert through in said and "served it" not in said


def test_a_relay_at_the_server_is_not_said_to_have_sent_nothing() -> None:
    """What it gives its flows crosses under their names: the answer is about them alone."""
    said = answer([behind_a_cache("server", 0, "frame_shown")])
    assert " v sent 103 kbit/s" in said
    assert "home" not in said and "sent nothing" not in said
    assert " v sent nothing." in answer([behind_a_cache("server", None)])
    # One that itself sends is told of.
    assert " home sent 103 kbit/s" in answer([behind_a_cache("server", 1)])


def test_pings_alone_are_no_error(tmp_path: Path) -> None:
    text = """
id: test/ping
title: A ping
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows: {probe: {role: subject, traffic: ping}}
until: {time: 1 s}
"""
    (scenario,) = from_text(text)
    run([scenario], {scenario.id: ["sim"]}, tmp_path, repeat=1)
    page = build(tmp_path, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The only subjects are pings" in page
    assert "The only subjects are pings" in answer(tmp_path)


def test_no_answer_names_the_remedy() -> None:
    of_programs = answer([asked("test/b", "emu", False)])
    assert "so no answer; the trial's folder has the logs of its programs" in of_programs
    assert "busy" not in _remedy([])
    assert _remedy(["1 % of departures left 11 ms late or more"]).endswith("or add --machine virtual")
