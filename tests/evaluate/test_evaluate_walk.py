"""The classes of docs/own-congestion-control.md, evaluated: the rows that the page names find each out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamgauge.evaluate.judging import EvaluatedRow, judge
from streamgauge.evaluate.question import SameAs
from streamgauge.evaluate.running import run_trials, trials_of
from streamgauge.evaluate.rust_crate import STAND_IN, CrateControl, built_crate
from streamgauge.evaluate.suites import questions_of
from streamgauge.evaluate.trials import ControlBed
from streamgauge.systems.parameter import function_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "own-congestion-control.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the files that the page has its reader write; trials lie there too, each run once."""
    found = tmp_path_factory.mktemp("walk")
    text = PAGE.read_text(encoding="utf-8")
    for name in ("aimd.py", "others.py"):
        block = re.search(rf"Write `{name}`:\n\n```python\n(.*?)```", text, re.S)
        assert block is not None, name
        (found / name).write_text(block[1])
    return found


def rows(
    folder: Path,
    control: str,
    criteria: tuple[str, ...],
    *,
    reference: str = "cubic",
    seeds: int = 2,
    crate: CrateControl | None = None,
) -> list[EvaluatedRow]:
    """These rows of the quick suite; of all with no criterion given."""
    named = control if function_of(control) is None else f"{folder}/{control}"
    bed = ControlBed(named, reference=reference)
    questions = [
        one
        for one in questions_of("bcp133", bed, ("cubic",), quick=True)
        if one.criterion in criteria or (not criteria and isinstance(one.bound, SameAs))
    ]
    assert questions
    ran = run_trials(trials_of(questions), "sim", folder / "trials", seeds=seeds, crate=crate)
    assert not ran.faults, [fault.words for fault in ran.faults.values()]
    return judge(questions, ran, seeds)


@pytest.mark.parametrize(
    ("control", "criterion"),
    [
        ("others.py:Greedy", "No starvation of cubic"),
        ("others.py:Constant", "Losses in a short buffer"),
        ("others.py:Lazy", "No starvation by cubic"),
    ],
)
def test_a_control_at_fault_fails_the_row_that_the_page_names(
    folder: Path, control: str, criterion: str
) -> None:
    (row,) = rows(folder, control, (criterion,))
    assert row.verdict == "fail", (row.values, row.why)


def test_a_control_without_slow_start_is_told_apart_from_reno(folder: Path) -> None:
    """And Reno is not from itself."""
    (row,) = rows(folder, "aimd.py:Aimd", ("High delay",), reference="reno")
    assert row.verdict == "fail" and row.value is not None and row.value < -50
    (same,) = rows(folder, "reno", ("High delay",), reference="reno")
    assert same.verdict == "equal" and same.value == 0


@pytest.mark.long
def test_a_copy_equals_its_original_in_every_comparison(folder: Path) -> None:
    found = rows(folder, "cubic", ())
    assert len(found) >= 10
    assert {row.verdict for row in found} == {"equal"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("control", "criteria"),
    [
        ("others.py:Greedy", ("Losses in a short buffer", "Harm to cubic: rate")),
        ("others.py:Constant", ("Feedback stops", "Crowded bottleneck", "Harm to cubic: rate")),
        ("others.py:Lazy", ("Use of the link",)),
    ],
)
def test_every_row_that_the_page_names_fails(folder: Path, control: str, criteria: tuple[str, ...]) -> None:
    found = rows(folder, control, criteria, seeds=5)
    assert {row.question.criterion for row in found} == set(criteria)
    assert {row.verdict for row in found} == {"fail"}, [(row.question.criterion, row.values) for row in found]


@pytest.mark.long
def test_the_crate_s_aimd_is_told_apart_from_reno_as_python_s_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The crate's folder stays as it was.
    monkeypatch.setenv("CARGO_TARGET_DIR", str(folder / "target"))
    crate = built_crate(f"{ROOT}/examples/controller-crate:aimd")
    (row,) = rows(folder, STAND_IN, ("High delay",), reference="reno", crate=crate)
    (twin,) = rows(folder, "aimd.py:Aimd", ("High delay",), reference="reno")
    assert row.verdict == twin.verdict == "fail"
    assert row.value == pytest.approx(twin.value, abs=2), (row.values, twin.values)
