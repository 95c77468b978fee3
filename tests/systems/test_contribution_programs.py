"""SRT and RIST by the programs of their libraries: statistics, pictures, and the programs on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu.process import furnish
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario import from_text
from streamgauge.systems.adapter import PROGRAMS, Clock, Collected, FlowSetup, Process
from streamgauge.systems.adapters import ADAPTERS, adapter_for, check_programs
from streamgauge.systems.rist_librist import statistics as rist_statistics
from streamgauge.systems.srt_libsrt import STATISTICS, statistics

sys.path.insert(0, str(PROGRAMS))
from transport_stream import PACKET_BYTES, Numbered, Picture, PictureReader

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg")
needs_srt = pytest.mark.skipif(shutil.which("srt-live-transmit") is None, reason="no srt-tools")
needs_rist = pytest.mark.skipif(shutil.which("ristsender") is None, reason="no rist-tools")

CLOCK = Clock(
    t0_monotonic_ns=10**9, t0_realtime_ns=1_800_000_000 * 10**9, started={}, ended_monotonic_ns=10**12
)
FRAMES, FPS = 50, 25


def flow(folder: Path, system: str, media: Path | None = None, port: int = 6200, **told: str) -> FlowSetup:
    return FlowSetup(
        name="v",
        index=0,
        system=system,
        parameters=told,
        media=media or folder / "clip.mp4",
        server_ip="127.0.0.1",
        player_ip="127.0.0.1",
        port=port,
        folder=folder,
        plan={"start": 0},
        trial={"duration": 10**9},
    )


# Statistics.

NAMES = "pktSent pktSndDrop pktRetrans pktRecv pktRcvLoss pktRcvDrop pktRcvBelated msRTT msSndBuf msRcvBuf"
HEADING = ",".join(["Timepoint", "Time", "SocketID", *NAMES.split()])


def row(at: str, *values: float) -> str:
    return ",".join([f"2027-01-15T08:00:{at}+0000", "1", "7", *map(str, values)])


def test_reports_of_srt_have_their_time_and_numbers() -> None:
    faults: list[str] = []
    lines = [HEADING, row("01.500000", 10, 0, 1, 0, 0, 0, 0, 40.5, 120, 0), HEADING, ""]
    ((at_ns, found),) = statistics(lines, "x", CLOCK, faults)
    assert (at_ns, faults) == (10**9 + 1_500_000_000, [])
    assert (found["pktRetrans"], found["s_rtt"], found["s_send"]) == (1, 0.0405, 0.12)


GOOD = row("01.500000", 10, 0, 1, 0, 0, 0, 0, 40.5, 120, 0)


@pytest.mark.parametrize(
    "bad",
    [
        "2027-01-15T08:00:02.000000+0000,1",
        GOOD + ",5",
        GOOD.replace("40.5", "nan"),
        GOOD.replace("40.5", "forty"),
        GOOD.replace(",1,0,0", ",-1,0,0"),
        GOOD.replace("T08", " at eight"),
        "SRT source disconnected",
    ],
)
def test_a_line_of_srt_that_is_none_is_named_and_ends_the_reading(bad: str) -> None:
    faults: list[str] = []
    rows = statistics([HEADING, GOOD, bad, GOOD], "v-server-statistics.csv", CLOCK, faults)
    assert len(rows) == 1
    assert faults == ["v-server-statistics.csv:3: not statistics of srt-live-transmit"]


def test_a_report_of_srt_before_its_heading_is_a_fault() -> None:
    faults: list[str] = []
    assert statistics([GOOD], "x", CLOCK, faults) == []
    assert faults == ["x:1: not statistics of srt-live-transmit"]


def rist_line(at: str = "1800000002.250000", **told: Any) -> str:
    stats = {"received": 5, "lost": 1, "dropped_late": 0, "missing": 2, "recovered_total": 1, "retries": 3}
    stats |= {"quality": 99.5, "avg_buffer_time": 480, **told}
    peers = [{"id": 1, "stats": {"rtt": 42}}]
    report = {"receiver-stats": {"flowinstant": {"stats": stats, "peers": peers}}}
    return f"{at}|0.0|[INFO] {json.dumps(report, separators=(',', ':'))}"


def test_reports_of_rist_are_summed_up() -> None:
    faults: list[str] = []
    lines = [rist_line(), "1800000002.3|0.0|[INFO] Starting", rist_line("1800000002.450000", lost=2)]
    (first, one), (_, two) = rist_statistics(lines, "x", "receiver", CLOCK, faults)
    assert (first, faults) == (10**9 + 2_250_000_000, [])
    assert (one["lost"], two["lost"], two["received"]) == (1, 3, 10)
    assert (two["s_rtt"], two["s_buffer"], two["quality"]) == (0.042, 0.48, 99.5)


@pytest.mark.parametrize(
    "bad",
    [
        rist_line(lost=-1),
        rist_line(lost=None),
        rist_line(received=1e400),
        rist_line()[:-5],
        rist_line().replace("flowinstant", "flow"),
        rist_line().replace("1800000002.", ""),
    ],
)
def test_a_report_of_rist_that_is_none_is_named(bad: str) -> None:
    faults: list[str] = []
    assert len(rist_statistics([rist_line(), bad, rist_line()], "log", "receiver", CLOCK, faults)) == 1
    assert faults == ["log:2: not statistics of ristreceiver"]


def test_collected_statistics_become_events_of_increases(tmp_path: Path) -> None:
    setup = flow(tmp_path, "srt-libsrt")
    for side in ("server", "player"):
        (tmp_path / side).mkdir()
    lines = [HEADING]
    lines += [row(f"{at / 10:09.6f}", at, 0, at // 4, 0, 0, 0, 0, 40, 0, 0) for at in range(10, 31)]
    (tmp_path / "server" / STATISTICS).write_text("\n".join(lines) + "\nhalf a li")
    (tmp_path / "player" / STATISTICS).symlink_to("/etc/passwd")
    found: Collected = ADAPTERS["srt-libsrt"].collect(setup, CLOCK)
    (fault,) = found.faults
    assert fault.startswith("v-player-statistics.csv is a symbolic link")
    repeated = [one["value"] for one in found.events if one["name"] == "repeated"]
    assert sum(repeated) == 30 // 4 and all(value > 0 for value in repeated)
    times = [one["t_monotonic_ns"] for one in found.events if one["name"] == "srt_rtt"]
    assert len(times) == 11 and times[-1] == 10**9 + 3 * 10**9
    dropped = [one["value"] for one in found.events if one["name"] == "sender_dropped"]
    assert dropped == [0]


# Pictures.


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("clip") / "clip.mp4"
    source = ["-f", "lavfi", "-i", f"testsrc=size=160x120:rate={FPS}:duration={FRAMES / FPS}"]
    encoded = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-b:v", "300k"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *source, *encoded, str(file)], check=True)
    return file


def stream(clip: Path) -> bytes:
    mux = ["-c", "copy", "-copyts", "-muxdelay", "0", "-muxpreload", "0", "-f", "mpegts", "pipe:1"]
    made = subprocess.run(["ffmpeg", "-v", "error", "-i", str(clip), *mux], check=True, capture_output=True)
    return made.stdout


def outcome(data: bytes, chunk: int = 1316) -> tuple[list[int], list[int], int]:
    """Whole and incomplete pictures, and bytes that are no packet."""
    reader, pictures = PictureReader(), Numbered(1 / FPS, FRAMES)
    found: list[Picture] = []
    for place in range(0, len(data), chunk):
        found += reader.push(data[place : place + chunk], place / 1e6)
    found += reader.finish()
    numbers = [(pictures.number(one), one.is_whole) for one in found]
    whole = [number for number, is_whole in numbers if is_whole and number is not None]
    return whole, sorted({*range(FRAMES)} - {*whole}), reader.faults


@needs_ffmpeg
@pytest.mark.parametrize("chunk", [1316, 188, 1000, 65_536])
def test_each_picture_of_a_whole_stream_is_whole(clip: Path, chunk: int) -> None:
    assert outcome(stream(clip), chunk) == (list(range(FRAMES)), [], 0)


@needs_ffmpeg
def test_a_lost_datagram_damages_the_pictures_that_it_has_packets_of(clip: Path) -> None:
    data = stream(clip)
    packets = [data[at : at + PACKET_BYTES] for at in range(0, len(data), PACKET_BYTES)]
    video = [n for n, one in enumerate(packets) if one[1] & 0x1F == 1 and one[2] == 0]
    begins = [n for n in video if packets[n][1] & 0x40]
    # The second packet of picture 20, and a whole picture 30.
    lost = {begins[20] + 1, *range(begins[30], begins[31])}
    kept = b"".join(one for n, one in enumerate(packets) if n not in lost)
    whole, damaged, faults = outcome(kept)
    assert faults == 0 and 20 in damaged and 30 in damaged
    assert len(damaged) <= 3 and len(whole) == FRAMES - len(damaged)


@needs_ffmpeg
def test_bytes_that_are_no_packet_are_passed_over_and_counted(clip: Path) -> None:
    data = stream(clip)
    middle = len(data) // 2 // PACKET_BYTES * PACKET_BYTES
    whole, damaged, faults = outcome(data[:middle] + b"\0" * 100 + data[middle:])
    assert faults == 100 and len(whole) + len(damaged) == FRAMES and len(damaged) <= 1
    assert outcome(bytes(20_000)) == ([], list(range(FRAMES)), 20_000 - PACKET_BYTES + 1)


def test_pictures_that_never_came_are_reported_once() -> None:
    pictures = Numbered(0.04, 30)
    for number in (0, 1, 5, 4):
        assert pictures.number(Picture(3600 * number, 0.0)) == number
    assert pictures.number(Picture(3600 * 5, 0.0)) is None
    assert pictures.number(Picture(-3600 % (1 << 33), 0.0)) is None
    assert pictures.missing(4) == [2, 3]
    assert pictures.missing(4) == [] and pictures.number(Picture(3600 * 2, 0.0)) is None
    assert pictures.missing(100) == list(range(6, 30))


# Scenarios, and programs that are not there.

TEXT = """
id: test/contribution
title: Contribution
path: {{down: {{rate: 1 Mbit/s, queue: droptail 10 packets}}}}
flows:
  v: {{role: subject, system: {system}, parameters: {{{told}}}, clip: carphone-200k{more}}}
until: {{time: 5 s}}
modes: [{modes}]
"""


@pytest.mark.parametrize(
    ("system", "told", "says"),
    [
        ("srt-libsrt", "receiver_key: other", "no effect without encryption"),
        ("srt-libsrt", "encryption: des", "is not one of off, aes-128, aes-192, aes-256"),
        ("srt-libsrt", "latency: 70 s", "more than 65.535 s"),
        ("rist-librist", "receiver_key: other", "no effect without encryption"),
        ("rist-librist", "rtt_min: 1 s, rtt_max: 100 ms", "rtt_m"),
        ("rist-librist", "latency: 1 ms", "less than 20 ms"),
    ],
)
def test_settings_that_cannot_be_are_refused(system: str, told: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        from_text(TEXT.format(system=system, told=told, more="", modes="emu"))


def test_sim_needs_our_machine_in_its_place() -> None:
    (alone,) = from_text(TEXT.format(system="srt-libsrt", told="", more="", modes="emu"))
    assert alone.unsupported("sim") is not None
    told = "latency: 300 ms, maxbw: 3 Mbit/s"
    (scenario,) = from_text(
        TEXT.format(system="srt-libsrt", told=told, more=", sim: {system: srt}", modes="emu, sim")
    )
    assert scenario.unsupported("sim") is None
    played = scenario.flows["v"].in_mode("sim")
    assert played.system == "srt"
    assert str(played.parameters["latency"]) == "300 ms" and played.parameters["caller"] == "receiver"
    assert str(played.parameters["maxbw"]) == "3 Mbit/s"


@pytest.mark.parametrize(
    ("system", "program", "package"),
    [("srt-libsrt", "srt-live-transmit", "srt-tools"), ("rist-librist", "ristsender", "rist-tools")],
)
def test_a_missing_program_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, program: str, package: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match=rf"^flow v: {program} is missing; .*apt-get install {package}"):
        check_programs(flow(tmp_path, system))


# The programs.


@dataclass
class Ran:
    """Both ends' exit statuses, and what the adapter found."""

    server: int
    player: int
    found: Collected

    def values(self, name: str) -> list[float]:
        return [one["value"] for one in self.found.events if one["name"] == name]

    def reasons(self, name: str) -> list[str]:
        return [one["reason"] for one in self.found.events if one["name"] == name]


@contextmanager
def started(setup: FlowSetup, spec: Process) -> Iterator[subprocess.Popen[bytes]]:
    furnish(setup, spec, None)
    out = setup.out(spec.side)
    with (out / "stdout.log").open("wb") as said, (out / "stderr.log").open("wb") as erred:
        popen = subprocess.Popen(
            spec.command,
            cwd=out,
            env={"PATH": os.environ["PATH"], "HOME": str(out), **setup.variables(spec.side)},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=erred,
            start_new_session=True,
        )
        try:
            yield popen
        finally:
            if popen.poll() is None:
                os.killpg(popen.pid, signal.SIGKILL)
                popen.wait()


def run(setup: FlowSetup, *, until: Callable[[int | None, int | None], bool], limit_s: float = 40) -> Ran:
    """Runs both ends as the sandbox would. Once `until` holds of their statuses, both get SIGINT."""
    began, wall = time.monotonic_ns(), time.time_ns()
    serving, playing = adapter_for(setup).processes(setup)
    with started(setup, serving) as server:
        time.sleep(0.5)
        at = time.monotonic_ns()
        with started(setup, playing) as player:
            deadline = time.monotonic() + limit_s
            while not until(server.poll(), player.poll()):
                assert time.monotonic() < deadline, (setup.out("player") / "stderr.log").read_text()
                time.sleep(0.05)
            for one in (player, server):
                if one.poll() is None:
                    one.send_signal(signal.SIGINT)
                one.wait(10)
    clock = Clock(
        t0_monotonic_ns=began,
        t0_realtime_ns=wall,
        started={"server": began, "player": at},
        ended_monotonic_ns=time.monotonic_ns(),
    )
    return Ran(server.returncode, player.returncode, adapter_for(setup).collect(setup, clock))


def both(server: int | None, player: int | None) -> bool:
    return server is not None and player is not None


@needs_ffmpeg
@needs_srt
def test_libsrt_delivers_an_encrypted_clip(tmp_path: Path, clip: Path) -> None:
    ran = run(flow(tmp_path, "srt-libsrt", clip, latency="120 ms", encryption="aes-256"), until=both)
    assert (ran.server, ran.player, ran.found.faults) == (0, 0, [])
    assert ran.values("frame_shown") == [float(number) for number in range(FRAMES)]
    assert ran.values("media_end") == [FRAMES] and ran.values("frames_decoded")[-1] == FRAMES
    # The last report is at most four packets short.
    sent = ran.values("packets_sent")[-1]
    assert ran.found.received_packets is not None and abs(ran.found.received_packets - sent) <= 4
    log = (tmp_path / "player" / "stderr.log").read_text()
    assert "SND=SECURED RCV=SECURED" in log


@needs_ffmpeg
@needs_srt
def test_libsrt_refuses_another_passphrase(tmp_path: Path, clip: Path) -> None:
    setup = flow(tmp_path, "srt-libsrt", clip, encryption="aes-128", receiver_key="other")
    ran = run(setup, until=lambda _, player: player is not None)
    assert (ran.server, ran.player) == (0, 1)
    (why,) = ran.reasons("error")
    assert why.startswith("srt-live-transmit received nothing") and "Incorrect passphrase" in why
    assert ran.reasons("connection_failed").count("no receiver connected") == 1


@needs_ffmpeg
@needs_rist
def test_librist_delivers_an_encrypted_clip(tmp_path: Path, clip: Path) -> None:
    ran = run(flow(tmp_path, "rist-librist", clip, latency="200 ms", encryption="aes-128"), until=both)
    assert (ran.server, ran.player, ran.found.faults) == (0, 0, [])
    assert ran.values("frame_shown") == [float(number) for number in range(FRAMES)]
    assert ran.values("frames_decoded")[-1] == FRAMES and ran.values("unrepaired") == [0]
    assert ran.values("packets_received")[-1] > FRAMES


@needs_ffmpeg
@needs_rist
def test_librist_with_another_secret_receives_nothing(tmp_path: Path, clip: Path) -> None:
    setup = flow(tmp_path, "rist-librist", clip, encryption="aes-128", receiver_key="other")
    waits = time.monotonic() + 2
    ran = run(setup, until=lambda _server, _player: time.monotonic() > waits)
    assert (ran.server, ran.player) == (0, 0)
    # Its sender accepts such a receiver now and then, which can decrypt nothing.
    assert "no sender was there" in ran.reasons("connection_failed")
    assert ran.values("frame_shown") == []


@needs_ffmpeg
@needs_srt
def test_a_source_that_cannot_be_read_ends_the_sender(tmp_path: Path) -> None:
    broken = tmp_path / "clip.mp4"
    broken.write_bytes(b"no clip" * 1000)
    ran = run(flow(tmp_path, "srt-libsrt", broken), until=lambda server, _: server is not None)
    assert ran.server == 1
    assert ran.reasons("error")[0] == "ffmpeg ended with status 1"


@needs_srt
def test_a_port_that_is_taken_is_said_by_libsrt(tmp_path: Path, clip: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        setup = flow(tmp_path, "srt-libsrt", clip, port=other.getsockname()[1])
        serving, _ = adapter_for(setup).processes(setup)
        with started(setup, serving) as server:
            assert server.wait(20) == 1
        assert "srt-live-transmit ended" in (tmp_path / "server" / "stderr.log").read_text()
