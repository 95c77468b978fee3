"""Ranks in each kind and over all of them, never more than the intervals bear; what they are made of."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_matrix import write
from streamgauge.compare import SubjectTrials
from streamgauge.matrix import JudgedMatrix, MatrixTrials, judged, matrix_of, sentences
from streamgauge.matrix.answer import beaten_in_both
from streamgauge.matrix.judged import MEASURES, undisturbed_of
from streamgauge.matrix.running import begun


def made(tmp_path: Path, read: Any, n: int = 8) -> JudgedMatrix:
    """The small matrix with readings that ``read(kind, system, seed)`` gives."""
    matrix = matrix_of(write(tmp_path))
    by_kind: dict[str, list[SubjectTrials]] = {}
    for cell in matrix.cells:
        case = SubjectTrials(
            subject=cell.system,
            id=cell.scenario.id,
            scenario=cell.scenario.normalised(),
            mode="sim",
            trials={seed: read(cell.kind, cell.system, seed) for seed in range(1, n + 1)},
            base={"path": {"kind": cell.kind}},
            of=cell.kind,
        )
        by_kind.setdefault(cell.kind, []).append(case)
    return judged(MatrixTrials(matrix=matrix, by_kind=by_kind))


def noise(seed: int, system: str) -> float:
    """Nothing on average that anybody could tell from it, and not the same for two systems."""
    return math.sin(7.0 * seed + sum(map(ord, system)))


def test_who_is_better_beyond_doubt_is_first(tmp_path: Path) -> None:
    rates = {"plain": 300e3, "web": 200e3}
    harms = {"plain": 0.6, "web": 0.2, "file": 0.4}

    def read(kind: str, system: str, seed: int) -> dict[str, float]:
        found = {
            "harm": harms[system] + 0.01 * noise(seed, system),
            "jain": 0.9 + 0.001 * noise(seed, system),
        }
        if system in rates:
            found |= {"shown_rate": rates[system] + 1e3 * noise(seed, system), "frames_shown": 100.0}
        return found

    found = made(tmp_path, read)
    for one in (*found.kinds, *found.overall):
        assert one.first("shown_rate") == ["plain"] and one.first("harm") == ["web"]
        assert set(one.first("jain")) == {"plain", "web", "file"} and not one.tells_apart("jain")
        assert [row.subject for row in one.ordered("harm")] == ["web", "file", "plain"]
        worst = one.row("plain", "harm")
        assert worst is not None and worst.rank == 3 and set(worst.beaten_by) == {"web", "file"}
    told = [str(one) for one in sentences(found)]
    assert "A viewer sees most of the film with Plain RTP (300" in told[0]
    assert "Neighbours lose least to A web server (20" in told[1]
    assert "1 of 2 systems take less beyond doubt, and Plain RTP takes more" in told[1]
    assert "No system is best for viewer and neighbours: from Plain RTP" in told[2]
    assert {one.evidence for one in sentences(found)} == {"overall", "neighbours", "front"}


def test_ties_are_ties(tmp_path: Path) -> None:
    def read(kind: str, system: str, seed: int) -> dict[str, float]:
        return {"shown_rate": 300e3 + 40e3 * noise(seed, system), "harm": 0.3 + 0.2 * noise(seed, system)}

    found = made(tmp_path, read)
    for one in (*found.kinds, *found.overall):
        for measure in ("shown_rate", "harm"):
            assert len(one.first(measure)) == 3 and not one.tells_apart(measure)
    told = [one.text for one in sentences(found)]
    assert told[0].startswith("No system shows more of the film than the others")
    assert told[1].startswith("No system does less harm to neighbours")
    assert told[2] == "No winner on both metrics."


def test_who_is_beaten_in_both_is_named(tmp_path: Path) -> None:
    def read(kind: str, system: str, seed: int) -> dict[str, float]:
        good = system == "web"
        return {
            "shown_rate": (300e3 if good else 200e3) + 1e3 * noise(seed, system),
            "harm": (0.1 if good else 0.3) + 0.01 * noise(seed, system),
        }

    found = made(tmp_path, read)
    assert beaten_in_both(found.overall[0]) == {"plain": "web", "file": "web"}
    assert (
        "A web server (300" in sentences(found)[2].text
        and "beats every other on both metrics" in sentences(found)[2].text
    )


def test_all_kinds_weigh_the_same_and_the_undisturbed_one_nothing(tmp_path: Path) -> None:
    level = {"quiet": 900e3, "tcp-one": 100e3, "tcp-self": 300e3}

    def read(kind: str, system: str, seed: int) -> dict[str, float]:
        return {"shown_rate": level[kind] + seed} | ({} if kind == "quiet" else {"harm": 0.5 + seed / 1e3})

    found = made(tmp_path, read, n=4)
    assert undisturbed_of(found.matrix) == {"quiet"}
    row = found.overall[0].row("web", "shown_rate")
    assert row is not None and row.value == pytest.approx(200e3 + 2.5) and row.n == 4
    assert [value for _, value in row.values] == pytest.approx([200e3 + seed for seed in (1, 2, 3, 4)])


def test_what_a_system_lacks_somewhere_it_has_not_over_all(tmp_path: Path) -> None:
    """A mean over fewer kinds than the others' would be of something else."""

    def read(kind: str, system: str, seed: int) -> dict[str, float]:
        told = {"shown_rate": 100e3 + seed, "startup_delay": 1.0 + seed / 10}
        return told if (kind, system) != ("tcp-one", "web") else {"shown_rate": told["shown_rate"]}

    overall = made(tmp_path, read).overall[0]
    assert overall.row("web", "startup_delay") is None and overall.row("web", "shown_rate") is not None
    assert overall.row("plain", "startup_delay") is not None


def test_single_trials_say_nothing(tmp_path: Path) -> None:
    found = made(tmp_path, lambda kind, system, seed: {"shown_rate": 1e5 * len(system), "harm": 0.1}, n=1)
    assert sentences(found) == []


def test_who_never_saw_a_picture_waited_all_the_time(tmp_path: Path) -> None:
    matrix = matrix_of(write(tmp_path))
    scenario = matrix.cells[0].scenario.normalised()
    case = SubjectTrials(
        subject="plain",
        id="small/quiet-plain",
        scenario=scenario,
        mode="sim",
        trials={1: {"frames_shown": 0.0, "shown_rate": 0.0}, 2: {"frames_shown": 5.0, "startup_delay": 1.0}},
    )
    found = begun(case).trials
    assert found[1]["startup_delay"] == found[1]["live_latency"] == 12.0 and found[1]["frozen_share"] == 1.0
    assert found[2] == case.trials[2]
    assert begun(replace(case, trials={})).trials == {}


def test_real_trials_have_what_they_should(small: JudgedMatrix) -> None:
    assert small.modes == ["sim"] and [one.kind.name for one in small.kinds] == [
        "quiet",
        "tcp-one",
        "tcp-self",
    ]
    quiet, beside, _ = small.kinds
    assert {row.metric for row in quiet.rows} == set(MEASURES[:4])
    assert {row.metric for row in beside.rows if row.value is not None} == set(MEASURES)
    for one in small.kinds:
        assert one.row("file", "shown_rate") is None and one.n == 6
        for system in ("plain", "web", "mine"):
            seen = one.row(system, "shown_rate")
            assert seen is not None and seen.value is not None and 0 < seen.value <= 300e3 * 1.001
    # Where nobody disturbs, start-up and nothing else is missing from what is seen.
    for system in ("plain", "web"):
        seen, began = quiet.row(system, "shown_rate"), quiet.row(system, "startup_delay")
        assert seen is not None and began is not None and seen.value is not None and began.value is not None
        assert seen.value == pytest.approx(300e3 * (1 - began.value / 11.9), rel=0.02)
    # A greedy download takes half of another's link.
    harm = beside.row("file", "harm")
    assert harm is not None and harm.value is not None and 0.3 < harm.value < 0.7
