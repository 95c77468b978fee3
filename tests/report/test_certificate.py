"""The instrument's certificate: kept per machine and emulator, carried by trials, printed by reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu import certificate
from streamgauge.metrics import compute
from streamgauge.report import LoadedTrial, build
from streamgauge.report.certificate import age_words, bound_words, quantity, row_cells, sentence
from synthetic import constant, record

ROW: dict[str, Any] = {
    "id": "rate-1M",
    "what": "rate of a saturated link of 1 Mbit/s",
    "unit": "bit/s",
    "asked": 1e6,
    "measured": 1_000_100.0,
    "error": 0.01,
    "error_unit": "%",
    "bound": 0.02,
    "verdict": "pass",
    "resolution": 1e-5,
    "n": 100,
}
CALIBRATION: dict[str, Any] = {
    "schema": certificate.SCHEMA,
    "id": "abc",
    "date": "2026-01-02T03:04:05Z",
    "unix_s": 1_000_000.0,
    "way": "root",
    "class": "SCHED_FIFO 50",
    "quick": False,
    "verdict": "fail",
    "load_average": [0.5, 0.9],
    "stolen_s": 0.0,
    "checks": [
        ROW,
        {**ROW, "id": "cpu", "unit": "us", "error_unit": "us", "bound": [None, 0.0], "verdict": "fail"},
    ],
    "passes": {"left out": "of what a trial carries"},
}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "engine"
    file.write_bytes(b"one build")
    return file


def test_without_a_calibration_a_trial_says_so(engine: Path) -> None:
    assert certificate.for_trial(engine, "root") == {"calibrated": False, "why": certificate.NOT_CALIBRATED}


def test_the_last_calibration_is_carried_with_its_age(engine: Path) -> None:
    certificate.keep(CALIBRATION, engine, "root")
    certificate.keep({**CALIBRATION, "id": "later"}, engine, "root")
    carried = certificate.for_trial(engine, "root", 1_000_090.0)
    assert (carried["calibrated"], carried["id"], carried["age_s"]) == (True, "later", 90.0)
    assert [row["id"] for row in carried["checks"]] == ["rate-1M", "cpu"]
    assert "passes" not in carried and "resolution" not in carried["checks"][0]


def test_another_way_build_or_boot_is_not_calibrated(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate.keep(CALIBRATION, engine, "root")
    assert certificate.stored(engine, "user") is None
    other = tmp_path / "other"
    other.write_bytes(b"another build")
    assert certificate.stored(other, "root") is None
    monkeypatch.setattr(certificate, "boot_id", lambda: "another boot")
    assert certificate.stored(engine, "root") is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"schema": "streamgauge.calibration/9"}'])
def test_a_damaged_certificate_is_none(engine: Path, damage: str) -> None:
    file = certificate.keep(CALIBRATION, engine, "root")
    file.write_text(damage)
    assert certificate.stored(engine, "root") is None


def test_a_row_in_words() -> None:
    cells = row_cells(ROW)
    assert (cells["asked"], cells["measured"]) == ("1 Mbit/s", "1.0001 Mbit/s")
    assert (cells["error"], cells["bound"]) == ("+0.0100 %", "± 0.0200 %")
    assert quantity(1500.0, "us", digits=3) == "1.50 ms"
    assert quantity(None, "ms", digits=3) == "–"
    assert quantity(-2e-5, "%", digits=3, signed=True) == "< 0.0001 %"
    assert bound_words([-599.0, 0.0], "B") == "-599 to 0 B"
    assert bound_words([None, 0.0], "us") == "at most 0 µs"
    assert bound_words(0.0, "packets") == "exact"
    assert [age_words(s) for s in (30, 600, 7200, 400_000)] == ["30 s", "10 minutes", "2 hours", "4.6 days"]


def _trial(seed: int, carried: dict[str, Any] | None, mode: str = "emu") -> LoadedTrial:
    built = record(
        constant(0, 50, 0, 5), flows=["video"], duration_s=5.0, seed=seed, mode=mode, scenario="test/one"
    )
    built.trial["scenario"] |= {"title": "One", "flows": {"video": {"role": "subject", "system": "rtp"}}}
    provenance = {} if carried is None else {"certificate": carried}
    return LoadedTrial(built.trial, provenance, compute(built))


def _page(trials: list[LoadedTrial], folder: Path) -> str:
    return build(trials, folder / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")


def _carried(engine: Path, **changes: Any) -> dict[str, Any]:
    certificate.keep({**CALIBRATION, **changes}, engine, "root")
    return certificate.for_trial(engine, "root", 1_000_600.0)


def test_a_report_prints_it_under_its_figures(engine: Path, tmp_path: Path) -> None:
    page = _page([_trial(1, _carried(engine))], tmp_path)
    assert '<details class="more" id="instrument">' in page and 'href="#instrument"' in page
    assert "10 minutes before the trial, way root, SCHED_FIFO 50" in page
    assert "1 of 2 within their bounds; not cpu." in page
    assert "1.0001 Mbit/s" in page and "different certificates" not in page


def test_a_report_of_uncalibrated_trials_says_so(tmp_path: Path) -> None:
    page = _page([_trial(1, None), _trial(2, {"calibrated": False, "why": "x"})], tmp_path)
    assert "not calibrated: run `streamgauge calibrate`." in page
    assert "Its certificate" not in page, "there is none that a link could lead to"
    assert "different certificates" not in page


def test_a_report_of_different_certificates_says_so(engine: Path, tmp_path: Path) -> None:
    trials = [_trial(1, _carried(engine)), _trial(2, _carried(engine, id="other")), _trial(3, None)]
    page = _page(trials, tmp_path)
    assert "Trials of this report carry different certificates." in page
    assert page.count("1 of 3 trials: ") >= 3


def test_a_report_without_emulated_trials_has_none(tmp_path: Path) -> None:
    page = _page([_trial(1, None, mode="sim")], tmp_path)
    assert 'id="instrument"' not in page and "certificate" not in page.lower()


def test_ages_are_a_span_over_trials(engine: Path) -> None:
    carried = _carried(engine)
    assert "10 minutes to 2 hours before" in sentence(carried, [600.0, 7200.0])


def test_the_compact_form_is_json(engine: Path) -> None:
    assert json.loads(json.dumps(_carried(engine), allow_nan=False))["verdict"] == "fail"
