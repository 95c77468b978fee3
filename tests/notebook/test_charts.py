"""Figures of trials: valid by Altair, of the numbers that the trials have, shown and saved without the
internet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest
import streamgauge as sg
from streamgauge.notebook.charts import Chart
from two_scenarios import short


def rows_of(chart: Chart) -> pl.DataFrame:
    """What a chart draws; it is valid by Altair's own schema, and names no column that it has not."""
    spec = chart.to_dict()
    (rows,) = spec["datasets"].values()
    columns = set(rows[0])
    assert fields(spec) <= columns
    assert columns.isdisjoint({"t", "v", "s", "f", "m", "x", "y", "k", "c"}), "names, not letters"
    return pl.DataFrame(rows, infer_schema_length=None)


def fields(spec: Any) -> set[str]:
    if isinstance(spec, dict):
        own = {spec["field"]} if isinstance(spec.get("field"), str) else set()
        return own | {name for key, inner in spec.items() if key != "datasets" for name in fields(inner)}
    return {name for inner in spec for name in fields(inner)} if isinstance(spec, list) else set()


def axes(spec: Any) -> set[str]:
    """Titles of the axes."""
    if isinstance(spec, dict):
        own = {
            spec[way]["title"]
            for way in ("x", "y")
            if isinstance(spec.get(way), dict) and spec[way].get("title")
        }
        return own | {title for key, inner in spec.items() if key != "datasets" for title in axes(inner)}
    return {title for inner in spec for title in axes(inner)} if isinstance(spec, list) else set()


def test_rates_are_medians_in_bands_a_panel_a_scenario(kept: sg.Runs) -> None:
    chart = kept.plot.rates()
    rows = rows_of(chart)
    assert isinstance(chart, alt.FacetChart)
    assert axes(chart.to_dict()) == {"time, s", "kbit/s"}
    assert set(rows["flow"]) == {"ftp", "cross", "capacity"} and set(rows["scenario"]) == {"short", "two"}
    assert ((rows["low"] <= rows["median"]) & (rows["median"] <= rows["high"])).all()
    series = kept.series("receiver_rate", flow="ftp").filter(scenario="test/short")
    middle = (pl.col("begin_s") + pl.col("end_s")) / 2
    expected = series.group_by(time=middle.round(6), maintain_order=True).agg(
        pl.median("value") / 1e3, pl.len()
    )
    drawn = rows.filter(scenario="short", flow="ftp")
    assert drawn["time"].to_list() == expected["time"].to_list()
    assert drawn["median"].to_list() == pytest.approx(expected["value"].to_list(), rel=1e-4)
    assert set(drawn["trials"]) == set(expected["len"]) == {4}
    assert set(rows.filter(flow="capacity")["median"]) == {1000.0}
    assert (
        chart.to_dict()["title"]["subtitle"]
        == "median of 4 trials; band: from the least to the greatest of 4 trials"
    )


def test_one_line_a_scenario_is_drawn_in_one_panel_with_the_limit(kept: sg.Runs) -> None:
    chart = kept.plot.queue()
    rows = rows_of(chart)
    assert isinstance(chart, alt.LayerChart)
    assert axes(chart.to_dict()) == {"time, s", "packets"}
    assert set(rows["scenario"]) == {"short", "two", "limit"}
    assert set(rows.filter(scenario="limit")["median"]) == {20.0}
    one = rows_of(kept.only("test/two").plot.queue("bottleneck"))
    assert set(one["stage"]) == {"bottleneck", "limit"}


def test_a_capacity_beyond_the_scale_is_told_and_not_drawn(tmp_path: Path) -> None:
    changes = {"path.down.rate": "100 Mbit/s"}
    runs = sg.run(short(), mode="sim", seed=1, set=changes, out=tmp_path, progress=False)
    chart = runs.plot.rates()
    assert "capacity" not in set(rows_of(chart)["flow"])
    assert chart.to_dict()["title"]["subtitle"] == "one trial; the capacity is above the scale"


@pytest.mark.parametrize(
    "name", ["event.tcp_in_flight", "rtt", "cwnd", "loss", "queue_delay", "jain", "packet_rate"]
)
def test_any_metric_over_time(kept: sg.Runs, name: str) -> None:
    chart = kept.plot.over_time(name)
    rows = rows_of(chart)
    assert rows["median"].is_finite().all()
    assert "time, s" in axes(chart.to_dict())


def test_a_metric_over_the_window_is_means_and_trials(kept: sg.Runs) -> None:
    chart = kept.plot.metric("goodput")
    rows = rows_of(chart)
    assert axes(chart.to_dict()) == {"Goodput, kbit/s"}
    table = kept.metrics("goodput", flow="ftp").filter(scenario="test/two")
    ftp = rows.filter(scenario="two", flow="ftp")
    assert ftp.filter(kind="trial")["value"].to_list() == pytest.approx((table["value"] / 1e3).to_list())
    (mean,) = ftp.filter(kind="mean").iter_rows(named=True)
    assert mean["value"] == pytest.approx(ftp.filter(kind="trial")["value"].mean())
    assert mean["low"] <= mean["value"] <= mean["high"] and mean["trials"] == 4
    assert set(rows_of(kept.plot.metric("queue"))["flow"]) == {"bottleneck"}
    assert set(rows_of(kept.plot.metric("jain"))["flow"]) == {"all flows"}
    assert set(rows_of(kept.plot.metric("goodput", flow="cross"))["flow"]) == {"cross"}


def test_of_many_trials_each_is_not_drawn(kept: sg.Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a tick a trial" in kept.plot.metric("goodput").to_dict()["title"]["subtitle"]
    monkeypatch.setattr("streamgauge.notebook.plots._MOST_TICKS", 3)
    chart = kept.plot.metric("goodput")
    assert set(rows_of(chart)["kind"]) == {"mean"} and "tick" not in chart.to_dict()["title"]["subtitle"]


def test_records_with_metrics_alone_are_drawn_alike(kept: sg.Runs, metrics_alone: sg.Runs) -> None:
    assert rows_of(metrics_alone.plot.rates()).equals(rows_of(kept.plot.rates()))
    assert rows_of(metrics_alone.plot.metric("loss")).equals(rows_of(kept.plot.metric("loss")))


def test_what_cannot_be_drawn_is_told(kept: sg.Runs) -> None:
    with pytest.raises(sg.StreamGaugeError, match=r"no trial has buffer \(media buffered\)"):
        kept.plot.buffer()
    with pytest.raises(sg.StreamGaugeError, match="no trial has a flow 'video'; the flows are ftp, cross"):
        kept.plot.rates(flow="video")
    with pytest.raises(sg.StreamGaugeError, match="no trial has a flow 'video'"):
        kept.plot.metric("goodput", flow="video")
    with pytest.raises(sg.StreamGaugeError, match="no metric 'goodputs'; did you mean 'goodput'"):
        kept.plot.metric("goodputs")
    with pytest.raises(sg.StreamGaugeError, match="no bottleneck is called 'wire'; there are bottleneck"):
        kept.plot.queue("wire")
    invalid = [trial.damaged("a disk is broken") for trial in kept.only("test/two")]
    with pytest.raises(sg.StreamGaugeError, match="no valid trial to draw"):
        sg.Runs(invalid, where=kept.where).plot.rates()


def test_a_chart_is_saved_and_shown_without_the_internet(kept: sg.Runs, tmp_path: Path) -> None:
    chart = kept.only("test/two").plot.rates()
    for suffix, begins in (("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        chart.save(tmp_path / f"chart.{suffix}")
        assert (tmp_path / f"chart.{suffix}").read_bytes().startswith(begins)
    for one in (
        chart,
        kept.plot.rates(),
        chart.properties(title="Mine", width=300),
        kept.plot.metric("loss"),
    ):
        shown = one._repr_mimebundle_()
        assert set(shown) == {"application/vnd.vegalite.v6+json", "image/svg+xml", "text/plain"}
        assert shown["image/svg+xml"].startswith("<svg") and "<script" not in shown["image/svg+xml"]
        assert shown["application/vnd.vegalite.v6+json"] == one.to_dict()
    assert chart.properties(title="Mine")._repr_mimebundle_()["text/plain"] == "<chart: Mine>"
    assert (chart | chart).to_dict()["hconcat"], "charts go beside one another as any of Altair's"
    assert alt.Chart.from_dict(kept.plot.rates().to_dict()).to_dict()["facet"], "Altair reads them as ever"
    with alt.renderers.enable("mimetype"):
        assert "image/svg+xml" not in chart._repr_mimebundle_(), "as whoever chose a renderer wants it"
