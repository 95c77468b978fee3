"""`streamgauge analyze`, from files to its document, its answer and the files that it writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made import CLIENT, OFFSET_NS, bottleneck, tcp, write
from streamgauge.captures.analysis import AnalysisRequest, analyse
from streamgauge.captures.scenario import scenario_text, trace_text
from streamgauge.cli import main
from streamgauge.errors import CaptureFileError
from streamgauge.scenario.loading import load_file

FLOW_KEYS = {
    "flow",
    "protocol",
    "from",
    "to",
    "packets",
    "bytes",
    "lost",
    "retransmitted",
    "duplicated",
    "reordered",
    "jitter_s",
    "rtt_p50_s",
    "delay_p50_s",
    "delay_p95_s",
    "coverage",
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    folder = tmp_path_factory.mktemp("captures")
    server, client, losses = bottleneck()
    return write(folder / "server.pcap", server), write(folder / "client.pcap", client), losses


def document_of(*files: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["analyze", *map(str, files), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_one_capture(captures: tuple[Path, Path, int], capsys: pytest.CaptureFixture[str]) -> None:
    server, client, losses = captures
    found = document_of(server, capsys=capsys)
    assert found["schema"] == "streamgauge.analysis/1"
    (flow,) = found["flows"]
    assert flow.keys() >= FLOW_KEYS
    assert (flow["lost"], flow["retransmitted"], flow["side"]) == (losses, losses, None)
    assert flow["delay_p50_s"] is None and found["path"]["offset_s"] is None
    (capture,) = found["captures"]
    assert capture.keys() >= {"file", "packets", "bytes", "first_s", "last_s", "gaps"}
    assert (capture["packets"], capture["gaps"]) == (flow["packets"] + flow["back_packets"], 0)
    # At the receiver the same losses show as holes that are filled.
    (other,) = document_of(client, capsys=capsys)["flows"]
    assert (other["lost"], other["lost_before_capture"]) == (losses, losses)


def test_two_captures(captures: tuple[Path, Path, int], capsys: pytest.CaptureFixture[str]) -> None:
    server, client, losses = captures
    found = document_of(server, client, capsys=capsys)
    path = found["path"]
    assert (path["lost"], path["lost_by_capture"], path["open"]) == (losses, 0, 0)
    assert abs(path["offset_s"] - OFFSET_NS / 1e9) < 50e-6
    assert abs(path["skew_ppm"]) < 1
    assert abs(path["rate_bps"] / 4e6 - 1) < 0.02
    (flow,) = found["flows"]
    assert (flow["lost"], flow["coverage"]) == (losses, 1.0)
    assert 0.02 < flow["delay_p50_s"] < 0.3
    assert any(f"dropped {losses} of" in sentence for sentence in found["answer"])


def test_the_scenario_that_is_written_loads(captures: tuple[Path, Path, int], tmp_path: Path) -> None:
    server, client, _ = captures
    file = tmp_path / "measured.yaml"
    assert main(["analyze", str(server), str(client), "--scenario", str(file)]) == 0
    (scenario,) = load_file(file)
    assert scenario.id == "captures/measured"


def test_losses_in_bursts_become_a_model(tmp_path: Path) -> None:
    """Four in a row, every 60 segments: no independent losses are so."""
    lost = frozenset(n + k for n in range(50, 2700, 60) for k in range(4))
    server, client, _ = bottleneck(lost=lost)
    files = [str(write(tmp_path / "s.pcap", server)), str(write(tmp_path / "c.pcap", client))]
    single = bottleneck(lost=frozenset(range(50, 2700, 15)))
    alone = [str(write(tmp_path / "t.pcap", single[0])), str(write(tmp_path / "d.pcap", single[1]))]
    for captures, is_bursty in ((files, True), (alone, False)):
        file = tmp_path / f"{is_bursty}.yaml"
        assert main(["analyze", *captures, "--scenario", str(file)]) == 0
        (scenario,) = load_file(file)
        found = re.search(r"good: ([0-9.]+) packets, bad: ([0-9.]+) packets", file.read_text())
        assert (found is not None) == is_bursty
        assert scenario.id == "captures/measured"
        if found is not None:
            assert float(found[2]) == pytest.approx(4, abs=0.2)


def test_a_rate_that_changes_becomes_steps_and_a_trace() -> None:
    direction = {
        "rate_bps": 1.5e6,
        "rate_course": [[3.0, 1e6], [4.0, 1.01e6], [5.0, 2e6]],
        "delay_course": [[2.5, 0.02], [4.5, 0.08]],
        "loss_course": [[3.5, 0.0], [5.5, 0.015]],
        "queue_bytes": 30_000.0,
        "queue_bounds_bytes": [29_000, 31_000],
        "base_delay_s": 0.02,
        "lost": 12,
        "lost_at_full_queue": 2,
        "delivered": 988,
    }
    back = {**direction, "rate_bps": None, "lost": 0, "lost_at_full_queue": 0}
    flow = {
        "start_s": 0.0,
        "duration_s": 5.0,
        "packets": 500,
        "bytes": 500_000,
        "zero_windows": 0,
    }
    document = {"captures": [{}, {}], "flows": [flow], "path": {"main": direction, "back": back}}
    text = scenario_text(document)
    assert "steps: [{at: 0 ms, rate: 1000000 bit/s}, {at: 5000 ms, rate: 2000000 bit/s}]" in text
    assert "loss: 1 %" in text and "queue: droptail 30000 B" in text
    assert trace_text(document).splitlines()[1:] == [
        "time_s,rate_kbps,delay_ms,loss_percent",
        "0.000,1000.000,20.000,0.000",
        "0.500,1000.000,20.000,0.000",
        "1.000,1010.000,20.000,0.000",
        "1.500,1010.000,80.000,0.000",
        "2.000,2000.000,80.000,0.000",
        "2.500,2000.000,80.000,1.500",
    ]
    # Clocks that are not known leave delays out.
    direction["delay_course"] = []
    assert trace_text(document).splitlines()[1:3] == ["time_s,rate_kbps,loss_percent", "0.000,1000.000,0.000"]


def test_standard_input(captures: tuple[Path, Path, int]) -> None:
    command = [sys.executable, "-m", "streamgauge", "analyze", "-", "--json"]
    with captures[0].open("rb") as source:
        run = subprocess.run(command, stdin=source, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["flows"][0]["lost"] == captures[2]


def test_flows_are_chosen(captures: tuple[Path, Path, int]) -> None:
    assert analyse(AnalysisRequest((captures[0],), flow="10.0.0.1:80"))["flows"]
    with pytest.raises(CaptureFileError, match=r"no flow of .* has this in its name; it has tcp"):
        analyse(AnalysisRequest((captures[0],), flow="quic"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no capture: the file is empty"),
        (b"no capture at all, but a text of some length", "neither as pcap nor as pcapng"),
    ],
)
def test_what_is_no_capture_is_one_line(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert main(["analyze", str(file)]) == 3
    error = capsys.readouterr().err
    assert says in error and len(error.splitlines()) == 1


def test_bad_requests(
    captures: tuple[Path, Path, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server, client, _ = captures
    other = write(tmp_path / "other.pcap", [(5, tcp(b"\1\1\1\1", b"\2\2\2\2", (1, 2), 1, 1, 1, 9))])
    for words, says in (
        ([str(tmp_path / "none.pcap")], "cannot be read"),
        ([str(server), str(other)], "in common"),
        ([str(server), "-"], "standard input can be read once"),
        ([str(server), str(client), str(other)], "name one or two"),
        ([str(server), "--scenario", str(tmp_path / "s.yaml")], "one capture does not show a path"),
        ([str(server), str(client), "--base-delay", "20"], "--base-delay"),
    ):
        assert main(["analyze", *words]) == 3, words
        assert says in capsys.readouterr().err.replace("\n", " "), words


def test_a_damaged_end_is_stated(
    captures: tuple[Path, Path, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cut.pcap"
    file.write_bytes(captures[0].read_bytes()[:-500])
    assert main(["analyze", str(file)]) == 0
    assert "cut off within a block" in capsys.readouterr().out.replace("\n", " ")


def translated(frames: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The same behind a translator: the client has another address and another port."""
    public, port = bytes([203, 0, 113, 9]), (61_000).to_bytes(2, "big")
    found = []
    for at, packet in frames:
        is_up = packet[12:16] == CLIENT
        ends = (public, packet[16:20]) if is_up else (packet[12:16], public)
        ports = port + packet[22:24] if is_up else packet[20:22] + port
        found.append((at, packet[:12] + b"".join(ends) + ports + packet[24:]))
    return found


def test_translated_addresses_are_found(tmp_path: Path) -> None:
    server, client, losses = bottleneck()
    files = write(tmp_path / "server.pcap", translated(server)), write(tmp_path / "client.pcap", client)
    found = analyse(AnalysisRequest(files), tmp_path / "record")
    assert found["translated"] == [{"first": "203.0.113.9:61000", "second": "10.0.0.2:4000"}]
    assert (found["path"]["lost"], found["path"]["open"]) == (losses, 0)
    assert any("Addresses are translated" in sentence for sentence in found["answer"])
    # Or it is named, whole or by its address alone.
    for ours, theirs in (("203.0.113.9:61000", "10.0.0.2:4000"), ("203.0.113.9", "10.0.0.2")):
        named = AnalysisRequest(files, renamed=((theirs, ours),))
        if ":" in ours:
            assert analyse(named)["path"]["lost"] == losses
        else:
            with pytest.raises(CaptureFileError, match="--flow A=B"):
                analyse(named)  # the port differs too


def test_a_wrong_translation_is_one_line(
    captures: tuple[Path, Path, int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", *map(str, captures[:2]), "--flow", "here=there"]) == 3
    assert "--flow there: no address; expected 192.0.2.1" in capsys.readouterr().err.replace("\n", " ")


YEARS_NS = 9 * 365 * 86_400 * 10**9


def test_a_file_of_several_captures_has_no_verdict(tmp_path: Path) -> None:
    server, client, _ = bottleneck(600)
    half = sorted(server)[500][0]
    files = [
        write(tmp_path / name, [(at + YEARS_NS * (at - offset > half), packet) for at, packet in frames])
        for name, frames, offset in (("s.pcap", server, 0), ("c.pcap", client, OFFSET_NS))
    ]
    for chosen in (files, files[:1]):
        answer = analyse(AnalysisRequest(tuple(chosen)))["answer"]
        assert "s.pcap has 1 silence of more than an hour; cut it there" in answer[0]


def test_a_file_out_of_order_has_no_verdict(tmp_path: Path) -> None:
    server, _, _ = bottleneck(600)
    data = [frame for frame in server if len(frame[1]) > 1000]
    file = write(tmp_path / "s.pcap", data)
    bytes_ = file.read_bytes()
    size = 16 + len(data[0][1])
    frames = [bytes_[at : at + size] for at in range(24, len(bytes_), size)]
    file.write_bytes(bytes_[:24] + b"".join(reversed(frames)))
    answer = analyse(AnalysisRequest((file,)))["answer"]
    assert answer[0].startswith("No verdict") and "is not in order of time; sort its frames" in answer[0]


def test_one_capture_twice(captures: tuple[Path, Path, int], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(captures[0]), str(captures[0])]) == 3
    assert "named twice; name a capture of each end" in capsys.readouterr().err.replace("\n", " ")
