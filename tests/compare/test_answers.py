"""What a comparison is said to show: nothing is best where nothing is decided, and ranks follow values."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.compare import COMPARED, Comparison, SubjectTrials, answered, compare
from streamgauge.compare.labels import scenario_labels, subject_labels
from streamgauge.compare.subjects import subjects_of
from streamgauge.compare.words import say_rank, say_value
from streamgauge.scenario.over import parse_overs

NAMES = [f"rule-{letter}" for letter in "abcdefghij"]
RULE = "my/train (flows.video.parameters.rule={})"


def compared(values: dict[str, list[dict[str, float]]], system: str = "rtsp") -> Comparison:
    scenario = {"id": "test/one", "flows": {"video": {"role": "subject", "system": system}}}
    cases = [
        SubjectTrials(
            subject=name, id=RULE.format(name), scenario=scenario, mode="sim", of="one",
            trials=dict(enumerate(mine, 1)),
        )
        for name, mine in values.items()
    ]  # fmt: skip
    return answered(compare(cases))


def spread(mean: float, half: float, n: int = 10) -> list[float]:
    return [mean + half * math.sin(7 * place) for place in range(n)]


def frozen(means: dict[str, tuple[float, float]]) -> Comparison:
    return compared({name: [{"frozen_share": one} for one in spread(*what)] for name, what in means.items()})


def test_a_metric_that_does_not_separate_nine_of_ten_says_so() -> None:
    means = {name: (0.03 + 0.001 * place, 0.03) for place, name in enumerate(NAMES[:9])}
    found = frozen({**means, NAMES[9]: (0.6, 0.03)})
    head = found.answer[0]
    assert head.startswith("Time frozen does not separate 9 of 10: ")
    assert "rule-j 60" in head and "is worse" in head and "best by" not in head


def test_who_is_better_than_all_others_is_best() -> None:
    found = frozen({"a": (0.01, 0.001), "b": (0.2, 0.001), "c": (0.4, 0.001)})
    assert found.answer[0].startswith("a serves the viewer best: time frozen ")


def test_two_that_are_best_by_one_metric_each_are_named_with_it() -> None:
    found = compared(
        {
            "udp": [{"frozen_share": one, "frames_lost": 0.3} for one in spread(0.01, 0.001)],
            "tcp": [{"frozen_share": one, "frames_lost": 0.0} for one in spread(0.2, 0.001)],
        }
    )
    assert found.answer[0].startswith("udp is best by time frozen, tcp by frames lost: time frozen udp 1.")


def test_three_of_which_two_are_alike() -> None:
    found = frozen({"a": (0.05, 0.04), "b": (0.051, 0.04), "c": (0.7, 0.04)})
    assert found.answer[0].startswith("a is better than 1 of 2 by time frozen: ")
    assert "does not separate a" in found.answer[0] and "c 70" in found.answer[0]
    assert "is worse" in found.answer[0] and "one of these" not in found.answer[0]


def test_worse_than_one_of_two_that_are_alike() -> None:
    """The best value varies so much that it decides nothing; the second is better than the last."""
    found = frozen({"a": (0.1, 0.09), "b": (0.11, 0.001), "c": (0.13, 0.001)})
    assert "does not separate a" in found.answer[0] and "c 13" in found.answer[0]
    assert "is worse than one of these" in found.answer[0]


def test_a_wide_interval_ranks_behind_the_better_values() -> None:
    """820 with rank 2 and 660 with rank 1 was no ranking."""
    values = {
        "first": spread(1000e3, 1e3), "close": spread(820e3, 1e3), "wide": spread(660e3, 900e3),
        "last": spread(100e3, 1e3),
    }  # fmt: skip
    found = compared({name: [{"level": one} for one in mine] for name, mine in values.items()})
    rows = {row.subject: row for row in found.rows}
    assert rows["wide"].beaten_by == () and rows["close"].beaten_by == ("first",)
    assert [rows[name].rank for name in values] == [1, 2, 2, 3]
    assert [say_rank(rows[name]) for name in values] == ["1", "2", "2*", "3"]
    told = found.to_json()["rows"]
    assert [row["beaten_by"] for row in told] == [list(rows[row["subject"]].beaten_by) for row in told]


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.dictionaries(st.integers(1, 6), st.floats(0, 1e6).map(round).map(float), min_size=1),
        min_size=2,
    ),
    st.sampled_from(["level", "frozen_share"]),
)
def test_ranks_never_contradict_values(values: dict[str, dict[int, float]], metric: str) -> None:
    scenario = {"id": "test/one", "flows": {"video": {"role": "subject"}}}
    cases = [
        SubjectTrials(
            subject=name, id=name, scenario=scenario, mode="sim", of="one",
            trials={seed: {metric: value} for seed, value in mine.items()},
        )
        for name, mine in values.items()
    ]  # fmt: skip
    rows = [row for row in compare(cases, metrics=[metric]).rows if row.value is not None]
    sign = -1 if COMPARED[metric].better == "more" else 1
    rows.sort(key=lambda row: (sign * (row.value or 0), row.rank))
    ranks = [row.rank for row in rows]
    assert ranks == sorted(ranks) and ranks[0] == 1
    for a, b in itertools.pairwise(rows):
        assert a.rank == b.rank or a.value != b.value


def test_a_delay_says_what_was_lost() -> None:
    read = [{"path_delay_p95": one, "loss": 0.364} for one in spread(0.133, 0.001)]
    found = compared({"a": read, "b": [{**one, "loss": 0.0} for one in read]})
    first, second = (found.row(name, found.scenarios[0], "sim", "path_delay_p95") for name in "ab")
    assert first is not None and second is not None
    assert say_value(first).endswith(", 36.4 % lost") and "lost" not in say_value(second)
    assert first.to_json()["without"] == pytest.approx(0.364)


@pytest.mark.parametrize(("system", "has"), [("http", False), ("dash", False), ("rtsp", True)])
def test_a_film_on_demand_is_not_behind_live(system: str, has: bool) -> None:
    read = [{"frozen_share": 0.1, "live_latency": one} for one in spread(3.0, 0.1)]
    found = compared({"a": read, "b": read}, system)
    assert any(row.metric == "live_latency" for row in found.rows) == has


def test_subjects_are_called_by_what_was_set() -> None:
    def settings_of(*values: str) -> dict[str, list[str]]:
        return {value: [RULE.format(value)] for value in values}

    assert subject_labels(settings_of("bba-2", "bola-e")) == {"bba-2": "bba-2", "bola-e": "bola-e"}
    files = ("/a/rule.py:own", "/a/other.py:own")
    assert list(subject_labels(settings_of(*files)).values()) == ["rule.py:own", "other.py:own"]
    alike = ("/a/rule.py:own", "/b/rule.py:own")
    assert list(subject_labels(settings_of(*alike)).values()) == list(alike)
    assert subject_labels({"x": ["my/train"], "y": [RULE.format("bba-2")]}) == {"x": "as it is", "y": "bba-2"}
    both = "my/train (flows.video.parameters.rule={}, path.down.rate={})"
    two = {(a, b): [both.format(a, b)] for a in ("x", "y") for b in ("1 Mbit/s", "2 Mbit/s")}
    found = subject_labels({str(key): mine for key, mine in two.items()})
    assert list(found.values())[:2] == ["rule x, rate 1 Mbit/s", "rule x, rate 2 Mbit/s"]
    rates = ("1 Mbit/s", "2 Mbit/s")
    assert scenario_labels([[both.format(a, b) for a in ("x", "y")] for b in rates]) == list(rates)


def test_the_terminal_calls_them_the_same() -> None:
    axes = parse_overs(["flows.video.parameters.rule=bba-2,bola-e"])
    assert [one.label for one in subjects_of(["dash/lte-bola"], axes=axes)] == ["bba-2", "bola-e"]


def test_json_has_the_full_id_beside_the_name() -> None:
    found = frozen({"a": (0.1, 0.01), "b": (0.2, 0.01)})
    told = found.to_json()["entries"]
    assert [(one["subject"], one["id"]) for one in told] == [(name, RULE.format(name)) for name in "ab"]
