"""The tables of docs/records.md have the columns that a record has, with their types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from streamgauge.record.columns import COLUMNS


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a simulated trial."""
    out = tmp_path_factory.mktemp("columns")
    command = ["run", "hessler/ftp-medium", "--mode", "sim", "--repeat", "1", "--out", str(out)]
    subprocess.run([sys.executable, "-m", "streamgauge", *command], check=False, capture_output=True)
    (found,) = out.glob("scenario=hessler%2Fftp-medium/mode=sim/seed=*")
    return found


@pytest.mark.parametrize("file", COLUMNS)
def test_a_record_has_the_described_columns(trial: Path, file: str) -> None:
    schema = pl.read_parquet_schema(trial / file)
    described = {one.name: one.type for one in COLUMNS[file]}
    assert {name: str(kind) for name, kind in schema.items()} == described
