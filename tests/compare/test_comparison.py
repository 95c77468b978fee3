"""Subjects compared: like with like alone, verdicts that turn about with the baseline, ranks, harm, pairs."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.compare import COMPARED, Comparison, Margin, SubjectTrials, answered, compare, verdict_words
from streamgauge.compare.conditions import conditions_of, differences, key_of, under_test
from streamgauge.compare.labels import scenario_labels, subject_labels
from streamgauge.compare.metrics import NEIGHBOUR_GOODPUT, harm, margin_of

SCENARIO: dict[str, Any] = {
    "id": "test/medium",
    "path": {"down": {"rate": "1 Mbit/s", "queue": {"droptail": "20 packets"}}, "up": {}},
    "flows": {
        "video": {
            "role": "subject", "system": "rtp", "parameters": {}, "clip": "carphone-300k", "start": "0 s",
        },
        "cross": {
            "role": "rival", "traffic": "cbr", "parameters": {"rate": "90 /s"}, "start": "video.start + 1 s",
        },
    },
    "until": {"media_end": "video"},
    "measure": {"window": ["0 s", "40 s"], "layer": "ip", "sample": "1 s"},
}  # fmt: skip
FLIPPED = {"better": "worse", "worse": "better", "equal": "equal", "undecided": "undecided"}


def trials(
    subject: str,
    values: Mapping[int, Mapping[str, float]],
    scenario: Mapping[str, Any] = SCENARIO,
    **more: Any,
) -> SubjectTrials:
    return SubjectTrials(
        subject=subject, id=f"test/{subject}", scenario=scenario, mode="sim", trials=values, **more
    )


def changed(**changes: Any) -> dict[str, Any]:
    """The scenario with addresses, joined by two underscores, set to other values."""
    found = copy.deepcopy(SCENARIO)
    for address, value in changes.items():
        *way, last = address.split("__")
        here = found
        for key in way:
            here = here[key]
        here[last] = value
    return found


readings = st.dictionaries(
    st.integers(1, 8),
    st.fixed_dictionaries({name: st.integers(0, 1000).map(float) for name in ("goodput", "loss", "jain")}),
    min_size=1,
    max_size=8,
)


def by_key(found: Comparison) -> dict[tuple[str, str], Any]:
    return {(row.subject, row.metric): row for row in found.rows}


@given(readings, readings)
def test_a_verdict_turns_about_with_the_baseline(a: Any, b: Any) -> None:
    """But for margins, which are of the baseline's value, and resamples, which are not drawn in opposites."""
    absolute = {name: Margin(absolute=10.0) for name in ("goodput", "loss", "jain")}
    there = by_key(compare([trials("a", a), trials("b", b)], margins=absolute))
    back = by_key(compare([trials("a", a), trials("b", b)], baseline="b", margins=absolute))
    for metric in ("goodput", "loss", "jain"):
        ours, theirs = there["b", metric], back["a", metric]
        assert ours.difference == pytest.approx(-theirs.difference)
        if ours.method != "bootstrap-t":
            assert ours.verdict == FLIPPED[theirs.verdict]
        assert there["a", metric].verdict is None and there["a", metric].difference is None


@given(readings)
def test_nothing_is_told_apart_from_itself(a: Any) -> None:
    found = compare([trials("a", a), trials("b", a)])
    for row in found.rows:
        if row.verdict is not None:
            assert row.difference == 0
            assert row.verdict == ("equal" if len(a) > 1 else "undecided")
        assert row.rank == 1


@given(readings, readings, readings)
def test_ranks_begin_at_one_and_do_not_hang_on_the_order(a: Any, b: Any, c: Any) -> None:
    cases = [trials("a", a), trials("b", b), trials("c", c)]
    found, other = by_key(compare(cases)), by_key(compare(cases[::-1], baseline="a"))
    for metric in ("goodput", "loss", "jain"):
        ranks = {one: found[one, metric].rank for one in "abc"}
        assert 1 in ranks.values() and all(rank <= 3 for rank in ranks.values())
        if all(len(one) < 6 for one in (a, b, c)):
            assert ranks == {one: other[one, metric].rank for one in "abc"}


@given(readings, readings)
def test_json_is_json_and_says_the_same(a: Any, b: Any) -> None:
    found = answered(compare([trials("a", a), trials("b", b)]))
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["schema"] == "streamgauge.compare/1"
    assert told["subjects"] == ["a", "b"] and told["baseline"] == "a"
    needed = {
        "subject", "scenario", "mode", "metric", "side", "unit", "value", "interval", "n", "rank",
        "difference", "difference_interval", "verdict",
    }  # fmt: skip
    assert all(needed <= row.keys() for row in told["rows"])
    assert {row["verdict"] for row in told["rows"]} <= {"better", "worse", "equal", "undecided", None}
    assert told["answer"] == list(found.answer) and found.answer


def test_pairs_by_seed_see_what_means_hide() -> None:
    """Every seed has its own level, and b is 5 better in each: paired it shows, unpaired it does not."""
    random = np.random.default_rng(1)
    levels = dict(enumerate(random.normal(1000, 200, 10), 1))
    a = {seed: {"goodput": level} for seed, level in levels.items()}
    b = {seed: {"goodput": level + 5 + 0.1 * (seed % 3)} for seed, level in levels.items()}
    exact = {"goodput": Margin()}
    row = by_key(compare([trials("a", a), trials("b", b)], margins=exact))["b", "goodput"]
    assert row.paired and row.pairs == 10 and row.verdict == "better"
    apart = {seed + 100: value for seed, value in b.items()}
    row = by_key(compare([trials("a", a), trials("b", apart)], margins=exact))["b", "goodput"]
    assert not row.paired and row.verdict == "undecided"


def test_a_difference_too_small_to_matter_is_equal_however_sure() -> None:
    a = {seed: {"goodput": 500e3 + seed} for seed in range(1, 21)}
    b = {seed: {"goodput": 501e3 + 2 * seed} for seed in range(1, 21)}
    found = compare([trials("a", a), trials("b", b)])
    row = by_key(found)["b", "goodput"]
    assert row.verdict == "equal" and row.rank == 1 and row.probability is not None and row.probability < 0.05
    row = by_key(compare([trials("a", a), trials("b", b)], margins={"goodput": Margin(absolute=10)}))[
        "b", "goodput"
    ]
    assert row.verdict == "better"


def test_one_trial_decides_nothing() -> None:
    found = answered(compare([trials("a", {1: {"loss": 0.5}}), trials("b", {1: {"loss": 0.0}})]))
    assert [row.verdict for row in found.rows] == [None, "undecided"]
    assert "so nothing is decided" in found.answer[0]


def test_noise_is_seldom_taken_for_a_difference() -> None:
    """Of 100 comparisons of 15 metrics that differ by chance alone 5 or so call any; uncorrected half do."""
    random = np.random.default_rng(11)
    none = {name: Margin() for name in COMPARED}
    called = 0
    for _ in range(100):
        a, b = (
            {seed: {name: float(random.normal(100, 30)) for name in COMPARED} for seed in range(1, 9)}
            for _ in "ab"
        )
        found = compare([trials("a", a), trials("b", b)], margins=none)
        called += any(row.verdict in ("better", "worse") for row in found.rows)
    assert called <= 12


def test_the_same_difference_in_every_pair_is_taken_at_its_value_and_said_to_be() -> None:
    a = {seed: {"startup_delay": 1.0 + seed} for seed in (1, 2, 3)}
    b = {seed: {"startup_delay": 1.5 + seed} for seed in (1, 2, 3)}
    row = by_key(compare([trials("a", a), trials("b", b)]))["b", "startup_delay"]
    assert row.verdict == "worse" and row.same_difference and row.probability is None
    assert verdict_words(row) == "worse by 500 ms, no variation"


@pytest.mark.parametrize(
    ("change", "address"),
    [
        ({"path__down__rate": "2 Mbit/s"}, "path.down.rate"),
        ({"flows__cross__parameters": {"rate": "150 /s"}}, "flows.cross.parameters.rate"),
        ({"flows__video__clip": "carphone-550k"}, "flows.the subject.clip"),
        ({"until": {"time": "60 s"}}, "until.time"),
        ({"measure__window": ["0 s", "20 s"]}, "measure.window"),
    ],
)
def test_other_conditions_are_named_and_not_compared(change: dict[str, Any], address: str) -> None:
    values = {seed: {"goodput": float(seed)} for seed in range(1, 5)}
    found = answered(compare([trials("a", values), trials("b", values, changed(**change))]))
    assert not found.rows and not found.scenarios
    assert len(found.answer) == 1 and "not comparable, because" in found.answer[0]
    assert address in found.answer[0]


def test_what_is_under_test_and_its_queue_may_differ() -> None:
    other = changed(
        flows__video__system="darwin", flows__video__parameters={"preset": "paper"},
        path__down__queue={"codel": "20 packets"},
    )  # fmt: skip
    assert key_of(conditions_of(SCENARIO)) == key_of(conditions_of(other))
    assert key_of(under_test(SCENARIO)) != key_of(under_test(other))


def test_another_name_of_the_flow_under_test_is_no_other_condition() -> None:
    flows = SCENARIO["flows"]
    renamed = changed(until={"media_end": "film"})
    renamed["flows"] = {
        "film": flows["video"], "cross": {**flows["cross"], "start": "film.start + 1 s"},
    }  # fmt: skip
    assert not differences(conditions_of(SCENARIO), conditions_of(renamed))


def test_what_was_varied_on_purpose_is_no_condition() -> None:
    values = {seed: {"goodput": float(seed)} for seed in range(1, 5)}
    faster = trials("2 Mbit/s", values, changed(path__down__rate="2 Mbit/s"), base=SCENARIO)
    found = compare([trials("1 Mbit/s", values, base=SCENARIO), faster])
    assert found.rows and not found.not_comparable


def test_modes_are_held_against_themselves_alone() -> None:
    values = {seed: {"goodput": float(seed)} for seed in range(1, 5)}
    emu = SubjectTrials(subject="b", id="test/b", scenario=SCENARIO, mode="emu", trials=values)
    found = answered(compare([trials("a", values), emu]))
    assert not found.rows and found.answer == (
        "test/b (b) is not comparable, because it ran in emu and a in sim.",
    )


def test_harm_is_what_neighbours_lose() -> None:
    """(x - y) / x of each neighbour, averaged (Ware et al., section 3.1): (10 - 4) / 10 and (2 - 2) / 2."""
    one, other = f"{NEIGHBOUR_GOODPUT}one", f"{NEIGHBOUR_GOODPUT}other"
    assert harm({one: 4.0, other: 2.0}, {one: 10.0, other: 2.0}) == pytest.approx(0.3)
    assert math.isnan(harm({one: 4.0}, {one: 0.0}))
    assert math.isnan(harm({one: 4.0}, {}))
    assert math.isnan(harm({}, {one: 1.0}))


def test_harm_is_of_the_same_seed_and_path() -> None:
    key = f"{NEIGHBOUR_GOODPUT}cross"
    beside = {seed: {"goodput": 1.0, key: 50.0} for seed in (1, 2)}
    alone_scenario = {**SCENARIO, "flows": {"cross": SCENARIO["flows"]["cross"]}}
    alone = trials("", {1: {key: 100.0}, 3: {key: 1.0}}, alone_scenario)
    found = compare([trials("a", beside), trials("b", beside), alone])
    row = by_key(found)["a", "harm"]
    assert row.values == ((1, 0.5),)
    assert found.subjects == ("a", "b")
    elsewhere = {**alone_scenario, "path": changed(path__down__queue={"codel": "9 packets"})["path"]}
    found = compare([trials("a", beside), trials("b", beside), trials("", {1: {key: 100.0}}, elsewhere)])
    assert ("a", "harm") not in by_key(found)


@given(st.lists(st.sampled_from(["udp", "tcp", "quic"]), min_size=2, max_size=3, unique=True))
def test_labels_are_what_tells_apart(kinds: list[str]) -> None:
    ids = {kind: [f"today/rtsp-{kind}-{load}" for load in ("little", "heavy")] for kind in kinds}
    assert subject_labels(ids) == {kind: kind for kind in kinds}
    assert scenario_labels([[mine[place] for mine in ids.values()] for place in (0, 1)]) == [
        "little",
        "heavy",
    ]


def test_one_scenario_is_called_by_what_its_ids_share() -> None:
    assert scenario_labels([["today/demo-rtsp-udp-medium", "today/demo-rtsp-tcp-medium"]]) == [
        "today/demo-rtsp-medium"
    ]


@pytest.mark.parametrize(
    ("metric", "text", "margin"),
    [
        ("startup_delay", "50 ms", Margin(absolute=0.05)),
        ("goodput", "2%", Margin(relative=0.02)),
        ("goodput", "10 kbit/s", Margin(absolute=10e3)),
        ("frames_lost", "0.5 %", Margin(absolute=0.005)),
        ("jain", "0.01", Margin(absolute=0.01)),
    ],
)
def test_margins_as_written(metric: str, text: str, margin: Margin) -> None:
    found = margin_of(COMPARED[metric], text)
    assert found.absolute == pytest.approx(margin.absolute) and found.relative == pytest.approx(
        margin.relative
    )


@pytest.mark.parametrize(
    ("metric", "text"), [("goodput", "5"), ("jain", "5 ms"), ("loss", "-1 %"), ("loss", "")]
)
def test_other_margins_are_refused(metric: str, text: str) -> None:
    with pytest.raises(ValueError, match=metric):
        margin_of(COMPARED[metric], text)


def test_unknown_names_are_refused() -> None:
    a = trials("a", {1: {"loss": 0.0}})
    with pytest.raises(ValueError, match="baseline"):
        compare([a], baseline="c")
    with pytest.raises(ValueError, match="no compared metric"):
        compare([a], metrics=["beauty"])
