"""JUnit XML and the summary of a comparison say what its verdict says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from comparisons import case, comparisons, two

sys.path.insert(0, str(Path(__file__).parent.parent / "documents"))

from hypothesis import given
from junit_schema import checked, outcomes
from streamgauge.cli.status import STATUS
from streamgauge.compare import Comparison, answered, compare, say_value
from streamgauge.compare.junit import suites_of, write_junit
from streamgauge.compare.plot import difference_plot
from streamgauge.compare.summary import summary_of, write_summary
from streamgauge.compare.verdict import verdict_of
from streamgauge.documents import junit_xml, plain
from streamgauge.documents.markdown import MOST_BYTES


@given(comparisons())
def test_all_are_red_where_the_exit_status_is_not_0(found: Comparison) -> None:
    verdict = verdict_of(found)
    root = checked(junit_xml(suites_of(found), name="compare"))
    seen = outcomes(root)
    expected = "failure" if "failure" in seen else "error" if "error" in seen else ""
    assert {"": "pass", "failure": "fail", "error": "inconclusive"}[expected] == verdict.verdict
    others = [row for row in found.rows if row.verdict is not None]
    assert seen.count("failure") == sum(row.verdict == "worse" for row in others)
    assert len(seen) == 1 + len(others)
    mark = {"✅": 0, "❌": 1, "❔": 2}[summary_of(found).text()[4]]
    assert mark == STATUS[verdict.verdict]


@given(comparisons())
def test_a_summary_has_every_number_and_note(found: Comparison) -> None:
    text = summary_of(found).text()
    assert len(text.encode()) <= MOST_BYTES
    for row in found.rows:
        assert plain(say_value(row)) in text
    for note in found.notes:
        assert plain(note) in text
    for sentence in found.answer:
        assert plain(sentence) in text


def test_a_failure_has_its_numbers_and_the_rest_has_its_reason() -> None:
    found = two(
        {"rebuffer_ratio": 0.0, "goodput": 1e6, "startup_delay": 1.0},
        {"rebuffer_ratio": 0.4, "goodput": 1.01e6, "startup_delay": 0.5},
    )
    root = checked(junit_xml(suites_of(found), name="compare"))
    (failure,) = root.iter("failure")
    assert failure.attrib["message"] == (
        "after against before: worse by 40.0 points, no variation. "
        "Share of the time spent stalled: 40.0 % instead of 0 %."
    )
    values = {one.attrib["name"]: one.attrib["value"] for one in root.iter("property")}
    assert values["after.goodput"] == "1010000.0 bps"
    assert values["before.startup_delay"] == "1.0 s"
    assert verdict_of(found).verdict == "fail"


def test_one_trial_decides_nothing() -> None:
    found = two({"goodput": 1e6}, {"goodput": 2e6}, n=1)
    verdict = verdict_of(found)
    assert verdict.verdict == "inconclusive"
    assert verdict.why == "Nothing is decided: one repetition has no interval."
    assert outcomes(checked(junit_xml(suites_of(found), name="n"))) == ["error", "skipped"]


@pytest.mark.parametrize(("invalid", "verdict"), [(0, "pass"), (1, "pass"), (2, "inconclusive")])
def test_a_third_may_be_invalid_and_no_more(invalid: int, verdict: str) -> None:
    note = "1 of 3 repetitions is without a valid trial (seed 9), because the processor was short"
    found = two({"goodput": 1e6}, {"goodput": 1e6}, invalid=invalid, note=note if invalid else "")
    assert verdict_of(found).verdict == verdict
    if invalid:
        assert f"{note}." in summary_of(found).text()
        assert f"{note}." in junit_xml(suites_of(found), name="n")
        assert f"3 of {3 + invalid}" in summary_of(found).text()


def test_what_is_worse_fails_whatever_is_invalid() -> None:
    assert verdict_of(two({"goodput": 1e6}, {"goodput": 1e5}, invalid=9)).verdict == "fail"


def test_nothing_comparable_says_why() -> None:
    one = case("before", {1: {"goodput": 1.0}}, mode="sim")
    other = case("after", {1: {"goodput": 1.0}}, mode="emu")
    found = answered(compare([one, other]))
    assert verdict_of(found).verdict == "inconclusive"
    (error,) = checked(junit_xml(suites_of(found), name="n")).iter("error")
    assert "it ran in emu and before in sim" in error.attrib["message"]
    assert "it ran in emu and before in sim" in summary_of(found).text()


def test_a_subject_alone_has_its_values_and_passes_if_enough_is_valid() -> None:
    alone = [case("mine", {seed: {"goodput": 1e6} for seed in (1, 2, 3)}, note="told")]
    found = answered(compare(alone))
    assert verdict_of(found).verdict == "pass"
    assert outcomes(checked(junit_xml(suites_of(found), name="n"))) == ["skipped"]
    text = summary_of(found).text()
    assert "1.00 Mbit/s" in text and "told." in text
    lost = answered(compare([case("mine", {1: {"goodput": 1e6}}, invalid=2)]))
    assert verdict_of(lost).verdict == "inconclusive"


def test_the_picture_has_better_on_the_right() -> None:
    before = {"startup_delay": 1.0, "goodput": 1e6, "loss": 0.0}
    found = two(before, {"startup_delay": 2.0, "goodput": 2e6, "loss": 0.0})
    head, *lines = difference_plot([row for row in found.rows if row.verdict is not None])
    at = {line.split("  ")[0]: max(line.find(mark) for mark in "◄●►") for line in lines}
    assert at["start-up delay"] < head.index("│") < at["goodput"]
    assert at["loss"] == head.index("│")


def test_files_are_written(tmp_path: Path) -> None:
    found = two({"goodput": 1e6}, {"goodput": 1e6})
    write_junit(found, tmp_path / "below" / "junit.xml")
    checked((tmp_path / "below" / "junit.xml").read_text())
    write_summary(found, tmp_path / "s.md", title="Mine")
    assert (tmp_path / "s.md").read_text().startswith("### ✅ Mine\n")


def test_many_rows_keep_the_summary_small() -> None:
    """Forty subjects in a hundred scenarios: what is worse is there, and the whole fits."""
    some = []
    for subject in range(8):
        for scenario in range(40):
            told = {"id": f"test/{scenario}", "flows": {"video": {}}, "until": {"time": f"{scenario} s"}}
            worse = 0.5 if (subject, scenario) == (7, 39) else 1.0
            read = {seed: {"goodput": worse * 1e6, "loss": 0.0, "jain": 1.0} for seed in (1, 2, 3)}
            some.append(case(f"subject {subject} {'x' * 400}", read, scenario=told))
    text = summary_of(answered(compare(some))).text()
    assert len(text.encode()) <= MOST_BYTES and "1 metric is worse" in text
