"""Metrics beside a record come back as they were, and as a table that says what they say."""

from __future__ import annotations

import json
import math
import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from streamgauge.campaign import run, stored
from streamgauge.campaign.stored import FILE, SCHEMA, load_metrics, long_form, save_metrics
from streamgauge.claims.names import METRICS
from streamgauge.errors import RecordError
from streamgauge.metrics.frame import FlowInfo, StageInfo
from streamgauge.metrics.grid import Grid
from streamgauge.metrics.result import VERSION, FlowMetrics, Measured, Series, StageMetrics, TrialMetrics
from streamgauge.scenario import Scenario

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

    def said() -> dict[str, tuple[str, ...]]:
        units = st.lists(
            st.sampled_from(["1", "s", "B", "bit/s", "%", "packets", "1/s"]), max_size=2, unique=True
        )
        return {name: tuple(of) for name, of in draw(st.dictionaries(words, units, max_size=2)).items()}

    def with_events(flow: FlowMetrics) -> FlowMetrics:
        own = {f"event_count.{name}": draw(series) for name in flow.events}
        own |= {f"event.{name}": draw(series) for name, units in flow.events.items() if len(units) == 1}
        return replace(flow, series={**flow.series, **own})

    words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5)
    flows = {
        name: with_events(
            FlowMetrics(
                *measured(),
                info=FlowInfo(
                    place, name, "subject", "rtp", draw(st.booleans()), False, draw(st.integers(0, 1))
                ),
                rtt_source=draw(st.sampled_from(["probe", None])),
                events=said(),
            )
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
        version=draw(st.integers(0, VERSION)),
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
            for name in ("scenario", "mode", "seed", "valid", "why", "layer", "jain_flows", "version")
        },
        "grid": (
            metrics.grid.edges_ns.tobytes(),
            metrics.grid.first,
            metrics.grid.last,
            metrics.grid.sample_s,
        ),
        "flows": {n: (measured(f), asdict(f.info), f.rtt_source, f.events) for n, f in metrics.flows.items()},
        "stages": {n: (measured(s), asdict(s.info)) for n, s in metrics.stages.items()},
        "jain": (number(metrics.jain), metrics.jain_samples.tobytes()),
    }


@given(trials())
def test_metrics_come_back_to_the_last_bit(metrics: TrialMetrics) -> None:
    with tempfile.TemporaryDirectory() as folder:
        save_metrics(Path(folder), metrics, MEASURE)
        loaded = load_metrics(Path(folder), MEASURE)
        assert loaded is not None
        assert bits(loaded) == bits(metrics)
        assert load_metrics(Path(folder), {}) is None, "measured otherwise"


@given(trials())
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
    assert bits(loaded) == bits(replace(metrics, version=0))
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


def test_events_lie_in_the_table_with_their_unit(tmp_path: Path) -> None:
    metrics = _example()
    sums, count = np.array([0.3, 0.5]), np.array([1.0, 1.0])
    own = {
        "event_count.decode": Series(count),
        "event.decode": Series(sums, count, sums, sums),
        "event.load": Series(sums, count, sums, sums),
    }
    units = {"decode": ("s",), "load": ("%",), "glitch": ()}
    flow = replace(metrics.flows["film"], series=own, events=units)
    save_metrics(tmp_path, replace(metrics, flows={"film": flow}), MEASURE)
    (tmp_path / "trial.json").touch()
    table = long_form([tmp_path]).filter(flow="film").collect()
    rows = {row["metric"]: row for row in table.iter_rows(named=True)}
    assert (rows["event.decode"]["value"], rows["event.decode"]["unit"]) == (0.4, "s")
    assert (rows["event.decode"]["min"], rows["event.decode"]["max"]) == (0.3, 0.5)
    assert (rows["event_count.decode"]["value"], rows["event_count.decode"]["unit"]) == (2, "1")
    assert rows["event.load"]["unit"] == "1"


def _as_version_1(metrics: TrialMetrics) -> TrialMetrics:
    """As they were kept before there were events and the share that is frozen."""
    flows = {
        name: replace(
            flow,
            series={
                k: v for k, v in flow.series.items() if not k.startswith("event") and k != "frozen_share"
            },
            scalars={k: v for k, v in flow.scalars.items() if k != "rate_variation"},
            events={},
        )
        for name, flow in metrics.flows.items()
    }
    return replace(metrics, flows=flows, version=1)


def test_what_an_older_version_kept_is_read_unless_it_can_be_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Files of before have no word of versions or of events.
    about = stored._about

    def before(metrics: TrialMetrics, measure: Mapping[str, Any]) -> dict[str, Any]:
        told = about(metrics, measure)
        for flow in told["flows"].values():
            del flow["events"]
        del told["version"]
        return told

    monkeypatch.setattr(stored, "_about", before)
    save_metrics(tmp_path, _as_version_1(_example()), MEASURE)
    loaded = load_metrics(tmp_path, MEASURE)
    assert loaded is not None and bits(loaded) == bits(_as_version_1(_example()))
    for metric in ("frozen_share", "event.decode"):
        with pytest.raises(KeyError, match="seed 3 was measured by an older version"):
            loaded.value(metric, "film")
    (tmp_path / "events.parquet").touch()
    assert load_metrics(tmp_path, MEASURE) is not None, "packets are wanted as well"
    (tmp_path / "packets.parquet").touch()
    assert load_metrics(tmp_path, MEASURE) is None


def test_a_campaign_measures_anew_what_an_older_version_measured(
    make: Callable[..., Scenario], tmp_path: Path
) -> None:
    def once() -> tuple[bool, TrialMetrics]:
        (outcome,) = run([make()], {"test/short": ["sim"]}, tmp_path, repeat=1).outcomes
        assert outcome.metrics is not None
        return outcome.reused, outcome.metrics

    _, first = once()
    (directory,) = (file.parent for file in tmp_path.rglob(FILE))
    measure = make().in_mode("sim").normalised()["measure"]
    save_metrics(directory, _as_version_1(first), measure)
    # An index of an older version's is begun anew.
    (tmp_path / "index.sqlite").unlink()
    reused, again = once()
    assert reused and bits(again) == bits(first)
    kept = load_metrics(directory, measure)
    assert kept is not None and kept.version == VERSION
    assert long_form(tmp_path).filter(metric="event.tcp_in_flight").collect()["unit"].to_list() == ["bit"]


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
