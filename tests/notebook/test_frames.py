"""Frames say what the metrics and events of their trials say, whatever of a record was kept."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import streamgauge as sg
from polars.testing import assert_frame_equal
from streamgauge.campaign.stored import save_metrics
from streamgauge.claims.names import METRICS
from streamgauge.metrics import TrialMetrics, compute
from two_scenarios import short

KEY = ["scenario", "mode", "seed", "valid"]


def of(trial: sg.LoadedTrial) -> TrialMetrics:
    found = trial.metrics
    assert found is not None
    return found


def copied(runs: sg.Runs, to: Path) -> sg.Runs:
    shutil.copytree(runs.where, to)
    return sg.load(to)


def by_row(table: pl.DataFrame) -> pl.DataFrame:
    """In the order of what rows are of: that of metrics is no matter."""
    return table.sort(*KEY, "flow", "stage", "metric")


def make_invalid(trial: sg.LoadedTrial, **more: object) -> None:
    assert trial.directory is not None
    file = trial.directory / "trial.json"
    header = json.loads(file.read_text("utf-8"))
    header["validity"] |= {"valid": False, "why": ["<the clock> stood still"]}
    file.write_text(json.dumps(header | more), encoding="utf-8")


def test_a_row_is_a_metric_of_a_flow_a_stage_or_a_trial(kept: sg.Runs) -> None:
    table = kept.metrics()
    before = [*KEY, "flow", "role", "stage", "metric", "value", "unit", "min", "max"]
    assert table.columns == before
    assert not table.select(*KEY, "flow", "stage", "metric").is_duplicated().any()
    for trial in kept:
        metrics = of(trial)
        mine = table.filter(scenario=trial.scenario, seed=trial.seed)
        known = sum(
            len({**one.series, **one.scalars}) for one in [*metrics.flows.values(), *metrics.stages.values()]
        )
        assert len(mine) == known + 1, "and jain"
        for row in mine.iter_rows(named=True):
            value = metrics.value(row["metric"], row["flow"] or row["stage"] or "")
            assert row["value"] == (value if math.isfinite(value) else None)
            assert row["role"] == (metrics.flows[row["flow"]].info.role if row["flow"] else None)
    units = dict(table.select("metric", "unit").iter_rows())
    assert (units["goodput"], units["loss"], units["rtt"], units["queue"]) == ("bit/s", "1", "s", "bit")


def test_names_and_a_flow_choose_rows(kept: sg.Runs) -> None:
    everything = kept.metrics()
    chosen = everything.filter(pl.col("metric").is_in(["goodput", "loss"]) & (pl.col("flow") == "ftp"))
    assert_frame_equal(kept.metrics("goodput", "loss", flow="ftp"), chosen)
    assert set(kept.metrics("jain")["flow"]) == {None}


def test_of_records_with_metrics_alone_it_is_the_same(kept: sg.Runs, metrics_alone: sg.Runs) -> None:
    assert set(metrics_alone.trials()["kept"]) == {"metrics"}
    assert set(kept.trials()["kept"]) == {"packets"}
    assert_frame_equal(metrics_alone.metrics(), kept.metrics())
    assert_frame_equal(metrics_alone.series("queue"), kept.series("queue"))
    assert metrics_alone.answer() == kept.answer()
    assert repr(metrics_alone.checks()) == repr(kept.checks())


def test_of_records_without_a_table_of_metrics_it_is_the_same(kept: sg.Runs, tmp_path: Path) -> None:
    """As of ``streamgauge link --log``, and of trials whose metrics somebody removed."""
    runs = copied(kept, tmp_path / "runs")
    for place, trial in enumerate(runs):
        if place % 2:
            assert trial.directory is not None
            (trial.directory / "metrics.parquet").unlink()
    assert_frame_equal(by_row(runs.metrics()), by_row(kept.metrics()))
    assert_frame_equal(runs.metrics("goodput", flow="ftp"), kept.metrics("goodput", flow="ftp"))


def test_what_an_older_version_measured_is_measured_anew_where_that_can_be(
    kept: sg.Runs, tmp_path: Path
) -> None:
    runs = copied(kept, tmp_path / "runs")
    for trial in runs:
        metrics = of(trial)
        flows = {name: replace(one, scalars={}) for name, one in metrics.flows.items()}
        assert trial.directory is not None
        measure = trial.header["scenario"]["measure"]
        save_metrics(trial.directory, replace(metrics, flows=flows, version=1), measure)
    assert_frame_equal(by_row(sg.load(tmp_path / "runs").metrics()), by_row(kept.metrics()))


def test_a_series_is_the_metric_in_each_sample(kept: sg.Runs) -> None:
    table = kept.series("throughput", flow="ftp")
    assert table.columns == [*KEY, "flow", "stage", "metric", "begin_s", "end_s", "value", "unit"]
    for trial in kept:
        metrics = of(trial)
        mine = table.filter(scenario=trial.scenario, seed=trial.seed)
        assert np.array_equal(mine["begin_s"], metrics.grid.edges_ns[:-1] / 1e9)
        assert np.array_equal(mine["end_s"], metrics.grid.edges_ns[1:] / 1e9)
        samples = metrics.series("throughput", "ftp").samples()
        assert np.array_equal(mine["value"].fill_null(math.nan), samples, equal_nan=True)
        # Over the window, which is the whole trial here, its mean over time is the metric.
        weighted = (mine["value"] * (mine["end_s"] - mine["begin_s"])).sum()
        whole = float(mine["end_s"][-1] - mine["begin_s"][0])
        assert weighted / whole == pytest.approx(metrics.value("throughput", "ftp"))


def test_series_are_of_flows_stages_or_trials(kept: sg.Runs) -> None:
    assert set(kept.series("queue")["stage"]) == {"bottleneck"}
    both = kept.series("queue_delay")
    assert set(both["flow"]) == {"ftp", "cross", None}
    assert set(kept.series("queue_delay", stage="bottleneck")["flow"]) == {None}
    assert set(kept.series("jain").select("flow", "stage").iter_rows()) == {(None, None)}


def test_events_are_those_of_the_records(kept: sg.Runs) -> None:
    table = kept.events()
    assert table.columns == [*KEY, "flow", "name", "time_s", "value", "unit", "reason"]
    for trial in kept:
        assert trial.directory is not None
        events = sg.open_record(trial.directory).events
        mine = table.filter(scenario=trial.scenario, seed=trial.seed)
        assert mine["time_s"].to_list() == [time / 1e9 for time in events["time"]]
        assert_frame_equal(
            mine.select("flow", "name", "value", "unit", "reason"),
            events.select("flow", "name", "value", "unit", "reason"),
        )
    chosen = kept.events("tcp_cwnd", flow="ftp")
    assert_frame_equal(chosen, table.filter((pl.col("name") == "tcp_cwnd") & (pl.col("flow") == "ftp")))
    assert kept.events("nothing of the kind").is_empty()


def test_events_that_were_not_kept_are_told(metrics_alone: sg.Runs, kept: sg.Runs, tmp_path: Path) -> None:
    with pytest.raises(sg.RecordError, match=r"keep='events'.*--keep events"):
        metrics_alone.events()
    runs = copied(kept, tmp_path / "runs")
    for trial in runs.only("test/two"):
        assert trial.directory is not None
        (trial.directory / "events.parquet").unlink()
    # Damaged, as it says that it has them: such a trial is invalid.
    assert len(sg.load(tmp_path / "runs").events().unique("scenario")) == 1
    sg.run(short(), mode="sim", out=metrics_alone.where, seed=77, keep="events", progress=False)
    try:
        with pytest.warns(UserWarning, match="8 of 9 trials were kept without events"):
            assert set(sg.load(metrics_alone.where).events()["seed"]) == {77}
    finally:
        shutil.rmtree(sg.load(metrics_alone.where).only("test/short").record(seed=77).directory)


def test_what_was_set_is_a_column(tmp_path: Path) -> None:
    sg.run(short(), mode="sim", seed=1, out=tmp_path, progress=False)
    for rate in ("2 Mbit/s", "10 Mbit/s"):
        changes = {"path.down.rate": rate, "flows.cross.parameters.rate": "20 packets/s"}
        sg.run(short(), mode="sim", seed=1, out=tmp_path, set=changes, progress=False)
    table = sg.load(tmp_path).metrics("goodput", flow="ftp")
    addresses = ["flows.cross.parameters.rate", "path.down.rate"]
    assert sorted(table.columns[1:3]) == addresses
    assert table.select(*addresses).rows() == [
        (None, None),
        ("20 packets/s", "2 Mbit/s"),
        ("20 packets/s", "10 Mbit/s"),
    ], "by value"
    runs = sg.load(tmp_path)
    assert {trial.settings for trial in runs.only(set={"path.down.rate": "*0*"})} == {
        ("flows.cross.parameters.rate=20 packets/s", "path.down.rate=10 Mbit/s")
    }
    assert (
        len(runs.only(set={"path.down.rate": "2Mbit/s"})) == len(runs.only(set={"path.down.rate": None})) == 1
    )
    assert sg.load(tmp_path).events("tcp_cwnd").columns[:4] == ["scenario", *table.columns[1:3], "mode"]


def test_invalid_trials_are_in_no_number(kept: sg.Runs, tmp_path: Path) -> None:
    make_invalid(copied(kept, tmp_path / "runs").only("test/short")[0])
    runs = sg.load(tmp_path / "runs")
    assert len(runs) == 8
    for table in (runs.metrics("goodput"), runs.series("queue"), runs.events("tcp_cwnd")):
        assert set(table.filter(scenario="test/short")["seed"]) == {2, 3, 4}
        assert table["valid"].all()
    both = runs.metrics("goodput", flow="ftp", invalid=True).filter(scenario="test/short")
    assert both.select("seed", "valid").rows() == [(1, False), (2, True), (3, True), (4, True)]
    assert runs.trials().filter(~pl.col("valid"))["why"].to_list() == ["<the clock> stood still"]
    assert "7 valid" in repr(runs) and "3 of 4 valid" in repr(runs) and "stood still" in repr(runs)
    assert "&lt;the clock&gt;" in runs._repr_html_() and "<the clock>" not in runs._repr_html_()


def test_of_a_repetition_one_trial_counts(kept: sg.Runs, tmp_path: Path) -> None:
    """An invalid trial and the one that stands for it; and one that stands for a trial which is valid."""
    runs = copied(kept, tmp_path / "runs").only("test/short")
    make_invalid(runs[0])
    for trial, whose in ((runs[1], 1), (runs[3], 3)):
        assert trial.directory is not None
        file = trial.directory / "trial.json"
        file.write_text(
            json.dumps(json.loads(file.read_text("utf-8")) | {"replaces": whose}), encoding="utf-8"
        )
    table = sg.load(tmp_path / "runs").only("test/short")
    assert table.metrics("goodput", flow="ftp")["seed"].to_list() == [2, 3]
    assert table.trials().select("seed", "replaces", "replaced_by").rows() == [
        (1, None, 2),
        (2, 1, None),
        (3, None, None),
        (4, 3, None),
    ]


def test_slips_are_told(kept: sg.Runs) -> None:
    with pytest.raises(sg.StreamGaugeError, match="no metric 'godput'; did you mean 'goodput'"):
        kept.metrics("godput")
    with pytest.raises(sg.StreamGaugeError, match="has a flow 'video'; the flows are ftp, cross"):
        kept.metrics("goodput", flow="video")
    with pytest.raises(sg.StreamGaugeError, match="has a flow 'video'; the flows are ftp, cross"):
        kept.series("goodput", flow="video")
    with pytest.raises(sg.StreamGaugeError, match="has a flow 'video'"):
        kept.events("tcp_cwnd", flow="video")
    with pytest.raises(sg.StreamGaugeError, match="without a course in time"):
        kept.series("good_run", flow="ftp")
    assert kept.series("buffer").is_empty(), "no flow plays"


def test_metrics_that_were_kept_are_what_measuring_gave(metrics_alone: sg.Runs, kept: sg.Runs) -> None:
    """Who measures a record whose packets were not kept is told how its metrics are read."""
    place = metrics_alone[0].directory
    assert place is not None
    with pytest.raises(sg.RecordError) as error:
        compute(sg.open_record(place))
    said = f"streamgauge.load({str(place)!r})[0].metrics"
    assert said in str(error.value)
    (trial,) = sg.load(place)
    there = kept[0].directory
    assert there is not None
    measured = compute(sg.open_record(there))
    for metric in ("goodput", "loss", "queue_delay"):
        assert of(trial).value(metric, "ftp") == measured.value(metric, "ftp")


def test_damaged_metrics_are_told(metrics_alone: sg.Runs, tmp_path: Path) -> None:
    runs = copied(metrics_alone, tmp_path / "runs")
    assert runs[0].directory is not None
    (runs[0].directory / "metrics.parquet").write_bytes(b"PAR1")
    runs = sg.load(tmp_path / "runs")
    assert "test/two" in repr(runs) and "kbit/s" in repr(runs), "what can be read is shown"
    with pytest.raises(sg.RecordError, match=r"seed=1/metrics\.parquet: damaged"):
        assert runs[0].metrics
    (trial,) = runs.entries[0].groups[0].trials[:1]
    assert not trial.valid and "damaged" in trial.why[-1]


def test_every_metric_has_a_canonical_unit() -> None:
    from streamgauge.notebook.frames import unit_of

    units = {"1", "s", "bit", "bit/s", "packets", "packets/s", "bit/packet"}
    assert {unit_of(name) for name in METRICS} <= units
