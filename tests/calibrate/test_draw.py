"""The figure of a calibration: axes with units, bounds where they are, and one file for each suffix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ideal import calibration
from streamgauge.calibrate.draw import figure, share_of_bound, write
from streamgauge.calibrate.rows import CalibrationResults, rows
from streamgauge.errors import CannotRunError


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("stamps")
    found = rows(CalibrationResults(*calibration(folder), folder, True))
    shares = [0.1, 0.5, 0.9, 0.99]
    return {
        "checks": [row.to_json() for row in found.rows],
        "host": "here",
        "kernel": "6.1",
        "way": "root",
        "class": "SCHED_FIFO 50",
        "date": "2026-01-02T03:04:05Z",
        "load_average": [0.1, 0.2],
        "distributions": {
            "departure_error": {"n": 4, "shares": shares, "us": [1.0, 2.0, 4.0, 30.0]},
            "unshaped": {"n": 4, "shares": shares, "us": [0.0, 1.0, 1.5, 2.0]},
        },
    }


@pytest.mark.parametrize(
    ("row", "share"),
    [
        ({"error": 0.5, "bound": 2.0}, 0.25),
        ({"error": -3.0, "bound": 2.0}, 1.5),
        ({"error": -200.0, "bound": [-400.0, 0.0]}, 0.5),
        ({"error": 0.0, "bound": 0.0}, 0.0),
        ({"error": 5.0, "bound": [-1.0, None]}, 0.0),
        ({"error": None, "bound": 2.0}, None),
        ({"error": 1.8, "asked": 3.6, "measured": 5.4, "bound": [None, 0.0]}, 1.5),
        ({"error": 2.0, "asked": 0.0, "measured": 2.0, "bound": 0.0}, 30.0),
    ],
)
def test_an_error_as_a_share_of_its_bound(row: dict[str, Any], share: float | None) -> None:
    assert share_of_bound(row) == (None if share is None else pytest.approx(share))


def test_the_figure_holds_every_row_and_names_its_units(document: dict[str, Any]) -> None:
    drawn = figure(document)
    named = {row[1] for row in drawn.rows if row[0] == "row"}
    assert named == {row["id"] for row in document["checks"]}
    text = json.dumps(drawn.spec)
    for title in ("departure error, \\u00b5s", "share of packets later than that", "as a share of the bound"):
        assert title in text
    # A time of zero has no place on an axis of powers of ten.
    late = [row for row in drawn.rows if row[0] == "late"]
    assert len(late) == 7 and min(row[2] for row in late) > 0


@pytest.mark.parametrize("suffix", [".json", ".svg", ".png", ".html"])
def test_a_file_for_each_suffix(document: dict[str, Any], tmp_path: Path, suffix: str) -> None:
    begins = {".json": b"{", ".svg": b"<svg", ".png": b"\x89PNG", ".html": b"<!DOCTYPE"}
    assert write(document, tmp_path / f"c{suffix}").read_bytes().lstrip().startswith(begins[suffix])


def test_other_files_are_refused(document: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match=r"c\.gif.*\.png"):
        write(document, tmp_path / "c.gif")
    with pytest.raises(CannotRunError, match="cannot write"):
        write(document, tmp_path / "no" / "c.svg")
