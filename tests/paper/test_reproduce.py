"""`reproduce` of a whole paper, cut down to one experiment of 20 s."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from streamgauge.cli import main, reproducing
from streamgauge.paper import papers
from streamgauge.scenario import Scenario, find
from streamgauge.scenario.paper_readings import readings_of

ONE = "darwin/1qt1tcp-const"


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = papers()["darwin"]
    tables = [
        dataclasses.replace(table, rows=tuple(row for row in table.rows if row.scenario == ONE))
        for table in whole.means
    ]
    figures = tuple(one for one in whole.figures if {panel.scenario for panel in one.panels} == {ONE})
    paper = dataclasses.replace(whole, tables=tuple(one for one in tables if one.rows), figures=figures)

    def only(names: Iterable[str], *, settings: Iterable[str], mutants: bool) -> list[Scenario]:
        assert list(names) == ["darwin/*"]
        return find([ONE], settings=[*settings, "until.time=20 s"], mutants=mutants)

    monkeypatch.setattr(reproducing, "papers", lambda: {"darwin": paper})
    monkeypatch.setattr(reproducing, "find", only)
    monkeypatch.chdir(tmp_path)


def reproduce(*options: str) -> int:
    return main(["reproduce", "darwin", "--mode", "sim", "--repeat", "2", *options])


def test_both_readings_as_text_with_page_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    status = reproduce()
    said = capsys.readouterr().out
    assert status in (1, 2), "in 20 s the claims do not all hold"
    assert re.match(r"(Reading \w+ explains more|No reading explains more): \d+ of 19 claims", said)
    assert "Table II beside ours (sim, reading sources; n = 2" in said
    assert "Table II beside ours (sim, reading described; n = 2" in said
    assert "Which reading explains the paper better" in said
    page = Path("runs/darwin.html").read_text(encoding="utf-8")
    # One of each reading, and the opening's.
    assert "A paper reproduced" in page and page.count('<figure id="') == 3
    names = {file.name for file in Path("runs/figures").iterdir() if file.name != ".drawn.json"}
    assert names == {f"darwin-{p}-figure-8.{s}" for p in ("sources", "described") for s in ("svg", "png")}
    place = "scenario=darwin%2F1qt1tcp-const/mode=sim/seed=2"
    for folder in ("runs/reading=sources", "runs/reading=described"):
        left = {file.name for file in (Path(folder) / place).iterdir()}
        assert "metrics.parquet" in left and "packets.parquet" not in left


def test_one_reading_with_mutants_and_robustness_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("--reading", "sources", "--mutants", "--robust", "--json", "--out", "here")
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["schema"] == "streamgauge.paper/2" and told["comparison"] == []
    (ran,) = told["readings"]
    assert (ran["reading"], ran["trials"], ran["modes"]) == ("sources", 2, ["sim"])
    checks = {check["id"] for check in ran["checks"]}
    assert checks == {one["id"] for one in ran["mutants"]} == {one["id"] for one in ran["robust"]}
    assert 0 <= ran["mutation_score"] <= 1
    (table,) = told["tables"]
    measured = [line["measured"] for line in table["lines"]]
    assert all(one["reading"] == "sources" and one["throughput_bps"]["n"] == 2 for [one] in measured)
    assert Path("here/darwin.html").exists() and not Path("here/scenario=darwin%2F1qt1tcp-const").exists()


def test_ctrl_c_writes_no_page_and_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = reproducing.carry_out
    monkeypatch.setattr(
        reproducing,
        "carry_out",
        lambda *some, **more: dataclasses.replace(real(*some, **more), interrupted=True),
    )
    assert reproduce() == 130
    said = capsys.readouterr()
    assert "reading sources" in said.out and "reading described" not in said.out
    assert "the same command resumes" in said.err
    assert not Path("runs/darwin.html").exists() and not Path("runs/figures").exists()


def test_a_disk_that_takes_no_page_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reproducing, "write_page", full)
    assert reproduce("--reading", "paper") == 4
    assert "cannot write page and figures into runs: No space left on device" in capsys.readouterr().err


def test_a_reading_is_run_by_its_name_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce("--reading", "fitted") in (1, 2), "in 20 s the claims do not all hold"
    said = capsys.readouterr().out
    assert "Table II beside ours (sim, reading fitted; n = 2" in said
    assert Path("runs/darwin.html").exists()
    names = {file.name for file in Path("runs/figures").iterdir() if file.name != ".drawn.json"}
    assert names == {f"darwin-fitted-figure-8.{suffix}" for suffix in ("svg", "png")}
    reproduce("--reading", "fitted", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [(one["reading"], one["reused"]) for one in told["readings"]] == [("fitted", 2)]
    assert told["claims"][0]["readings"].keys() == {"fitted"}
    # As the scenarios are written, it lies where any run of them does.
    reproduce("--reading", "paper", "--json")
    capsys.readouterr()
    assert Path("runs/scenario=darwin%2F1qt1tcp-const").exists()


def test_a_check_that_was_fitted_to_is_no_evidence_under_that_reading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reproduce("--json")
    told = json.loads(capsys.readouterr().out)
    origins = {
        ran["reading"]: {one["id"]: one["origin"] for one in ran["checks"]} for ran in told["readings"]
    }
    turned = {id_ for id_, origin in origins["described"].items() if origin != origins["sources"][id_]}
    rule = readings_of("darwin").by_name["described"]
    assert turned == {id_ for id_, origin in origins["sources"].items() if rule.origin(id_, origin) != origin}


def test_all_readings(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("--reading", "all", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [one["reading"] for one in told["readings"]] == [*readings_of("darwin").by_name]
    for claim in told["claims"]:
        assert claim["verdict"] == claim["readings"][readings_of("darwin").default]["verdict"]


def test_a_reading_that_is_not_there_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert reproduce("--reading", "describd") == 3
    said = capsys.readouterr().err
    assert "no reading 'describd'" in said and "did you mean 'described'?" in said
    assert list(tmp_path.iterdir()) == []


def test_single_scenarios_run_under_a_reading(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("run", "reproduce"):
        main(
            [
                command,
                ONE,
                "--mode",
                "sim",
                "--repeat",
                "1",
                "--reading",
                "fitted",
                "--set",
                "until.time=20 s",
                "--json",
            ]
        )
        told = json.loads(capsys.readouterr().out)
        assert all("reading=fitted" in one["directory"] for one in told["trials"])
    assert main(["reproduce", ONE, "--mode", "sim", "--reading", "all"]) == 3
    assert "--reading all is for whole papers" in capsys.readouterr().err
    assert main(["run", "today/tcp-no", "--mode", "sim", "--reading", "fitted"]) == 3
