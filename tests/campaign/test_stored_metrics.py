"""Metrics beside a record come back as they were, and as a table that says what they say."""

from __future__ import annotations

import json
import math
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from streamgauge.campaign.stored import FILE, SCHEMA, load_metrics, long_form, save_metrics
from streamgauge.claims.names import METRICS
from streamgauge.errors import RecordError
from streamgauge.metrics.frame import FlowInfo, StageInfo
from streamgauge.metrics.grid import Grid
from streamgauge.metrics.result import FlowMetrics, Measured, Series, StageMetrics, TrialMetrics

PARTS = ("numerator", "denominator", "low", "high")
MEASURE = {"sample": {"s": 0.5}, "window": [0.0, 3.0]}


def _arrays(samples: int) -> st.SearchStrategy[Any]:
    return npst.arrays(np.float64, samples, elements=st.floats(width=64))


@st.composite
def trials(draw: st.DrawFn) -> TrialMetrics:
    samples = draw(st.integers(1, 6))
    # Many series share an array.
    pool = draw(st.lists(_arrays(samples), min_size=1, max_size=5))
    array = st.sampled_from(pool) | _arrays(samples)
    series = st.builds(Series, array, st.none() | array, st.none() | array, st.none() | array)
    names = st.sampled_from(["throughput", "rtt", "queue", "good_run", "something else"])
    scalar = st.none() | st.floats()

    def measured() -> tuple[dict[str, Series], dict[str, float | None]]:
        return draw(st.dictionaries(names, series)), draw(st.dictionaries(names, scalar))

    words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
    flows = {
        name: FlowMetrics(
            *measured(),
            info=FlowInfo(place, name, "subject", "rtp", draw(st.booleans()), False, draw(st.integers(0, 1))),
            rtt_source=draw(st.sampled_from(["probe", None])),
        )
        for place, name in enumerate(draw(st.lists(words, max_size=3, unique=True)))
    }
    # A stage may be called as a flow is.
    stages = {
        name: StageMetrics(
            *measured(), info=StageInfo(0, name, 0, True, {"rate": {"constant": draw(st.integers(1))}})
        )
        for name in draw(st.lists(st.sampled_from([*flows, "bottleneck"]), max_size=2, unique=True))
    }
    first = draw(st.integers(0, samples - 1))
    edges = np.cumsum([0, *draw(st.lists(st.integers(1, 10**9), min_size=samples, max_size=samples))])
    return TrialMetrics(
        scenario=draw(words),
        mode="sim",
        seed=draw(st.integers(0, 2**40)),
        valid=draw(st.booleans()),
        why=tuple(draw(st.lists(words, max_size=2))),
        layer="ip",
        grid=Grid(edges.astype(np.int64), first, draw(st.integers(first + 1, samples)), 0.5),
        flows=flows,
        stages=stages,
        jain=draw(st.floats()),
        jain_samples=draw(array),
        jain_flows=tuple(flows),
    )


def bits(metrics: TrialMetrics) -> dict[str, Any]:
    """All of it, floats as their bits; NaN of whatever bits is one where it stands alone."""

    def number(value: float | None) -> Any:
        return "NaN" if value is not None and math.isnan(value) else None if value is None else value.hex()

    def measured(one: Measured) -> Any:
        arrays = {
            name: [None if (a := getattr(series, part)) is None else a.tobytes() for part in PARTS]
            for name, series in one.series.items()
        }
        return list(one.series), arrays, {name: number(value) for name, value in one.scalars.items()}

    return {
        **{
            name: getattr(metrics, name)
            for name in ("scenario", "mode", "seed", "valid", "why", "layer", "jain_flows")
        },
        "grid": (
            metrics.grid.edges_ns.tobytes(),
            metrics.grid.first,
            metrics.grid.last,
            metrics.grid.sample_s,
        ),
        "flows": {n: (measured(f), asdict(f.info), f.rtt_source) for n, f in metrics.flows.items()},
        "stages": {n: (measured(s), asdict(s.info)) for n, s in metrics.stages.items()},
        "jain": (number(metrics.jain), metrics.jain_samples.tobytes()),
    }


@given(trials())
@settings(deadline=None)
def test_metrics_come_back_to_the_last_bit(metrics: TrialMetrics) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_metrics(Path(folder), metrics, MEASURE)
        loaded = load_metrics(Path(folder), MEASURE)
        assert loaded is not None
        assert bits(loaded) == bits(metrics)
        assert load_metrics(Path(folder), {}) is None, "measured otherwise"


@given(trials())
@settings(deadline=None)
def test_the_table_says_what_the_metrics_say(metrics: TrialMetrics) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_metrics(Path(folder), metrics, MEASURE)
        table = pl.read_parquet(Path(folder) / FILE)
    window = (metrics.grid.begin_s, metrics.grid.end_s)
    assert set(zip(table["begin_s"], table["end_s"], strict=True)) == {window}
    part = metrics.grid.slice()
    of_trial = table.filter(pl.col("flow").is_null() & pl.col("stage").is_null())
    assert of_trial["metric"].to_list() == ["jain"]
    for column, subjects in (("flow", metrics.flows), ("stage", metrics.stages)):
        for name, measured in subjects.items():
            mine = table.filter(pl.col(column) == name)
            assert set(mine["metric"]) == {*measured.series, *measured.scalars}
            assert mine["metric"].is_unique().all()
            for row in mine.iter_rows(named=True):
                metric = row["metric"]
                series = measured.series.get(metric)
                scalar = measured.scalars.get(metric)
                if metric in measured.scalars:
                    expected = math.nan if scalar is None else scalar
                else:
                    assert series is not None
                    with np.errstate(all="ignore"):
                        expected = series.value(part)
                assert row["value"] == (expected if math.isfinite(expected) else None)
                if series is None:
                    assert row["numerator"] is None
                    continue
                assert np.array_equal(row["numerator"], series.numerator, equal_nan=True)
                for extreme, inside in (("min", series.low), ("max", series.high)):
                    if inside is None:
                        assert row[extreme] is None
                        continue
                    found = series.extreme(part, highest=extreme == "max")
                    assert row[extreme] == (found if math.isfinite(found) else None)


def test_every_metric_has_a_unit(tmp_path: Path) -> None:
    grid = Grid(np.array([0, 10**9]), 0, 1, 1.0)
    one = Series(np.ones(1))
    info = FlowInfo(0, "film", "subject", "rtp", True, False)
    flow = FlowMetrics({name: one for name in METRICS if name != "jain"}, info=info)
    save_metrics(tmp_path, TrialMetrics("a/b", "sim", 1, True, (), "ip", grid, {"film": flow}, {},
                                        math.nan, np.ones(1), ()), {})  # fmt: skip
    units = dict(pl.read_parquet(tmp_path / FILE).select("metric", "unit").iter_rows())
    assert set(units) == set(METRICS)
    assert set(units.values()) <= {"1", "s", "bit", "bit/s", "packets", "packets/s", "bit/packet"}
    assert (units["throughput"], units["loss"], units["rtt"]) == ("bit/s", "1", "s")


def _write_as_before(directory: Path, metrics: TrialMetrics, measure: Mapping[str, Any]) -> None:
    """How version 6 of the schema was written."""
    arrays: list[Any] = []
    places: dict[int, int] = {}

    def out(values: Any) -> str:
        return b64encode(np.asarray(values, dtype="<f8").tobytes()).decode("ascii")

    def place(values: Any) -> int | None:
        if values is None:
            return None
        if id(values) not in places:
            places[id(values)] = len(arrays)
            arrays.append(values)
        return places[id(values)]

    def measured(one: Measured) -> dict[str, Any]:
        return {
            "scalars": {k: None if v is None or math.isnan(v) else float(v) for k, v in one.scalars.items()},
            "series": {
                name: [place(getattr(series, part)) for part in PARTS] for name, series in one.series.items()
            },
        }

    grid = metrics.grid
    data = {
        "schema": "streamgauge.metrics/6",
        "measure": measure,
        **{name: getattr(metrics, name) for name in ("scenario", "mode", "seed", "valid", "layer")},
        "why": list(metrics.why),
        "grid": {
            "edges_ns": grid.edges_ns.tolist(),
            "first": grid.first,
            "last": grid.last,
            "sample_s": grid.sample_s,
        },
        "flows": {
            name: {"info": asdict(flow.info), "rtt_source": flow.rtt_source, **measured(flow)}
            for name, flow in metrics.flows.items()
        },
        "stages": {
            name: {"info": {**asdict(stage.info), "settings": dict(stage.info.settings)}, **measured(stage)}
            for name, stage in metrics.stages.items()
        },
        "jain": None if math.isnan(metrics.jain) else metrics.jain,
        "jain_samples": out(metrics.jain_samples),
        "jain_flows": list(metrics.jain_flows),
    }
    data["arrays"] = [out(values) for values in arrays]
    (directory / "metrics.json").write_text(json.dumps(data), encoding="utf-8")


def _example() -> TrialMetrics:
    grid = Grid(np.array([0, 5 * 10**8, 10**9]), 0, 2, 0.5)
    sent, widths = np.array([4e5, 6e5]), grid.widths_s
    flow = FlowMetrics(
        {"throughput": Series(sent, widths), "rtt": Series(sent, sent, np.array([math.nan, 0.1]), sent)},
        {"start": 0.25, "bad_run": None},
        info=FlowInfo(0, "film", "subject", "rtp", True, False),
        rtt_source="probe",
    )
    stage = StageMetrics({}, {}, info=StageInfo(1, "bottleneck", 0, True, {"rate": {"constant": 10**6}}))
    return TrialMetrics("test/old", "sim", 3, False, ("a reason",), "ip", grid, {"film": flow},
                        {"bottleneck": stage}, math.nan, np.full(2, math.nan), ("film",))  # fmt: skip


def test_metrics_of_the_older_schema_are_read(tmp_path: Path) -> None:
    metrics = _example()
    _write_as_before(tmp_path, metrics, MEASURE)
    loaded = load_metrics(tmp_path, MEASURE)
    assert loaded is not None
    assert bits(loaded) == bits(metrics)
    assert load_metrics(tmp_path, {}) is None
    (tmp_path / "trial.json").touch()
    before = long_form([tmp_path]).collect()
    # What is measured anew takes their place.
    save_metrics(tmp_path, metrics, MEASURE)
    assert not (tmp_path / "metrics.json").exists()
    after = long_form([tmp_path]).collect()
    assert before.equals(after, null_equal=True)
    assert after.select("scenario", "mode", "seed", "directory").row(0) == (
        "test/old",
        "sim",
        3,
        str(tmp_path),
    )
    assert after.filter(metric="throughput").select("value", "unit", "valid").row(0) == (1e6, "bit/s", False)


@pytest.mark.parametrize("harm", ["short", "of another version", "empty"])
def test_what_cannot_be_read_is_none(tmp_path: Path, harm: str) -> None:
    save_metrics(tmp_path, _example(), MEASURE)
    file = tmp_path / FILE
    whole = file.read_bytes()
    assert whole.count(SCHEMA.encode()) > 0
    file.write_bytes({
        "short": whole[: len(whole) // 2],
        "of another version": whole.replace(SCHEMA.encode(), SCHEMA[:-1].encode() + b"0"),
        "empty": b"",
    }[harm])  # fmt: skip
    assert load_metrics(tmp_path, MEASURE) is None


def test_a_folder_without_metrics_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no trial with metrics"):
        long_form(tmp_path)
