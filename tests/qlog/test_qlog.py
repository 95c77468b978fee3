"""qlog, written of records and read of stacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge.cli import main
from streamgauge.errors import CaptureFileError
from streamgauge.qlog import read_qlog

SCENARIO = """\
id: qlog/steps
title: A link whose rate falls
path:
  down:
    rate: {steps: [{at: 0 s, rate: 4 Mbit/s}, {at: 3 s, rate: 1 Mbit/s}]}
    queue: droptail 30 kB
    delay: 20 ms
  up: {delay: 20 ms}
flows:
  load: {role: subject, traffic: bulk, congestion_control: cubic}
until: {time: 6 s}
repetitions: {sim: 1}
"""
RECOVERY = {
    "min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance", "pto_count", "congestion_window",
    "bytes_in_flight", "ssthresh", "packets_in_flight", "pacing_rate",
}  # fmt: skip
"""Fields of recovery:metrics_updated in draft-ietf-quic-qlog-quic-events-01."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qlog")
    (folder / "steps.yaml").write_text(SCENARIO)
    assert (
        main(["run", str(folder / "steps.yaml"), "--mode", "sim", "--qlog", "--out", str(folder / "out")])
        == 0
    )
    (file,) = (folder / "out").rglob("*.sqlog")
    return file


def test_it_has_the_published_form(written: Path) -> None:
    """Of draft-ietf-quic-qlog-main-schema-02: section 3 for the header, section 6.2 for the sequence."""
    text = written.read_text()
    assert text.startswith("\x1e") and text.endswith("\n")
    header, *events = (json.loads(one) for one in text.split("\x1e")[1:])
    # By these two qvis knows it.
    assert (header["qlog_version"], header["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert header["trace"]["vantage_point"]["type"] in ("client", "server", "network", "unknown")
    common = header["trace"]["common_fields"]
    assert common["time_format"] in ("absolute", "delta", "relative")
    assert isinstance(common["reference_time"], int) and isinstance(common["protocol_type"], list)
    assert all(event.keys() >= {"time", "name", "data"} for event in events)
    times = [event["time"] for event in events]
    assert times == sorted(times)
    names = {event["name"] for event in events}
    packets = {"transport:packet_sent", "recovery:packet_lost"}
    assert names == {"recovery:metrics_updated", "simulation:marker", *packets}
    for event in events:
        if event["name"] == "simulation:marker":
            assert event["data"].keys() == {"type", "message"}
        elif event["name"] not in packets:
            assert event["data"].keys() <= RECOVERY
            assert all(
                isinstance(event["data"].get(key, 0), int) for key in ("congestion_window", "ssthresh")
            )


def test_it_has_the_fields_that_qvis_reads(written: Path) -> None:
    """As the loaders of qvis take a file, and its graph of congestion draws one."""
    records = [json.loads(one) for one in written.read_text().split("\x1e") if one.strip()]
    header, *events = records
    # TextSequenceJSONToQlog: three fields of the header; QlogLoaderV2: a version that it knows.
    assert written.suffix == ".sqlog" and header["qlog_format"] == "JSON-SEQ" and "trace" in header
    assert header["qlog_version"] in ("draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3")
    # QlogLoaderV2: a group in the first event would split the trace, and event_fields are of older drafts.
    assert "group_id" not in events[0] and "event_fields" not in header["trace"]
    assert header["trace"]["common_fields"]["time_format"] == "relative"
    # DirectEventParser: category and name, before and behind the colon.
    by_name: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        assert event["name"].count(":") == 1 and float(event["time"]) >= 0
        assert "packet_type" not in event["data"]
        by_name.setdefault(event["name"], []).append(event)
    # CongestionGraphD3Renderer: the axis of time ends at the last packet sent with a length, and a loss is of
    # a packet with the same type and number.
    sent = {
        (one["data"]["header"]["packet_type"], str(one["data"]["header"]["packet_number"])): one
        for one in by_name["transport:packet_sent"]
    }
    assert all(one["data"]["raw"]["length"] > 0 for one in sent.values())
    assert len(sent) == len(by_name["transport:packet_sent"]) > 1000
    last_ms = max(one["time"] for one in sent.values())
    metrics = by_name["recovery:metrics_updated"]
    assert sum(one["time"] <= last_ms + 10 for one in metrics) > 0.9 * len(metrics)
    assert any(one["data"].get("congestion_window") for one in metrics)
    assert any(one["data"].get("smoothed_rtt") for one in metrics)
    lost = [one["data"]["header"] for one in by_name["recovery:packet_lost"]]
    assert lost and all((one["packet_type"], str(one["packet_number"])) in sent for one in lost)
    (record,) = Path(written).parent.parent.glob("packets.parquet")
    rows = pl.read_parquet(record, hive_partitioning=False).filter(
        (pl.col("dir") == 0) & (pl.col("fate") == 1)
    )
    assert len(lost) == rows["pkt"].n_unique()


def test_what_is_written_is_read(written: Path) -> None:
    (trace,) = read_qlog(written)
    unit, points = trace.series["smoothed_rtt"]
    assert unit == "s" and len(points) > 40
    assert 0.04 <= min(value for _, value in points) < 0.06
    assert trace.series["congestion_window"][0] == "B"
    falls = [at for at, said in trace.markers if said == "rate 1000000 bit/s at path.down.bottleneck"]
    assert falls == [3.0]
    assert (trace.skipped, trace.epoch_s) == (0, None)


@pytest.mark.parametrize(("more", "says"), [(["--keep", "metrics"], "--qlog"), (["--keep", "events"], None)])
def test_events_are_needed(more: list[str], says: str | None, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "steps.yaml").write_text(SCENARIO)
    words = [
        "run",
        str(tmp_path / "steps.yaml"),
        "--mode",
        "sim",
        "--qlog",
        "--out",
        str(tmp_path / "out"),
        *more,
    ]
    assert main(words) == (3 if says else 0)
    assert (says or "") in capsys.readouterr().err


def test_the_current_drafts(tmp_path: Path) -> None:
    file = tmp_path / "log.qlog"
    event = {"time": 5.0, "name": "quic:recovery_metrics_updated", "data": {"latest_rtt": 40, "x": "y"}}
    lost = {"time": 2.5, "name": "quic:packet_lost", "data": {}}
    clock = {"clock_type": "system", "epoch": "2026-11-30T10:00:00.000Z"}
    common = {"reference_time": clock, "time_format": "relative_to_previous_event"}
    file.write_text(json.dumps({
        "file_schema": "urn:ietf:params:qlog:file:contained",
        "traces": [{"common_fields": common, "events": [event, lost, {"time": "no"}, 7]}],
    }))  # fmt: skip
    (trace,) = read_qlog(file)
    assert trace.series == {"latest_rtt": ("s", ((0.005, 0.04),))}
    assert trace.lost_s == (0.0075,)
    assert (trace.skipped, trace.epoch_s) == (2, 1_796_032_800.0)


def test_a_log_that_was_cut_off_is_read_in_part(written: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.sqlog"
    cut.write_bytes(written.read_bytes()[:-20])
    (trace,), (whole,) = read_qlog(cut), read_qlog(written)
    assert trace.skipped == 1
    assert sum(trace.events.values()) == sum(whole.events.values()) - 1


@pytest.mark.parametrize("content", [b"", b"no qlog", b"{}", b'{"traces": []}', b"\x1f\x8bnothing", b"\x1e{"])
def test_what_is_no_qlog_is_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file.qlog"
    file.write_bytes(content)
    with pytest.raises(CaptureFileError, match=r"file\.qlog: ") as caught:
        read_qlog(file)
    assert len(str(caught.value).splitlines()) == 1
