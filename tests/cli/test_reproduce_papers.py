"""`reproduce` of several papers: one table, one document, and one error for a name that is none."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from streamgauge.cli import main, reproducing
from streamgauge.scenario import Scenario, find

TWO = ["hessler/ftp-no", "darwin/vlc-baseline-800"]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each paper a scenario of 20 s."""

    def only(names: Iterable[str], *, settings: Iterable[str], mutants: bool) -> list[Scenario]:
        papers = [name.removesuffix("/*") for name in names]
        mine = [one for one in TWO if one.partition("/")[0] in papers]
        return find(
            mine, settings=[*settings, "until.time=20 s", "measure.window=[0 s, 20 s]"], mutants=mutants
        )

    monkeypatch.setattr(reproducing, "find", only)
    monkeypatch.chdir(tmp_path)


def reproduce(*options: str) -> int:
    return main(["reproduce", "hessler", "darwin/", "hessler", "--mode", "sim", "--repeat", "2", *options])


def test_one_table_of_both_and_a_line_for_each(small: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce() == 0, "what was run is as claimed"
    said = capsys.readouterr().out
    assert "explains more: " in said.splitlines()[0] and " of 35 claims " in said.splitlines()[0]
    assert said.splitlines()[2] == "35 claims of 2 papers in sim"
    rows = [line.split() for line in said.splitlines()]
    assert [row[0] for row in rows if row[1:2] == ["hessler"]] == [f"HW-{n}" for n in range(1, 17)]
    assert [row[0] for row in rows if row[1:2] == ["darwin"]] == [f"DC-{n}" for n in range(1, 20)]
    assert "\nhessler, described: of 16 claims " in said and "\ndarwin, described: of 19 claims " in said
    assert "8 trials and " in said
    assert not Path("runs/hessler.html").exists() and not Path("runs/figures").exists()


def test_one_document_with_mutants(small: None, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("--json", "--mutants", "--out", "here")
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["schema"] == "streamgauge.papers/1"
    assert [one["paper"] for one in told["papers"]] == ["hessler", "darwin"]
    assert len(told["claims"]) == 35 and (told["trials"], told["invalid"]) == (8, 0)
    by_id = {one["id"]: one for one in told["claims"]}
    five = by_id["HW-5"]
    assert five["verdict"] == "pass" and five["origins"] == ["input"]
    assert five["mutants"]["of"] == len(five["checks"]) == 1
    for claim in told["claims"]:
        assert claim["verdict"] == claim["readings"]["described"]["verdict"]
        assert claim["readings"].keys() == {"sources", "described"}
    assert (by_id["HW-16"]["verdict"], by_id["HW-16"]["checks"]) == ("inconclusive", [])
    # The claims' own checks are among all that were judged.
    assert len(told["mutants"]) >= sum(one["mutants"]["of"] for one in told["claims"])
    assert 0 <= told["mutation_score"] <= 1


def test_a_papers_own_run_finds_the_trials(small: None, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("--json")
    assert json.loads(capsys.readouterr().out)["reused"] == 0
    reproduce("--json")
    told = json.loads(capsys.readouterr().out)
    assert told["reused"] == told["trials"] == 8


def test_ctrl_c_says_how_to_go_on(
    small: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reproducing.carry_out
    monkeypatch.setattr(
        reproducing,
        "carry_out",
        lambda *some, **more: dataclasses.replace(real(*some, **more), interrupted=True),
    )
    assert reproduce() == 130
    assert "the same command resumes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["hessler", "darwn", "ccn"], ["there is no paper 'darwn'", "did you mean darwin?", "realvideo"]),
        (
            ["hessler", "nosuch", "other"],
            ["there are no papers 'nosuch' and 'other'", "papers are ccn, darwin"],
        ),
    ],
)
def test_a_name_among_papers_that_is_none_is_refused_before_anything_starts(
    names: list[str], expected: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *names, "--mode", "sim"]) == 3
    said = capsys.readouterr().err
    assert all(one in said for one in expected), said
    assert said.count("streamgauge:") == 1 and list(tmp_path.iterdir()) == []


def test_a_reading_that_one_paper_has_is_run_where_it_is(
    small: None, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce("--reading", "fitted", "--json")
    told = json.loads(capsys.readouterr().out)
    readings = {one["paper"]: list(one["readings"]) for one in told["papers"]}
    assert readings == {"hessler": ["sources"], "darwin": ["fitted"]}
    assert told["trials"] == 4


def test_a_reading_that_no_paper_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "hessler", "darwin", "--reading", "source", "--mode", "sim"]) == 3
    said = capsys.readouterr().err
    assert "has no reading 'source'" in said and "did you mean 'sources'?" in said


@pytest.mark.parametrize(
    "names", [["hessler", "today"], ["darwin/1qt-square", "ccn"], ["hessler/ftp-*"], ["today"]]
)
def test_what_is_more_than_papers_is_scenarios_as_before(names: list[str]) -> None:
    assert reproducing.papers_of(names) == []


def test_papers_are_found_by_name_each_once() -> None:
    found = reproducing.papers_of(["ccn", "hessler/", "ccn"])
    assert [paper.id for paper in found] == ["ccn", "hessler"]
