"""What measuring reads of a record is what its tables hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import PLAN
from streamgauge import _native
from streamgauge.errors import RecordError
from streamgauge.record import Record, write_events

DATA = Path(__file__).parent / "data"
LATER = {"fragment_offset", "t_drop"}
ABSENT = {"t_out": -(2**63), "t_drop": -(2**63), "seq": -1}
VERSIONS = ["v1", "v2", "v3"]


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_are_those_of_the_packets(version: str) -> None:
    record = Record.open(DATA / version)
    assert LATER - set(record.columns) == (LATER if version == "v1" else set())
    # Records of every version have packets without a time of departure, and without a number.
    assert record.codes["t_out"].null_count() and record.codes["seq"].null_count()
    for name, values in record.columns.items():
        expected = record.codes[name]
        if name in ABSENT:
            expected = expected.cast(pl.Int64).fill_null(ABSENT[name])
        assert np.array_equal(values, expected.to_numpy()), name
        assert values.dtype.itemsize <= 2 or name not in ("copy", "flow", "dir", "stage", "kind", "flags")


def _in_seconds(events: pl.DataFrame) -> dict[tuple[str, str | None], tuple[list[int], list[float]]]:
    found: dict[tuple[str, str | None], tuple[list[int], list[float]]] = {}
    for row in events.iter_rows(named=True):
        times, values = found.setdefault((row["name"], row["flow"]), ([], []))
        value = math.nan if row["value"] is None else row["value"]
        times.append(row["time"])
        values.append(value / 1e3 if row["unit"] == "ms" else value)
    return found


def _same(record_told: Any, expected: Any) -> bool:
    return list(record_told) == list(expected) and all(
        np.array_equal(record_told[key][0], expected[key][0])
        and np.array_equal(record_told[key][1], expected[key][1], equal_nan=True)
        for key in expected
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_told_is_in_the_events(version: str) -> None:
    record = Record.open(DATA / version)
    assert _same(record.told, _in_seconds(record.events))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.fixed_dictionaries(
            {
                "t_ns": st.integers(0, 2**62),
                "flow": st.sampled_from([None, "video", "tcp"]),
                "name": st.sampled_from(["rtt", "a", "stall", "a longer one", "b"]),
                "value": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                "unit": st.sampled_from(["", "s", "ms"]),
            }
        ),
        max_size=40,
    )
)
def test_events_of_any_order_are_told_by_time(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    write_events(tmp_path, events, plan=PLAN)
    found = {
        (name, flow): (times, values)
        for name, flow, times, values, _ in _native.told(tmp_path / "events.parquet")
    }
    assert _same(found, _in_seconds(pl.read_parquet(tmp_path / "events.parquet")))


@pytest.mark.parametrize(("file", "table"), [("packets.parquet", "columns"), ("events.parquet", "told")])
def test_damage_is_told_or_changes_nothing(spoilt: Path, file: str, table: str) -> None:
    path = spoilt / file
    record = Record.open(spoilt)
    data, written = path.read_bytes(), getattr(record, table)
    found = 0
    places = range(0, len(data), max(1, len(data) // 150))
    for at in places:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            # Digests are for `verify`: what is read here may be wrong, and must never be of another form.
            read = getattr(Record(spoilt, record.trial), table)
        except RecordError as error:
            assert str(error).startswith(f"{path}: ")
            found += 1
        else:
            rows = [len(values) for values in read.values()] if table == "columns" else []
            assert len(set(rows)) <= 1 and (table == "told" or set(read) == set(written)), f"byte {at}"
    assert found > 0
    path.unlink()
    with pytest.raises(RecordError, match="missing"):
        getattr(Record(spoilt, record.trial), table)
