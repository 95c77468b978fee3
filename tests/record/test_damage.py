"""Damaged records: each is a RecordError that names the file and what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from small import PLAN, make
from streamgauge.errors import RecordError
from streamgauge.record import Record

FILES = ["trial.json", "packets.parquet", "events.parquet"]


def rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    """Other rows under the same footer, as a careless tool would leave them."""
    metadata = {
        key: value for key, value in pl.read_parquet_metadata(path).items() if key.startswith("streamgauge.")
    }
    change(pl.read_parquet(path)).write_parquet(path, metadata=metadata)


def fails(directory: Path, file: str, match: str) -> str:
    """The error of opening and verifying, which names the file."""
    with pytest.raises(RecordError, match=match) as caught:
        Record.open(directory).verify()
    text = str(caught.value)
    assert text.startswith(f"{directory / file}: ")
    return text


@pytest.mark.parametrize("file", FILES)
def test_missing(spoilt: Path, file: str) -> None:
    (spoilt / file).unlink()
    assert "run the trial again" in fails(spoilt, file, "missing")
    with pytest.raises(RecordError):
        Record.open(spoilt)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_cut_short(spoilt: Path, file: str, share: float) -> None:
    data = (spoilt / file).read_bytes()
    (spoilt / file).write_bytes(data[: int(len(data) * share)])
    fails(spoilt, file, "damaged")
    with pytest.raises(RecordError):
        Record.open(spoilt)


@pytest.mark.parametrize("file", FILES[1:])
def test_a_flipped_byte_is_found_or_says_nothing(spoilt: Path, file: str) -> None:
    # The digests are of the values. Parquet pads the last block of a column's differences, and page headers
    # hold fields that no reader asks for: a byte may change there, and every value reads as it was written.
    path = spoilt / file
    data, written = path.read_bytes(), pl.read_parquet(path)
    places = range(0, len(data), max(1, len(data) // 150))
    found = 0
    for at in places:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            record = Record.open(spoilt)
            record.verify()
            read = record.codes if file == "packets.parquet" else record.events
        except RecordError as error:
            assert str(error).startswith(f"{path}: ")
            found += 1
        else:
            assert read.equals(written), f"byte {at}"
    assert found > len(places) / 2, f"{found} of {len(places)}"


def test_a_row_dropped(spoilt: Path) -> None:
    rewrite(spoilt / "packets.parquet", lambda rows: pl.concat([rows[:100], rows[101:]]))
    # Even without a full verification.
    with pytest.raises(RecordError, match=r"packets.parquet: damaged: it holds \d+ rows, \d+ were written"):
        Record.open(spoilt)


def test_flows_swapped(spoilt: Path) -> None:
    rewrite(spoilt / "packets.parquet", lambda rows: rows.with_columns((1 - pl.col("flow")).cast(pl.UInt16)))
    fails(spoilt, "packets.parquet", "damaged")


def test_a_value_changed(spoilt: Path) -> None:
    rewrite(spoilt / "events.parquet", lambda rows: rows.with_columns(pl.col("value") * 2))
    fails(spoilt, "events.parquet", "damaged")


def test_a_file_of_another_trial(spoilt: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", PLAN | {"seed": 9})
    shutil.copy(other / "packets.parquet", spoilt / "packets.parquet")
    with pytest.raises(
        RecordError, match=r"packets.parquet: damaged: its digest is blake3:\w+, trial.json says"
    ):
        Record.open(spoilt)


def test_a_scenario_changed_afterwards(spoilt: Path) -> None:
    trial = json.loads((spoilt / "trial.json").read_text())
    trial["scenario"]["path"]["down"]["rate"] = "2 Mbit/s"
    (spoilt / "trial.json").write_text(json.dumps(trial))
    fails(spoilt, "trial.json", "give digest")


def test_unknown_versions(spoilt: Path) -> None:
    trial = json.loads((spoilt / "trial.json").read_text())
    (spoilt / "trial.json").write_text(json.dumps(trial | {"schema": "streamgauge.trial/99"}))
    fails(spoilt, "trial.json", "read it with the StreamGauge that wrote it")
    (spoilt / "trial.json").write_text(json.dumps(trial))
    path = spoilt / "packets.parquet"
    said = {
        key: value.replace("streamgauge.packets/3", "streamgauge.packets/99")
        for key, value in pl.read_parquet_metadata(path).items()
        if key.startswith("streamgauge.")
    }
    pl.read_parquet(path).write_parquet(path, metadata=said)
    for use in (Record.verify, Record.replay):
        with pytest.raises(RecordError, match=r"schema .streamgauge\.packets/99. is not one"):
            use(Record(spoilt, trial))
    error = fails(spoilt, "packets.parquet", "streamgauge.packets/99")
    assert "streamgauge.packets/1, streamgauge.packets/2, streamgauge.packets/3" in error
    assert "read it with the StreamGauge that wrote it" in error


def test_a_code_without_a_name(spoilt: Path) -> None:
    rewrite(spoilt / "packets.parquet", lambda rows: rows.with_columns(pl.lit(77, pl.UInt8).alias("kind")))
    with pytest.raises(
        RecordError, match=r"packets.parquet: damaged: a code that its legend does not explain"
    ):
        _ = Record.open(spoilt).packets
