"""``compare rfc8867``: a family of cases, whose systems make their media as they send them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamgauge.cli import main as run_app
from streamgauge.matrix import matrix_of
from streamgauge.matrix.judged import CALL_MEASURES, MEASURES, measures_of
from streamgauge.scenario.catalogue import catalogue_folder

SHORT = ["--set", "until.time=30s", "--set", "measure.window=[0 s, 30 s]", "--repeat", "2"]


def told(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = run_app(["compare", "rfc8867", "--kind", "5.6-q20", "--kind", "5.6-cubic", *command])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_one_table_ranks_controllers_case_by_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    some = ["--system", "gcc", "--system", "fixed", "--mode", "sim", *SHORT]
    status, out, _ = told(capsys, *some, "--json")
    found = json.loads(out)
    assert status == 0 and found["trials"] == 8
    rows = {(row["kind"], row["system"], row["metric"]): row for row in found["rows"]}
    assert {metric for _, _, metric in rows} <= set(CALL_MEASURES)
    gcc, fixed = (rows["5.6-q20", system, "goodput"] for system in ("gcc", "fixed"))
    assert gcc["value"] > 1.5 * fixed["value"] and gcc["rank"] == 1 and len(gcc["interval"]) == 2
    assert rows["5.6-cubic", "gcc", "harm"]["value"] is not None
    status, out, _ = told(capsys, *some)
    assert status == 0 and "5.6, behind 20 ms of queue" in out and "GCC" in out and "simulated, n = 2" in out
    assert not list(tmp_path.rglob("*.html"))


def test_what_only_the_matrix_of_films_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = told(capsys, "--report", "page.html")
    assert status == 3 and "--report: this family has one table and no page" in err


def test_films_and_calls_have_measures_of_their_own() -> None:
    calls = matrix_of(catalogue_folder() / "rfc8867" / "rfc8867.yaml", kinds=["5.4"])
    assert measures_of(calls) == CALL_MEASURES
    assert measures_of(matrix_of(kinds=["cross-no"])) == MEASURES
    assert [system.name for system in calls.systems] == ["gcc", "gcc-draft", "nada", "scream-v2", "fixed"]
