"""`reproduce` of a whole paper, cut down to one experiment of 20 s."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from streamgauge.cli import main, reproducing
from streamgauge.paper import papers
from streamgauge.scenario import Scenario, find

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


def test_both_presets_as_text_with_page_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    status = reproduce()
    said = capsys.readouterr().out
    assert status in (1, 2), "in 20 s the claims do not all hold"
    assert "Table II beside ours (sim, preset paper; n = 2" in said
    assert "Table II beside ours (sim, preset source; n = 2" in said
    assert "Which preset explains the paper better" in said
    page = Path("runs/darwin.html").read_text(encoding="utf-8")
    assert "A paper reproduced" in page and page.count('<figure id="') == 2
    names = {file.name for file in Path("runs/figures").iterdir() if file.name != ".drawn.json"}
    assert names == {f"darwin-{p}-figure-8.{s}" for p in ("paper", "source") for s in ("svg", "png")}
    place = "scenario=darwin%2F1qt1tcp-const/mode=sim/seed=2"
    for folder in ("runs", "runs/set-preset-source"):
        left = {file.name for file in (Path(folder) / place).iterdir()}
        assert "metrics.parquet" in left and "packets.parquet" not in left


def test_one_preset_with_mutants_and_robustness_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("--preset", "source", "--mutants", "--robust", "--json", "--out", "here")
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert told["schema"] == "streamgauge.paper/1" and told["comparison"] == []
    (preset,) = told["presets"]
    assert (preset["preset"], preset["trials"], preset["modes"]) == ("source", 2, ["sim"])
    checks = {check["id"] for check in preset["checks"]}
    assert checks == {one["id"] for one in preset["mutants"]} == {one["id"] for one in preset["robust"]}
    assert 0 <= preset["mutation_score"] <= 1
    (table,) = told["tables"]
    measured = [line["measured"] for line in table["lines"]]
    assert all(one["preset"] == "source" and one["throughput_bps"]["n"] == 2 for [one] in measured)
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
    assert "preset paper" in said.out and "preset source" not in said.out
    assert "goes on from there" in said.err
    assert not Path("runs/darwin.html").exists() and not Path("runs/figures").exists()


def test_a_disk_that_takes_no_page_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reproducing, "write_page", full)
    assert reproduce("--preset", "paper") == 4
    assert "cannot write page and figures into runs: No space left on device" in capsys.readouterr().err


def test_a_preset_that_was_tuned_to_the_paper_is_run_by_name_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert reproduce("--preset", "fitted") in (1, 2), "in 20 s the claims do not all hold"
    said = capsys.readouterr().out
    assert "Table II beside ours (sim, preset fitted; n = 2" in said
    assert Path("runs/darwin.html").exists()
    names = {file.name for file in Path("runs/figures").iterdir() if file.name != ".drawn.json"}
    assert names == {f"darwin-fitted-figure-8.{suffix}" for suffix in ("svg", "png")}
    reproduce("--preset", "fitted", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [(one["preset"], one["reused"]) for one in told["presets"]] == [("fitted", 2)]
    assert "no evidence" in told["presets"][0]["meaning"]
    reproduce("--json")
    told = json.loads(capsys.readouterr().out)
    assert [one["preset"] for one in told["presets"]] == ["paper", "source"], "what is tuned is not compared"


def test_a_preset_of_single_scenarios_is_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", ONE, "--mode", "sim", "--preset", "fitted"]) == 3
    said = capsys.readouterr().err
    assert "name one alone: darwin" in said and "--set 'flows.*.parameters.preset=fitted'" in said
