"""Figures as data and programs: what the CSV holds is what is drawn, and the program draws it."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.metrics import compute
from streamgauge.report import LoadedTrial, for_entry, gather, save
from streamgauge.report.chart import COLOURS, DrawnFigure, lines
from streamgauge.report.exports import SUFFIXES, csv_text, program
from streamgauge.report.files import write_all
from synthetic import CROSS, constant, record


def trials() -> list[LoadedTrial]:
    found = []
    for seed in (1, 2):
        sent = constant(0, 40, 0, 6) + constant(1, 100 + seed, 2, 4, kind=CROSS)
        built = record(sent, flows=["video", 'it\'s, "cross"'], duration_s=6.0, seed=seed)
        built.trial["scenario"]["figures"] = [
            {"draw": "cdf", "of": ["queue_delay"]},
            {"draw": "bars", "of": ["loss"]},
            {"draw": "scatter", "of": ["queue_delay", "sender_rate"]},
        ]
        found.append(LoadedTrial(built.trial, {}, compute(built)))
    return found


@pytest.fixture(scope="module")
def figures() -> list[DrawnFigure]:
    return for_entry(gather(trials())[0])


def as_text(value: object) -> str:
    return "" if value is None else str(value)


def test_the_csv_has_the_rows_of_the_figure(figures: list[DrawnFigure]) -> None:
    assert len(figures) == 4
    for figure in figures:
        head, *rows = csv.reader(csv_text(figure).splitlines())
        assert tuple(head) == figure.columns
        assert rows == [[as_text(value) for value in row] for row in figure.rows]


def test_columns_have_names_that_say_what_they_are(figures: list[DrawnFigure]) -> None:
    for figure in figures:
        assert min(map(len, figure.columns)) >= 3


@pytest.mark.parametrize("which", [0, 3])
def test_the_program_draws_the_figure_of_its_csv(
    figures: list[DrawnFigure], which: int, tmp_path: Path
) -> None:
    figure = figures[which]
    (tmp_path / f"{figure.id}.py").write_text(program(figure), encoding="utf-8")
    (tmp_path / f"{figure.id}.csv").write_text(csv_text(figure), encoding="utf-8")
    out = tmp_path / "drawn.svg"
    command = [sys.executable, f"{figure.id}.py", str(out)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    ours = save(figure, tmp_path / "ours.svg")

    def marks(file: Path) -> list[str]:
        kinds = r'class="mark-(?:line|area|rect|symbol) role-mark[^"]*"[^>]*>((?:<path[^>]*>)*)'
        return re.findall(r' d="([^"]*)"', "".join(re.findall(kinds, file.read_text(encoding="utf-8"))))

    assert len(marks(ours)) > 2 and marks(out) == marks(ours)


def test_every_format_of_every_figure(tmp_path: Path) -> None:
    formats = [suffix.removeprefix(".") for suffix in SUFFIXES]
    files = write_all(gather(trials()), tmp_path / "figures", formats)
    assert len(files) == 4 * len(formats) and all(file.stat().st_size > 100 for file in files)
    starts = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".py": b'"""Draws '}
    for file in files:
        assert file.read_bytes().startswith(starts.get(file.suffix, b""))


def test_formats_are_read_before_anything_starts() -> None:
    from streamgauge.cli.reporting import figure_formats

    assert figure_formats(None) == [] and figure_formats("PDF, csv,pdf") == ["pdf", "csv"]
    with pytest.raises(ScenarioError, match=r"--figures.*'gif'.*svg, png, pdf, csv, py"):
        figure_formats("svg,gif")


def test_a_notebook_shows_the_figure() -> None:
    rows = [(0.5 * i, float(i), "a", "", "sim") for i in range(4)]
    figure = lines("f", "F", "", rows, y="kbit/s", series="a", colours=COLOURS, height=90)
    bundle = figure._repr_mimebundle_()
    (kind,) = [name for name in bundle if name.startswith("application/vnd.vegalite.v")]
    assert bundle[kind] == figure.vega_lite() and bundle["image/svg+xml"].startswith("<svg")
