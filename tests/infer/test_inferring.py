"""Inference on a toy whose truth is known: it is found, permuted claims are not, and a search resumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.infer.control import permuted
from streamgauge.infer.inferring import Inferred, Question, infer
from streamgauge.infer.points import FILE, PointRunner
from toy import ASKED, TRUTH


def values(found: Inferred, reading: str) -> dict[str, str]:
    """The departures of a reading, by unknown."""
    point = found.confirmed[reading].point
    return {one.name: value.label for one, value in found.question.unknowns.departures(point)}


def test_the_truth_is_recovered_and_explains_every_claim(found: Inferred) -> None:
    assert values(found, "described") == TRUTH
    assert found.confirmed["described"].whole == found.question.checks.claims
    assert len(found.confirmed["sources"].whole) < 4
    assert set(found.together) == set(found.question.checks.claims)


def test_a_fit_to_one_half_explains_the_other(found: Inferred) -> None:
    """Losses alone give the rate; rates and round trips alone give both."""
    assert values(found, "A") == {"rate": TRUTH["rate"]}
    assert values(found, "B") == TRUTH
    counts = found.counts()
    assert counts["sources"] < counts["held_out"] <= counts["described"]


def test_permuted_claims_gain_less_than_the_real_ones(found: Inferred) -> None:
    counts = found.counts()
    gained = counts["described_by_means"] - counts["sources_by_means"]
    assert counts["control_fitted"] < counts["described_by_means"]
    assert counts["control_fitted"] - counts["control_sources"] < gained


def test_an_unknown_that_moves_nothing_is_fixed(found: Inferred) -> None:
    assert found.search.moving == [True, True, False]
    bred = [one for one in found.search.tried.values() if one.phase not in ("sources", "screening")]
    assert bred
    assert all(one.point[2] == 0 for one in bred)


def test_the_posterior_is_of_the_truth_and_sums_to_one(found: Inferred) -> None:
    rate, delay, idle = found.marginals
    assert rate.posterior.index(max(rate.posterior)) == 2
    assert delay.posterior.index(max(delay.posterior)) == 2
    assert all(sum(one.posterior) == pytest.approx(1) for one in found.marginals)
    assert idle.shift == pytest.approx(0)
    assert rate.shift > 0.2


def test_taking_a_departure_back_names_the_claims_that_need_it(found: Inferred) -> None:
    by_name = {one.unknown: one for one in found.ablations}
    assert "T-4" in by_name["rate"].lost
    assert "T-3" in by_name["delay"].lost
    assert not by_name["rate"].gained


def plain(found: Inferred) -> Any:
    """The result as JSON, without what a run of its own decides."""
    return {
        key: value
        for key, value in json.loads(json.dumps(found.to_json())).items()
        if key not in ("trials", "wall_s")
    }


def test_the_same_search_runs_nothing_again_and_finds_the_same(
    question: Question, folder: Path, found: Inferred
) -> None:
    again = infer(question, ASKED, folder)
    assert again.trials == 0
    assert plain(again) == plain(found)


def test_a_search_that_was_cut_short_goes_on_to_the_same_result(
    question: Question, folder: Path, found: Inferred, tmp_path: Path
) -> None:
    """A crash leaves some lines, the last one torn."""
    lines = (folder / FILE).read_text().splitlines(keepends=True)
    kept = len(lines) // 3
    (tmp_path / FILE).write_text("".join(lines[:kept]) + lines[kept][:20])
    resumed = infer(question, ASKED, tmp_path)
    assert 0 < resumed.trials <= len(lines) - kept
    assert plain(resumed) == plain(found)


def test_a_search_interrupted_keeps_what_has_run(
    question: Question, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch ends with Ctrl-C after some trials: these are on disk."""
    from streamgauge.infer import points

    whole = points.run_jobs

    def cut_short(jobs: Any, **asked: Any) -> Any:
        return whole(jobs[:2], **asked)[0], True

    monkeypatch.setattr(points, "run_jobs", cut_short)
    with pytest.raises(KeyboardInterrupt):
        infer(question, ASKED, tmp_path)
    assert len((tmp_path / FILE).read_text().splitlines()) == 2
    monkeypatch.undo()
    runner = PointRunner(question.scenarios, question.judged, question.unknowns, tmp_path)
    runner.run([(0, 0, 0)], [1])
    assert runner.ran == 1


def test_the_control_keeps_kinds_and_changes_bounds(question: Question) -> None:
    changed = permuted(question.checks, 2)
    assert [one.check for one in changed.each] == [one.check for one in question.checks.each]
    before = sorted(str(one.root) for one in question.checks.each)
    after = sorted(str(one.root) for one in changed.each)
    assert before != after
    # The bounds of an equality of losses are the same two, each somewhere.
    for text in ("== 37 %", "== 69 %", "== 400 kbit/s", "== 500 kbit/s", "== 50 ms", "== 200 ms"):
        assert sum(text in one for one in before) == sum(text in one for one in after) == 1
    assert permuted(question.checks, 2) == changed
