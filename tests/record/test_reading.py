"""What is written is what is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import PLAN, SCENARIO, make
from streamgauge import _native
from streamgauge.errors import RecordError, ScenarioError
from streamgauge.record import Record, prune, write_events
from streamgauge.record.balance import balance
from streamgauge.record.read import stage_labels

COLUMNS = {
    "pkt": pl.UInt64, "copy": pl.UInt8, "fragment_offset": pl.UInt16, "flow": pl.Enum, "dir": pl.Enum,
    "stage": pl.Enum, "kind": pl.Enum, "t_in": pl.Int64, "t_out": pl.Int64, "t_drop": pl.Int64,
    "fate": pl.Enum, "cause": pl.Enum, "wire_bytes": pl.UInt32, "ip_bytes": pl.UInt32,
    "payload_bytes": pl.UInt32, "seq": pl.UInt32, "flags": pl.UInt16, "queue_bytes": pl.UInt32,
    "queue_packets": pl.UInt32, "hash": pl.UInt32, "protocol": pl.UInt8, "connection": pl.UInt32,
}  # fmt: skip


def test_packets_have_their_columns_and_names(whole: Path) -> None:
    packets = Record.open(whole).packets
    assert {name: dtype.base_type() for name, dtype in packets.schema.items()} == COLUMNS
    assert packets.schema["flow"] == pl.Enum(["video", "tcp", "other"])
    assert packets.schema["stage"] == pl.Enum(["bottleneck", "delay", "up.delay"])
    crossing = packets.filter(pl.col("flow") == "tcp", pl.col("stage") == "up.delay")
    assert set(crossing["dir"]) == {"up"}
    assert set(crossing["kind"]) <= {"ack", "signalling"}
    assert set(packets.filter(flow="video", dir="down")["kind"]) == {"media"}
    assert set(packets.filter(flow="tcp")["connection"]) == {0}, "both directions"
    assert set(packets.filter(flow="video")["connection"]) == {None}
    assert set(packets.filter(fate="dropped")["cause"]) == {"queue_full"}
    assert packets.filter(fate="dropped").height > 0
    assert (packets["t_out"].is_not_null() == (packets["fate"] == "delivered")).all()
    assert (packets["t_drop"].is_not_null() == (packets["fate"] == "dropped")).all()
    # A drop-tail queue refuses what comes, when it comes.
    assert (packets.filter(fate="dropped")["t_drop"] == packets.filter(fate="dropped")["t_in"]).all()
    assert (packets["wire_bytes"] == packets["ip_bytes"] + 14).all()
    # 50 packets/s of 1000 B for 3 s, counted where they enter.
    video = packets.filter(flow="video", stage="bottleneck")
    assert 148 <= video.height <= 151
    assert set(video["payload_bytes"]) == {1000}


def test_trial_json(whole: Path) -> None:
    record = Record.open(whole)
    trial = record.trial
    assert trial["schema"] == "streamgauge.trial/2"
    assert trial["scenario"] == SCENARIO
    assert trial["plan"] == PLAN
    assert trial["duration_s"] == 3.0
    assert trial["flows"] == [
        {"id": 0, "name": "video", "role": "subject", "traffic": "cbr", "ours": True},
        {"id": 1, "name": "tcp", "role": "rival", "traffic": "bulk", "ours": True},
    ]
    assert [(stage["id"], stage["name"], stage["direction"]) for stage in trial["stages"]] == [
        (0, "bottleneck", "down"), (1, "delay", "down"), (2, "delay", "up"),
    ]  # fmt: skip
    assert trial["digest"] == record.verify()
    assert sorted(path.name for path in whole.iterdir()) == [
        "events.parquet", "packets.parquet", "provenance.json", "trial.json",
    ]  # fmt: skip
    assert {"host", "kernel", "streamgauge", "python", "finished_at"} <= record.provenance.keys()


def test_the_balance_kept_while_writing_is_that_of_the_rows(whole: Path) -> None:
    record = Record.open(whole)
    found = balance(record.packets, record.trial["stages"], stage_labels(record.trial["stages"]))
    assert found == record.trial["balance"]
    into_delay = {row["flow"]: row["in_packets"] for row in found if row["stage"] == "delay"}
    out_of_bottleneck = {row["flow"]: row["out_packets"] for row in found if row["stage"] == "bottleneck"}
    assert out_of_bottleneck["video"] == next(
        row["in_packets"]
        for row in found
        if (row["stage"], row["direction"], row["flow"]) == ("delay", "down", "video")
    )
    assert into_delay.keys() == out_of_bottleneck.keys()


def test_events_are_sorted_and_typed(whole: Path) -> None:
    events = Record.open(whole).events
    assert dict(events.schema) == {
        "time": pl.Int64, "flow": pl.String, "name": pl.String, "value": pl.Float64, "unit": pl.String,
        "reason": pl.String,
    }  # fmt: skip
    assert events["time"].is_sorted()
    assert {"rate", "delay"} <= set(events["name"])


def test_only_scenario_packets_and_events_make_the_digest(tmp_path: Path, whole: Path) -> None:
    digest = Record.open(whole).trial["digest"]
    again = make(tmp_path / "again", wall_s=123.0, host="elsewhere")
    assert Record.open(again).provenance["host"] == "elsewhere"
    assert Record.open(again).trial["digest"] == digest
    assert Record.open(make(tmp_path / "seed", PLAN | {"seed": 2})).trial["digest"] != digest


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.fixed_dictionaries(
            {
                "t_ns": st.integers(0, 2**62),
                "flow": st.sampled_from([None, "video", "tcp", "other"]),
                "name": st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
                "value": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                "unit": st.sampled_from(["", "s", "bit/s"]),
                "reason": st.text(st.characters(codec="utf-8"), max_size=12),
            }
        ),
        max_size=20,
    )
)
def test_events_come_back(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    write_events(tmp_path, events, plan=PLAN)
    read = pl.read_parquet(tmp_path / "events.parquet").rename({"time": "t_ns"}).to_dicts()
    assert read == sorted(events, key=lambda event: event["t_ns"])


def test_an_event_of_an_unknown_flow_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match='no flow "nobody"'):
        write_events(tmp_path, [{"t_ns": 0, "name": "stall", "flow": "nobody"}], plan=PLAN)
    with pytest.raises(RecordError, match="unknown field `time`"):
        write_events(tmp_path, [{"t_ns": 0, "name": "stall", "time": 3}], plan=PLAN)
    assert not list(tmp_path.iterdir())


def test_what_a_campaign_prunes_is_said(spoilt: Path) -> None:
    digest = Record.open(spoilt).trial["digest"]
    prune(spoilt, "events")
    record = Record.open(spoilt)
    assert not (spoilt / "packets.parquet").exists()
    assert record.verify() == digest
    assert record.events.height > 0
    with pytest.raises(
        RecordError, match=r"packets.parquet: not kept; run the trial again with --keep packets"
    ):
        _ = record.packets
    prune(spoilt, "metrics")
    assert Record.open(spoilt).trial["kept"] == []


def test_canonical_json_is_one_text_for_equal_values() -> None:
    values = [{"b": 1.0, "a": [0.1, 1e21, -0.0, 1e-7, 2**63]}, {"a": [0.1, 1e21, 0, 1e-7, 2**63], "b": 1}]
    texts = {_native.canonical_json(json.dumps(value)) for value in values}
    assert texts == {'{"a":[0.1,1e+21,0,1e-7,9223372036854775808],"b":1}'}


def test_a_plan_that_cannot_run_is_a_scenario_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="missing field `scenario`"):
        _native.simulate("{}", tmp_path)
    with pytest.raises(FileNotFoundError):
        _native.simulate(json.dumps(PLAN), tmp_path / "nowhere")
