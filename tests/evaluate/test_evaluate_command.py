"""``streamgauge evaluate``: what it writes, prints, resumes and refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from streamgauge.cli import main
from streamgauge.evaluate import suites
from streamgauge.evaluate.alone import alone_questions
from streamgauge.evaluate.question import CriterionQuestion
from streamgauge.evaluate.special import word_questions
from streamgauge.evaluate.trials import ControlBed

ROW = {"criterion", "source", "condition", "value", "interval", "unit", "bound", "verdict"}


@pytest.fixture
def short_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite with a few of its questions."""

    def few(bed: ControlBed, against: Sequence[str], quick: bool) -> list[CriterionQuestion]:
        chosen = ("Crowded bottleneck", "Losses in a short buffer")
        return [
            *(one for one in alone_questions(bed, quick=True) if one.criterion in chosen),
            *word_questions(),
        ]

    monkeypatch.setattr(suites, "SUITES", {"bcp133": few})


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Status, stdout and stderr of the command."""
    try:
        status = main(["evaluate", "cc", *words])
    except SystemExit as end:
        status = int(end.code or 0)
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.usefixtures("short_suite")
def test_it_writes_result_and_page_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("reno", "--quick", "--seeds", "2", "--out", str(tmp_path), "--report", str(tmp_path / "x.html"))
    status, out, err = run(capsys, *words, "--json")
    found = json.loads(out)
    assert found["schema"] == "streamgauge.evaluation/1"
    assert (found["controller"], found["suite"]) == ("reno", "bcp133")
    assert all(row.keys() >= ROW for row in found["rows"])
    assert {row["verdict"] for row in found["rows"]} <= {"pass", "fail", "equal", "undecided", "words"}
    assert "4 trials, about" in err
    assert status in (0, 1, 2) and found["answer"]
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "Losses in a short buffer" in page and "our bound" in page
    assert json.loads((tmp_path / "reno-bcp133-quick.json").read_text())["rows"] == found["rows"]
    _, out, _ = run(capsys, *words)
    assert "4 trials (4 there already)" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rneo",), "did you mean 'reno'"),
        (("nowhere.py",), "No such file"),
        (("reno", "--suite", "bcp13"), "did you mean 'bcp133'"),
        (("reno", "--against", "cubix"), "did you mean 'cubic'"),
        (("mine.py:Mine", "--mode", "emu"), "leave --mode out"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, *words, "--out", str(tmp_path))
    assert status == 3
    assert said in err
