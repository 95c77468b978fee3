"""The rows of a calibration: an ideal link passes all of them, and what is wrong turns its own row red."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ideal import calibration, ideal, result, write
from streamgauge.calibrate.analyse import Flight
from streamgauge.calibrate.check import CalibrationRow, overall
from streamgauge.calibrate.passes import Pass
from streamgauge.calibrate.rows import CalibrationResults, rows


def _verdicts(folder: Path, todo: dict[str, Pass], results: dict[str, Any]) -> dict[str, str]:
    found = rows(CalibrationResults(todo, results, folder, True)).rows
    for row in found:
        json.dumps(row.to_json(), allow_nan=False)
        print(row.id, row.measured, row.error, row.bound, row.verdict)
    return {row.id: row.verdict for row in found}


def test_an_ideal_link_passes_every_row(tmp_path: Path) -> None:
    verdicts = _verdicts(tmp_path, *calibration(tmp_path))
    assert len(verdicts) >= 10
    assert set(verdicts.values()) == {"pass"}


def _shift(us: float) -> Callable[[Pass], Flight]:
    return lambda one: _moved(ideal(one), us)


def _moved(flight: Flight, us: float) -> Flight:
    return Flight(flight.sent, flight.received + us * 1e3, flight.frame)


def _faster(one: Pass) -> Flight:
    """0.1 % more than the rate asked for."""
    flight = ideal(one)
    return Flight(flight.sent, flight.received / 1.001, flight.frame)


def _replanned(change: Callable[[dict[str, Any]], Any]) -> Callable[[Pass], Flight]:
    """As if the emulator had been told something else."""

    def make(one: Pass) -> Flight:
        stages = json.loads(json.dumps(one.down))
        change(stages[0]["kind"])
        return ideal(Pass(**{**vars(one), "down": stages}), seed=7)

    return make


def _set(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(kind: dict[str, Any]) -> None:
        for step in path[:-1]:
            kind = kind[step]
        kind[path[-1]] = to

    return change


def _one_late_in_thirty(one: Pass) -> Flight:
    flight = ideal(one)
    late = np.arange(len(flight.sent)) % 30 == 29
    return Flight(flight.sent, flight.received + np.where(late, 3e5, 0), flight.frame)


def _swapped(one: Pass) -> Flight:
    flight = ideal(one)
    received = flight.received.copy()
    received[[10, 11]] = received[[11, 10]]
    return Flight(flight.sent, received, flight.frame)


def _one_lost(one: Pass) -> Flight:
    flight = ideal(one)
    received = flight.received.copy()
    received[100] = np.nan
    return Flight(flight.sent, received, flight.frame)


LIMIT = ("bottleneck", "queue", "droptail")
FAULTS: dict[str, tuple[str, Callable[[Pass], Flight]]] = {
    "rate-1M": ("rate-1M", _faster),
    "rate-10M": ("rate-10M", _faster),
    "departure-p50": ("departures", _shift(6)),
    "departure-p99": ("departures", _one_late_in_thirty),
    "delay-20ms-p50": ("delay-20ms", _shift(100)),
    "delay-1ms-p99": ("delay-1ms", _one_late_in_thirty),
    "jitter-uniform": (
        "jitter-uniform",
        _replanned(_set("delay", "jitter", "distribution", "uniform", to={"spread": 2_000_000})),
    ),
    "jitter-normal": (
        "jitter-normal",
        _replanned(_set("delay", "jitter", "distribution", "normal", to={"deviation": 800_000})),
    ),
    "limit-packets": ("limit-packets", _replanned(_set(*LIMIT, to={"packets": 51}))),
    "limit-bytes": ("limit-bytes", _replanned(_set(*LIMIT, to={"bytes": 19_000}))),
    "loss-bernoulli": (
        "loss-bernoulli",
        _replanned(_set("loss", "model", "bernoulli", to={"probability": 0.03})),
    ),
    "loss-gilbert-bad-run": (
        "loss-gilbert",
        _replanned(_set("loss", "model", "gilbert", to={"good_packets": 95.0, "bad_packets": 10.0})),
    ),
    "rate-step": (
        "rate-step",
        _replanned(_set("bottleneck", "rate", to={"steps": [[0, 4_000_000], [1_003_000_000, 1_000_000]]})),
    ),
    "order": ("departures", _swapped),
    "ceiling": ("ceiling-40000", _one_lost),
}


@pytest.mark.parametrize("row", FAULTS)
def test_a_fault_turns_its_row_red(row: str, tmp_path: Path) -> None:
    todo, results = calibration(tmp_path)
    name, make = FAULTS[row]
    flight = make(todo[name])
    write(flight, tmp_path / f"{name}.csv")
    results[name] = result(flight)
    assert _verdicts(tmp_path, todo, results)[row] == "fail"


def test_what_an_engine_does_not_know_is_skipped_and_said(tmp_path: Path) -> None:
    todo, results = calibration(tmp_path)
    results["jitter-uniform"] = {"failed": "unknown field `jitter`"}
    found = {row.id: row for row in rows(CalibrationResults(todo, results, tmp_path, True)).rows}
    assert found["jitter-uniform"].verdict == "skipped"
    assert "unknown field" in str(found["jitter-uniform"].to_json()["skipped"])


def test_the_normal_class_has_the_verdict_s_bounds(tmp_path: Path) -> None:
    todo, results = calibration(tmp_path)
    bounds = {
        is_fifo: next(
            row.bound
            for row in rows(CalibrationResults(todo, results, tmp_path, is_fifo)).rows
            if row.id == "departure-p99"
        )
        for is_fifo in (True, False)
    }
    assert bounds == {True: 50, False: 500}


def _row(**settings: Any) -> CalibrationRow:
    return CalibrationRow(
        **{"id": "x", "what": "x", "unit": "ms", "asked": 20.0, "measured": 20.05, "bound": 0.06, **settings}
    )


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({}, "pass"),
        ({"measured": 20.07}, "fail"),
        ({"measured": 19.93}, "fail"),
        ({"relative": True, "measured": 20.01, "bound": 0.06}, "pass"),
        ({"relative": True, "measured": 20.02, "bound": 0.06}, "fail"),
        ({"bound": (None, 0.0)}, "fail"),
        ({"bound": (0.0, None)}, "pass"),
        ({"bound": (-1.0, 0.01)}, "fail"),
        ({"measured": math.nan}, "fail"),
        ({"measured": None}, "fail"),
        ({"measured": None, "skipped": "no reason"}, "skipped"),
        ({"resolution": 0.02}, "pass"),
        ({"resolution": 0.04}, "inconclusive"),
    ],
)
def test_a_verdict_is_arithmetic(settings: dict[str, Any], verdict: str) -> None:
    row = _row(**settings)
    assert row.verdict == verdict
    assert row.to_json()["verdict"] == verdict


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "fail"], "fail"),
        (["pass", "skipped"], "pass"),
        (["skipped"], "fail"),
        ([], "fail"),
    ],
)
def test_all_rows_together(verdicts: list[str], together: str) -> None:
    assert overall({"verdict": verdict} for verdict in verdicts) == together
