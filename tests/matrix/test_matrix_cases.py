"""``compare rfc8867``: a family of cases, whose systems make their media as they send them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamgauge.cli import main as run_app
from streamgauge.matrix import cells, matrix_of
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


def test_a_page_has_each_case_and_the_calls_that_do_not_fit_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # Without the library that stands in for the browsers in sim, as on most machines.
    monkeypatch.setattr(cells, "lacking_library", lambda name: "no str0m" if name == "webrtc" else None)
    status, out, _ = told(
        capsys, "--system", "gcc", "--system", "webrtc-chromium", "--report", "page.html", *SHORT
    )
    assert status == 0 and "The page is page.html" in out and "no str0m" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for part in ("5.6, behind 20 ms of queue", "GCC", "simulated, n = 2", "goodput", "no str0m"):
        assert part.replace(" ", "") in page.replace("\N{NO-BREAK SPACE}", "").replace(" ", ""), part


def test_real_calls_run_where_their_number_fits_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "processors", lambda: 2)
    file = catalogue_folder() / "rfc8867" / "rfc8867.yaml"
    found = matrix_of(file, kinds=["5.1", "5.2", "5.5"], systems=["webrtc-chromium"], modes=["emu"])
    assert [(one.name, one.label) for one in found.systems] == [
        ("webrtc-chromium", "A video call between two Chromiums")
    ]
    assert [cell.refused.get("emu") for cell in found.cells] == [
        None, None, "not run: 4 cores needed, and this machine has 2",
    ]  # fmt: skip
    flow = found.cells[1].scenario.flows["video2"]
    assert flow.system == "webrtc-chromium" and str(flow.parameters["most_rate"]) == "1.5 Mbit/s"
    assert measures_of(found) == CALL_MEASURES
    # Our own machines are not counted.
    ours = matrix_of(file, kinds=["5.5"], systems=["gcc"], modes=["emu"])
    assert [dict(cell.refused) for cell in ours.cells] == [{}]


def test_what_only_the_matrix_of_films_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = told(capsys, "--emulate", "1")
    assert status == 3 and "--emulate: this family has no further emulated trials" in err


def test_films_and_calls_have_measures_of_their_own() -> None:
    calls = matrix_of(catalogue_folder() / "rfc8867" / "rfc8867.yaml", kinds=["5.4"])
    assert measures_of(calls) == CALL_MEASURES
    assert measures_of(matrix_of(kinds=["cross-no"])) == MEASURES
    assert [system.name for system in calls.systems] == ["gcc", "gcc-draft", "nada", "scream-v2", "fixed"]
