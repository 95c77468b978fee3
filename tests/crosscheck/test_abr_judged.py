"""The whole of it, sim against sim: a player is equivalent to itself, others and wrong ones are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import EmuSettings
from streamgauge.crosscheck import ABR, CrosscheckRequest, crosscheck
from streamgauge.crosscheck.abr.cases import AbrCase
from streamgauge.crosscheck.abr.matter import varied
from streamgauge.crosscheck.explain import explain
from streamgauge.crosscheck.rows import rows_of
from streamgauge.crosscheck.run import select
from streamgauge.crosscheck.trials import Bench, CaseRuns


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of the 30 sessions those on which most is decided, their mutants included."""
    patterns, out = ("*s-square", "*s-steps"), tmp_path_factory.mktemp("abr")
    return crosscheck(CrosscheckRequest(out=out, matter=ABR, patterns=patterns, reference="sim"))


def test_a_player_is_equivalent_to_itself(document: dict[str, Any]) -> None:
    assert document["schema"] == "streamgauge.crosscheck-abr/1"
    verdicts = [row["verdict"] for row in document["rows"]]
    assert len(verdicts) >= 95
    # Where a threshold is near a row stays open now and then, as no margin grows with it; none may differ.
    assert verdicts.count("equivalent") >= 0.8 * len(verdicts) and set(verdicts) <= {
        "equivalent",
        "inconclusive",
    }


def test_every_mutant_is_rejected(document: dict[str, Any]) -> None:
    assert len(document["mutants"]) >= 3
    assert {one["name"]: one["rejected"] for one in document["mutants"]} == {
        mutant.name: True for mutant in ABR.mutants
    }
    by = {one["name"]: one["cases"] for one in document["mutants"]}
    assert any(rows for case, rows in by["no-abandonment"].items() if "-square" in case)


def test_a_case_says_what_was_drawn_and_what_was_asked_for(document: dict[str, Any]) -> None:
    for case in document["cases"]:
        assert set(case["conditions"]) == {"rate", "rtt", "queue", "ladder", "segment", "buffer", "begin"}
        for asked in case["asked"].values():
            times = [time for time, _, _ in asked]
            assert times == sorted(times) and len(times) > 5
            assert {level for _, level, _ in asked} <= set(range(len(case["levels_bps"])))
    json.dumps(document, allow_nan=False)


@pytest.fixture
def case() -> AbrCase:
    (found,) = select(ABR, ["hlsjs/4s-constant"])
    return found


def runs(bench: Bench, label: str, case: AbrCase) -> CaseRuns:
    return bench.simulate(label, [case])[case.id]


def made_up(real: CaseRuns, metric: str, factor: float, more: float) -> CaseRuns:
    """The same trials with a quantity that is another."""
    taken = [
        one | {"quantities": one["quantities"] | {metric: one["quantities"][metric] * factor + more}}
        for one in real.taken
    ]
    return CaseRuns(tuple(taken))


@pytest.mark.parametrize(
    ("metric", "factor", "more"),
    [("level_bps", 1.3, 0), ("level_changes", 1, 5), ("stall_time_s", 1, 3), ("startup_s", 2, 1)],
)
def test_made_up_differences_are_rejected(
    case: AbrCase, tmp_path: Path, metric: str, factor: float, more: float
) -> None:
    real = runs(Bench(ABR, tmp_path, EmuSettings(), reference="sim"), "real", case)
    verdicts = {
        row.metric: row.verdict for row in rows_of(ABR, case, made_up(real, metric, factor, more), real)
    }
    assert verdicts.pop(metric) == "different"
    assert set(verdicts.values()) == {"equivalent"}


def test_asking_while_there_is_any_room_is_explained_by_that(tmp_path: Path) -> None:
    (case,) = select(ABR, ["dashjs-throughput/4s-constant"])
    bench = Bench(ABR, tmp_path, EmuSettings(), reference="sim")
    real = runs(bench, "real", varied(case, {"fits_whole": "off"}))
    found = {case.id: (runs(bench, "sim", case), real)}
    rows = explain(bench, [case], found, rows_of(ABR, case, *found[case.id]))
    (row,) = [row for row in rows if row.metric == "buffer_s"]
    assert row.verdict == "explained" and row.explained is not None
    assert row.explained["switch"] == "fits_whole off"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamgauge", "crosscheck", "abr", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def test_json_and_resuming(tmp_path: Path) -> None:
    arguments = ("--quick", "--case", "shaka/2s-constant", "--against", "sim", "--json", "--out", "here")
    data = json.loads(run(*arguments, cwd=tmp_path).stdout)
    assert {row["case"] for row in data["rows"]} == {"shaka/2s-constant"}
    assert json.loads((tmp_path / "here" / "crosscheck-abr.json").read_text()) == data
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("trial.json")}
    assert times
    assert json.loads(run(*arguments, cwd=tmp_path).stdout)["rows"] == data["rows"]
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("trial.json")} == times


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--case", "dashj/2s-square"), "did you mean 'dashjs/2s-square'?"),
        (("--with", "ns3"), "has nothing to compare in crosscheck abr"),
        (("--quick", "--docs", "page.md"), "leave --quick"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
