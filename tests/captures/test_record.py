"""Two captures become a record, and all that reads records reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import streamgauge
from made import Frames, bottleneck, write
from streamgauge.captures.analysis import AnalysisRequest, analyse
from streamgauge.cli import main
from streamgauge.errors import CaptureFileError, RecordError
from streamgauge.record import Record


def recorded(folder: Path, server: Frames, client: Frames) -> tuple[Record, dict[str, Any]]:
    files = write(folder / "server.pcap", server), write(folder / "client.pcap", client)
    document = analyse(AnalysisRequest(files), folder / "record")
    return Record.open(document["record"]), document


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, dict[str, Any], int]:
    server, client, losses = bottleneck()
    record, document = recorded(tmp_path_factory.mktemp("captures"), server, client)
    return record, document, losses


def test_every_fate_delay_and_queue(found: tuple[Record, dict[str, Any], int]) -> None:
    record, document, losses = found
    packets = record.packets
    down = packets.filter(pl.col("stage") == "bottleneck")
    assert down.height == document["flows"][0]["packets"]
    assert down.filter(pl.col("fate") == "dropped").height == losses
    # Nobody was at the queue.
    assert set(down.filter(pl.col("fate") == "dropped")["cause"]) == {"none"}
    assert down.filter(pl.col("flags") & 1 == 1).height == losses
    behind = packets.filter(pl.col("stage") == "delay")
    passed = down.filter(pl.col("fate") == "delivered").join(behind, on=["pkt", "copy"])
    # The link that was made: 4 Mbit/s, and 20 ms behind it.
    delays = (passed["t_out_right"] - passed["t_in"]) / 1e6
    assert delays.min() == pytest.approx(20 + 1502 * 8 / 4e3, abs=0.1)
    own = (passed["t_out"] - passed["t_in"]) / 1e6
    assert own.min() == pytest.approx(1502 * 8 / 4e3, abs=0.1)
    held = down.filter(pl.col("queue_packets") > 0)
    assert held.height > 100
    assert (held["queue_bytes"] == held["queue_packets"] * 1502).all()


def test_it_is_verified(found: tuple[Record, dict[str, Any], int], tmp_path: Path) -> None:
    record, _, _ = found
    assert record.verify() == record.trial["digest"]
    with pytest.raises(RecordError, match="has no plan"):
        record.replay()
    copy = tmp_path / "record"
    copy.mkdir()
    for file in record.directory.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    text = (copy / "trial.json").read_text()
    (copy / "trial.json").write_text(text.replace('"missed": {"tcp_1": 0}', '"missed": {"tcp_1": 1}'))
    with pytest.raises(RecordError, match="seal"):
        Record.open(copy).verify()


def test_the_notebook_reads_it(found: tuple[Record, dict[str, Any], int]) -> None:
    record, document, _ = found
    runs = streamgauge.load(record.directory)
    (metrics,) = [trial.metrics for trial in runs]
    assert metrics is not None and metrics.mode == "capture"
    flow = metrics.flows["tcp_1"]
    assert flow.series["lost_packets"].value(metrics.grid.slice()) == document["flows"][0]["lost"]
    assert flow.scalars["path_delay_p95"] == pytest.approx(document["flows"][0]["delay_p95_s"], rel=0.02)
    # A fair share needs the rate that somebody planned.
    assert "max_min_share" not in flow.series
    assert "tcp_1" in str(runs)


def test_the_page(found: tuple[Record, dict[str, Any], int], tmp_path: Path) -> None:
    record, document, _ = found
    assert main(["report", str(record.directory), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert document["answer"][0].rpartition(" Confidence")[0] in page
    assert "Both captures have every packet that arrived." in page
    assert "no plan" in page and "as captured" in page
    assert "valid in capture" not in page and "plain wire" not in page


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server, client, _ = bottleneck(600)
    files = [str(write(tmp_path / "s.pcap", server)), str(write(tmp_path / "c.pcap", client))]
    page, out = tmp_path / "page.html", tmp_path / "out"
    assert main(["analyze", *files, "--report", str(page), "--json"]) == 0
    assert "record" not in json.loads(capsys.readouterr().out) and page.stat().st_size > 10_000
    assert main(["analyze", *files, "--out", str(out), "--json"]) == 0
    record = Path(json.loads(capsys.readouterr().out)["record"])
    assert record.relative_to(out).parts[1:] == ("mode=capture", "seed=1")
    assert main(["compare", str(out), str(out)]) == 3
    capsys.readouterr()
    for words, says in (
        ([*files, "--out", str(out)], "is there already"),
        ([files[0], "--out", str(tmp_path / "other")], "name one of each end"),
        ([*files, "--out", files[0]], "is no folder"),
    ):
        assert main(["analyze", *words]) == 3, words
        assert says in capsys.readouterr().err.replace("\n", " "), words
    assert [place.name for place in out.iterdir()] == ["scenario=captures%2Fs%2Bc"]


def test_two_records_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lost_every in (("before", 100), ("after", 25)):
        server, client, _ = bottleneck(1500, lost_every)
        (tmp_path / name).mkdir()
        recorded(tmp_path / name, server, client)
    assert main(["compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 2
    said = capsys.readouterr().out
    assert "one repetition has no interval" in said and "loss" in said


def test_gaps_of_a_capture_are_no_losses(tmp_path: Path) -> None:
    server, client, losses = bottleneck()
    # Segments that arrived and that the client's capture missed.
    missed = [at for at, (_, packet) in enumerate(client) if len(packet) > 1000][200:900:100]
    gaps = [frame for at, frame in enumerate(client) if at not in missed]
    record, document = recorded(tmp_path, server, gaps)
    coverage = record.trial["observed"]["coverage"]
    assert coverage["missed"] == {"tcp_1": len(missed)}
    down = record.packets.filter(pl.col("stage") == "bottleneck")
    assert down.filter(pl.col("fate") == "dropped").height == losses
    assert down.height == document["flows"][0]["packets"] - len(missed)


def test_a_record_that_fails_leaves_nothing(tmp_path: Path) -> None:
    server, _, _ = bottleneck(300)
    one = write(tmp_path / "one.pcap", server)
    other = write(tmp_path / "other.pcap", server[:5])
    with pytest.raises(CaptureFileError, match="in common"):
        analyse(AnalysisRequest((one, other)), tmp_path / "record")
    assert not list((tmp_path / "record").rglob("*.partial"))


def test_qlog_stands_beside_the_packets(tmp_path: Path) -> None:
    server, client, _ = bottleneck(600)
    files = write(tmp_path / "s.pcap", server), write(tmp_path / "c.pcap", client)
    log = tmp_path / "server.qlog"
    header = {
        "qlog_version": "0.3",
        "qlog_format": "JSON-SEQ",
        "trace": {"vantage_point": {"type": "server"}},
    }
    metrics = {"time": 250, "name": "recovery:metrics_updated", "data": {"congestion_window": 14480}}
    log.write_text("".join(f"\x1e{json.dumps(one)}\n" for one in (header, metrics)))
    found = analyse(AnalysisRequest(files, qlogs=(log,)), tmp_path / "record")
    (row,) = found["qlogs"]
    assert (row["placed_by"], row["series"]["congestion_window"]["points"]) == (
        "first packet",
        [[0.25, 14480]],
    )
    events = Record.open(found["record"]).events.filter(pl.col("name") == "qlog_congestion_window")
    assert events.select("time", "flow", "value", "unit").rows() == [(250_000_000, "tcp_1", 14480.0, "B")]


CHECKS = """\
checks:
  few:
    title: The line loses less than 5 %
    that: loss.tcp_1 <= 5 %
  none:
    that: loss.tcp_1 == 0 %
    origin: input
  nowhere:
    that: loss.tcp_9 <= 5 %
"""


def test_checks_judge_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server, client, losses = bottleneck(1500)
    files = [str(write(tmp_path / "s.pcap", server)), str(write(tmp_path / "c.pcap", client))]
    checks, out, page = tmp_path / "line.yaml", tmp_path / "out", tmp_path / "page.html"
    checks.write_text(CHECKS)
    words = ["analyze", *files, "--checks", str(checks), "--out", str(out), "--report", str(page), "--json"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    verdicts = {one["id"]: one for one in found["checks"]}
    assert {name: one["verdict"] for name, one in verdicts.items()} == {
        "few": "pass", "none": "fail", "nowhere": "inconclusive",
    }  # fmt: skip
    sent = found["flows"][0]["packets"]
    assert verdicts["few"]["measured"] == pytest.approx(100 * losses / sent, rel=0.02)
    assert "tcp_1" in verdicts["nowhere"]["why"] and verdicts["few"]["n"] == 1
    assert "The line loses less than 5 %" in page.read_text(encoding="utf-8").replace("\u00a0", " ")
    # Without --out the record is gone, and the verdicts are printed.
    checks.write_text("checks: {few: {that: loss.tcp_1 <= 5 %}}")
    assert main(["analyze", *files, "--checks", str(checks)]) == 0
    assert "few" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("flows: {}", "there are no checks"),
        ("checks:\n  few:\n    that: loss.tcp_1 <=", "line.yaml:3: checks.few.that"),
        ("checks:\n  few:\n    thta: loss.tcp_1 <= 1 %", "did you mean 'that'"),
        ("checks:\n  few:\n    that: loss.tcp_1 of today/tcp-reno <= 1 %", "captures are a record alone"),
    ],
)
def test_checks_that_cannot_be_judged(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = tmp_path / "line.yaml"
    checks.write_text(text)
    assert main(["analyze", "a.pcap", "b.pcap", "--checks", str(checks)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert says in said and "line.yaml" in said
    checks.write_text("checks: {few: {that: loss.tcp_1 <= 1 %}}")
    server, _, _ = bottleneck(60)
    assert main(["analyze", str(write(tmp_path / "s.pcap", server)), "--checks", str(checks)]) == 3
    assert "one of each end" in " ".join(capsys.readouterr().err.split())
