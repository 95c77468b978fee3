"""What people read Parquet with reads a campaign's metrics as they lie, and finds what StreamGauge says."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import polars as pl
import pytest
from streamgauge.campaign import run
from streamgauge.campaign.stored import long_form
from streamgauge.scenario import load

Means = dict[tuple[str, str], float]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Means]]:
    """A campaign's folder, and the mean throughput of each scenario's flows over its trials, bit/s."""
    out = tmp_path_factory.mktemp("campaign") / "runs"
    scenarios = [scenario for name in ("hessler/ftp-medium", "darwin/2qt-const") for scenario in load(name)]
    result = run(scenarios, {scenario.id: ["sim"] for scenario in scenarios}, out, repeat=3)
    said: dict[tuple[str, str], list[float]] = {}
    for outcome in result.outcomes:
        assert outcome.metrics is not None
        for flow in outcome.metrics.flows:
            value = outcome.metrics.value("throughput", flow)
            said.setdefault((outcome.job.scenario.id, flow), []).append(value)
    means = {key: fmean(values) for key, values in said.items()}
    assert len({value for values in said.values() for value in values}) > len(means), "trials differ"
    yield out, means


def test_duckdb(campaign: tuple[Path, Means]) -> None:
    out, means = campaign
    rows = duckdb.sql(f"""
        SELECT scenario, flow, avg(value), any_value(unit), list(DISTINCT seed ORDER BY seed), any_value(mode)
        FROM '{out}/**/metrics.parquet' WHERE metric = 'throughput' AND valid GROUP BY ALL
    """).fetchall()
    assert {(scenario, flow): mean for scenario, flow, mean, *_ in rows} == pytest.approx(means, rel=1e-12)
    assert {tuple(map(str, row[3:])) for row in rows} == {("bit/s", "[1, 2, 3]", "sim")}
    samples = duckdb.sql(f"""
        SELECT flow, numerator FROM '{out}/**/metrics.parquet'
        WHERE scenario = 'darwin/2qt-const' AND metric = 'goodput' AND seed = 2
    """).fetchall()
    table = long_form(out).filter(scenario="darwin/2qt-const", metric="goodput", seed=2)
    assert dict(samples) == dict(table.select("flow", "numerator").collect().iter_rows())
    assert len(samples) == 2


def test_polars(campaign: tuple[Path, Means]) -> None:
    out, means = campaign
    metrics = pl.scan_parquet(out / "**/metrics.parquet", hive_partitioning=True)
    found = metrics.filter(metric="throughput", valid=True).group_by("scenario", "flow").agg(pl.mean("value"))
    rows = {(scenario, flow): mean for scenario, flow, mean in found.collect().iter_rows()}
    assert rows == pytest.approx(means, rel=1e-12)


def test_long_form(campaign: tuple[Path, Means], tmp_path: Path) -> None:
    out, means = campaign
    table = long_form(out).collect()
    found = table.filter(metric="throughput").group_by("scenario", "flow").agg(pl.mean("value"))
    rows = {(scenario, flow): mean for scenario, flow, mean in found.iter_rows()}
    assert rows == pytest.approx(means, rel=1e-12)
    assert table["trial"].n_unique() == table["directory"].n_unique() == 3 * len({one for one, _ in means})
    assert set(table["seed"]) == {1, 2, 3} and set(table["mode"]) == {"sim"}
    # Trials of a folder that is laid out otherwise say by themselves whose they are.
    one = Path(table["directory"][0])
    shutil.copytree(one, tmp_path / "anywhere")
    alone = long_form([tmp_path / "anywhere"]).collect()
    assert alone.drop("directory").equals(long_form([one]).collect().drop("directory"))
    assert alone.height == table.filter(directory=str(one)).height


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
    reason="needs scripts/extras.sh readers, and Java 17",
)
def test_spark(campaign: tuple[Path, Means]) -> None:
    from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]

    out, means = campaign
    settings: dict[str, Any] = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1",
                                "spark.driver.host": "127.0.0.1"}  # fmt: skip
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        files = f"{out}/scenario=*/mode=*/seed=*/metrics.parquet"
        metrics = spark.read.option("basePath", str(out)).parquet(files)
        chosen = metrics.where("metric = 'throughput' AND valid").groupBy("scenario", "flow").avg("value")
        rows = {(row[0], row[1]): row[2] for row in chosen.collect()}
        assert rows == pytest.approx(means, rel=1e-12)
        assert {row.seed for row in metrics.select("seed").distinct().collect()} == {1, 2, 3}
        lists = metrics.where("metric = 'throughput'").selectExpr("size(numerator) = size(denominator)")
        assert {row[0] for row in lists.collect()} == {True}
    finally:
        spark.stop()
