"""nginx to GStreamer or ffplay: what is asked of the programs, what is read of what they leave, and what they
say when it cannot be done. nginx and the players are the real ones, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu.process import furnish
from streamgauge.errors import CannotRunError
from streamgauge.scenario import from_text
from streamgauge.systems.adapter import ACTIONS, ENDS, PROGRAMS, Clock, FlowSetup
from streamgauge.systems.adapters import adapter_for, check_programs
from streamgauge.systems.nginx import ACCESS_LOG, NGINX, SIGQUIT
from streamgauge.systems.nginx_http import NginxHttp
from streamgauge.systems.scripted import SYSTEM_PYTHON

sys.path.insert(0, str(PROGRAMS))
from ffplay_player import Watch
from player_line import Events

needs_nginx = pytest.mark.skipif(not Path(NGINX).exists(), reason="no nginx")
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffplay") is None, reason="no ffplay")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that anybody may look into: root's nginx serves as another user."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def flow(
    folder: Path, port: int = 6000, *, player: str = "gstreamer", media: Path | None = None
) -> FlowSetup:
    times: dict[str, Any] = {"plan": {"start": 0}, "trial": {"duration": 10**9}}
    return FlowSetup(
        name="v",
        index=0,
        system="nginx-http",
        parameters={"player": player},
        media=media or folder / "clip.mp4",
        server_ip="127.0.0.1",
        player_ip="127.0.0.1",
        port=port,
        folder=folder,
        **times,
    )


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(setup: FlowSetup, side: str, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A side's process as the sandbox would start it, but here; killed at the end with what it started.
    `command` instead of its own, if it is given."""
    (spec,) = (one for one in adapter_for(setup).processes(setup) if one.side == side)
    furnish(setup, spec, None)
    out = setup.out(spec.side)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(out),
        "XDG_RUNTIME_DIR": str(out),
        "TMPDIR": str(out),
    }
    popen = subprocess.Popen(
        command or spec.command,
        cwd=out,
        env={**environment, **setup.variables(spec.side), **spec.environment},
        stdin=subprocess.PIPE if spec.control else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield popen
    finally:
        if popen.poll() is None:
            os.killpg(popen.pid, signal.SIGKILL)
        popen.communicate()


def answers(port: int) -> bool:
    for _ in range(100):
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.05)
    return False


def test_its_players_differ_in_what_can_be_done_to_them() -> None:
    adapter = NginxHttp()
    assert adapter.actions({"player": "gstreamer"}) == ACTIONS
    assert adapter.actions({"player": "ffplay"}) == ENDS
    text = """
id: test/held
title: A download, held
path: {{down: {{rate: 1 Mbit/s, queue: droptail 10 packets}}}}
flows:
  v:
    {{role: subject, system: nginx-http, parameters: {{player: {player}}}, clip: carphone-200k,
    events: [{{at: 1 s, do: pause}}]}}
until: {{time: 5 s}}
modes: [emu]
"""
    for player, refused in (("gstreamer", False), ("ffplay", True)):
        (scenario,) = from_text(text.format(player=player))
        why = scenario.unsupported("emu")
        assert ("cannot pause in emu" in str(why)) is refused, why


def test_a_missing_program_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check_programs(flow(tmp_path))  # those of the distribution are named by their paths
    with pytest.raises(
        CannotRunError, match=r"^flow v: ffplay is missing; install it .*apt-get install ffmpeg"
    ):
        check_programs(flow(tmp_path, player="ffplay"))
    lacks = [
        program
        if program.name != NGINX
        else type(program)(**{**vars(program), "name": str(tmp_path / "nginx")})
        for program in NginxHttp.programs
    ]
    monkeypatch.setattr(NginxHttp, "programs", lacks)
    with pytest.raises(CannotRunError, match=r"^flow v: .*nginx is missing; .*apt-get install nginx-light"):
        check_programs(flow(tmp_path))


@needs_nginx
def test_a_port_that_is_taken_is_said_by_nginx(tmp_path: Path) -> None:
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with started(flow(tmp_path, other.getsockname()[1]), "server") as nginx:
            assert nginx.wait(timeout=30) == 1
            assert nginx.stderr is not None
            assert "Address already in use" in nginx.stderr.read()


@needs_nginx
@pytest.mark.parametrize(("range_of", "status", "length"), [(None, 200, 5000), ("bytes=1000-", 206, 4000)])
def test_nginx_serves_the_clip_and_logs_it(
    open_folder: Path, range_of: str | None, status: int, length: int
) -> None:
    media = open_folder / "some clip's.mp4"
    media.write_bytes(bytes(range(250)) * 20)
    setup = flow(open_folder, free_port(), media=media)
    with started(setup, "server") as server:
        assert answers(setup.port)
        with closing(socket.create_connection(("127.0.0.1", setup.port), timeout=10)) as asked:
            for _ in range(2):  # on one connection, kept alive
                more = f"Range: {range_of}\r\n" if range_of else ""
                asked.sendall(f"GET /clip.mp4 HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
                head, _, body = asked.recv(65_536).partition(b"\r\n\r\n")
                while len(body) < length:
                    body += asked.recv(65_536)
                assert head.startswith(f"HTTP/1.1 {status} ".encode())
                assert body == media.read_bytes()[-length:]
        os.killpg(server.pid, SIGQUIT)
        assert server.wait(timeout=10) == 0
    found = NginxHttp().collect(setup, clock())
    assert found.faults == []
    sent = [one for one in found.events if one["name"] == "response_sent"]
    assert [one["unit"] for one in sent] == ["B", "B"] and all(one["value"] > length for one in sent)
    asked_for = f", {range_of}" if range_of else ""
    assert sent[1]["reason"].startswith(
        f"{status} to GET /clip.mp4 HTTP/1.1{asked_for}: whole; number 2 on con"
    )


def clock() -> Clock:
    now, wall = time.monotonic_ns(), time.time_ns()
    return Clock(t0_monotonic_ns=now, t0_realtime_ns=wall, started={}, ended_monotonic_ns=now + 10**9)


def test_times_of_the_log_are_the_trials(tmp_path: Path) -> None:
    setup = flow(tmp_path)
    setup.out("server").mkdir(parents=True)
    line = {
        "t": 1000.5,
        "status": 200,
        "bytes": 7,
        "request": "GET /clip.mp4 HTTP/1.1",
        "range": "",
        "whole": "",
    }
    log = setup.out("server") / ACCESS_LOG
    log.write_text(json.dumps(line | {"connection": 3, "on_connection": 1}) + '\n{"t":1')
    times = Clock(t0_monotonic_ns=7_000, t0_realtime_ns=1000 * 10**9, started={}, ended_monotonic_ns=10**12)
    found = NginxHttp().collect(setup, times)
    assert found.faults == []
    (sent,) = found.events
    assert (sent["t_monotonic_ns"], sent["value"]) == (500_007_000, 7.0)
    assert sent["reason"] == "200 to GET /clip.mp4 HTTP/1.1: cut off; number 1 on connection 3"
    log.write_text('{"t": "soon"}\n')
    found = NginxHttp().collect(setup, times)
    assert found.faults == ["v-server-access.log:1: not a line of nginx's as we have it written"]


# --- players ---


@needs_nginx
@needs_ffmpeg
@pytest.mark.parametrize("player", ["ffplay", "gstreamer"])
@pytest.mark.parametrize(
    ("media", "says"),
    [(None, "404"), (b"no MP4 at all" * 100, "")],
    ids=["no file", "unreadable"],
)
def test_what_a_player_cannot_play_it_says(
    open_folder: Path, player: str, media: bytes | None, says: str
) -> None:
    setup = flow(open_folder, free_port(), player=player)
    if media is not None:
        (open_folder / "clip.mp4").write_bytes(media)
    if player == "gstreamer" and not gstreamer():
        pytest.skip("no GStreamer")
    with started(setup, "server"):
        assert answers(setup.port)
        with started(setup, "player") as played:
            begin(played)
            last = last_words(played)
            assert says in last or "Not Found" in last
    found = NginxHttp().collect(setup, clock())
    assert [one["reason"] for one in found.events if one["name"] == "error"] == [last]


def begin(played: subprocess.Popen[str]) -> None:
    """Says that its flow starts, to a player that waits for it."""
    if played.stdin is not None:
        played.stdin.write('{"cmd":"start","start_monotonic_ns":0}\n')
        played.stdin.flush()


def last_words(played: subprocess.Popen[str]) -> str:
    """Of a player that fails."""
    assert played.wait(timeout=60) == 1
    assert played.stderr is not None
    return played.stderr.read().splitlines()[-1]


@needs_ffmpeg
@pytest.mark.parametrize("player", ["ffplay", "gstreamer"])
def test_a_server_that_dies_is_no_end_of_the_media(open_folder: Path, player: str) -> None:
    if player == "gstreamer" and not gstreamer():
        pytest.skip("no GStreamer")
    whole = small_clip(open_folder / "clip.mp4")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        setup = flow(open_folder, server.getsockname()[1], player=player)
        with started(setup, "player") as played:
            begin(played)
            server.settimeout(30)
            asked, _ = server.accept()
            with closing(asked):
                assert asked.recv(65_536).startswith(b"GET /clip.mp4 HTTP/1.1\r\n")
                asked.sendall(head_of(whole) + whole[: len(whole) // 2])
            server.close()
            last = last_words(played)
    found = NginxHttp().collect(setup, clock())
    assert [one["reason"] for one in found.events if one["name"] == "error"] == [last]
    assert not [one for one in found.events if one["name"] == "media_end"]


IMPATIENT = """
import sys
sys.path.insert(0, sys.argv[1])
import gst_http_player
class Impatient(gst_http_player.Player):
    def _source(self, playbin, source):
        source.set_property("timeout", 1)
        super()._source(playbin, source)
gst_http_player.Player = Impatient
sys.exit(gst_http_player.main())
"""
"""GStreamer's player, whose source waits 1 s where it would wait 15 s."""


@pytest.mark.parametrize(
    "sent",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 9999\r\n\r\n" + bytes(50)],
    ids=["no answer", "an answer that stops"],
)
def test_a_link_that_brings_no_picture_is_the_players_outcome(tmp_path: Path, sent: bytes) -> None:
    if not gstreamer():
        pytest.skip("no GStreamer")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        setup = flow(tmp_path, server.getsockname()[1])
        command = (SYSTEM_PYTHON, "-c", IMPATIENT, str(PROGRAMS))
        with started(setup, "player", *command) as played:
            begin(played)
            server.settimeout(30)
            asked, _ = server.accept()
            with closing(asked):
                asked.sendall(sent)
                # What it asks again waits with its connection among those that nobody accepts.
                assert played.wait(timeout=60) == 0
    names = [one["name"] for one in NginxHttp().collect(setup, clock()).events]
    assert names.count("given_up") == 1
    assert not {"error", "stall", "playout_start", "frame_shown", "media_end"} & set(names)


FAILING = """
import sys
import time
sys.path.insert(0, sys.argv[1])
import gst_http_player
from gi.repository import GLib, Gst
class Failing(gst_http_player.Player):
    def _source(self, playbin, source):
        source.set_property("timeout", 1)
        super()._source(playbin, source)
        GLib.timeout_add(50, self._break)
    def _break(self):
        if time.monotonic() - self.heard_s < 1.2 or not (self.shown or self.is_held):
            return True
        error = GLib.Error.new_literal(Gst.StreamError.quark(), "broken picture", Gst.StreamError.DECODE)
        self.pipeline.get_bus().post(Gst.Message.new_error(self.pipeline, error, ""))
        return False
gst_http_player.Player = Failing
sys.exit(gst_http_player.main())
"""
"""GStreamer's player, whose decoder fails when for 1.2 s nothing came, which for its source is long."""


@needs_ffmpeg
@pytest.mark.parametrize("is_held", [False, True], ids=["the whole file has come", "held"])
def test_an_error_is_one_of_the_trial_where_nothing_is_waited_for(tmp_path: Path, is_held: bool) -> None:
    if not gstreamer():
        pytest.skip("no GStreamer")
    whole = small_clip(tmp_path / "clip.mp4")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        setup = flow(tmp_path, server.getsockname()[1])
        command = (SYSTEM_PYTHON, "-c", FAILING, str(PROGRAMS))
        with started(setup, "player", *command) as played:
            begin(played)
            server.settimeout(30)
            asked, _ = server.accept()
            if is_held:
                assert played.stdin is not None
                played.stdin.write('{"cmd":"pause"}\n')
                played.stdin.flush()
            with closing(asked):
                asked.sendall(head_of(whole) + whole)
                assert last_words(played) == "broken picture"
    events = NginxHttp().collect(setup, clock()).events
    assert [one["reason"] for one in events if one["name"] == "error"] == ["broken picture"]
    names = {one["name"] for one in events}
    assert ("frame_shown" in names) != is_held
    assert not {"given_up", "media_end"} & names


def small_clip(file: Path) -> bytes:
    """Six seconds of a moving picture, made there."""
    made = ["ffmpeg", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=176x144:rate=25", "-t", "6"]
    made += ["-pix_fmt", "yuv420p", "-b:v", "400k", "-movflags", "+faststart", str(file)]
    subprocess.run(made, check=True)
    return file.read_bytes()


def head_of(whole: bytes) -> bytes:
    """What a server says before it."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: {len(whole)}\r\n\r\n"
    return head.encode()


def gstreamer() -> bool:
    program = next(one for one in NginxHttp.programs if one.id == "gstreamer.http")
    done = subprocess.run([program.name, *program.probe], capture_output=True, check=False)
    return done.returncode == 0


def said_by(
    lines: list[tuple[float, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Watch, Any]:
    """What is made of ffplay's lines, each with its time in s."""
    file = tmp_path / "events.jsonl"
    monkeypatch.setenv("STREAMGAUGE_EVENTS", str(file))
    watch = Watch(Events(), 0.0)
    for at_s, line in lines:
        watch.line(line.encode(), at_s)

    def told(name: str) -> list[tuple[float, float | None]]:
        events = [json.loads(line) for line in file.read_text().splitlines()]
        return [
            (round(one["t_monotonic_ns"] / 1e9, 3), one["value"]) for one in events if one["name"] == name
        ]

    return watch, told


def status(clock_s: float, waiting: int = 40) -> str:
    return f"[info]  {clock_s:7.2f} M-V:  0.000 fd=   3 aq=    2KB vq=  {waiting:3d}KB sq=    0B f=0/0   "


def playing(begin: float, end: float, behind: float, waiting: int = 40) -> list[tuple[float, str]]:
    """Status lines at 30 a second, of a clock that is `behind`."""
    count = round((end - begin) * 30)
    return [(begin + i / 30, status(begin + i / 30 - behind, waiting)) for i in range(count)]


HEAD = [(0.2, "[info]   Duration: 00:00:20.00, start: 0.000000, bitrate: 559 kb/s"),
        (0.3, "[info]     nan M-V:    nan fd=   0 aq=    0KB vq=   28KB sq=    0B f=0/0   ")]  # fmt: skip


def test_ffplays_clock_set_back_is_a_stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [*HEAD, *playing(0.5, 5, 0.5), *playing(5, 8, 3.0), *playing(8, 10, 3.08), *playing(10, 11, 3.0)]
    watch, told = said_by(lines, tmp_path, monkeypatch)
    assert told("playout_start") == [(0.5, 0.5)]
    ((stalled_at_s, _),) = told("stall")
    assert stalled_at_s == pytest.approx(2.5, abs=0.02)
    ((at_s, lasted_s),) = told("resume")
    # Lateness of less than what ffplay makes up for is none.
    assert at_s == 5.0 and lasted_s == pytest.approx(2.5, abs=0.02)
    assert told("stall_count")[0][1] == 0 and told("stall_count")[-1][1] == 1
    assert told("buffer_bytes")[0][1] == 42_000 and told("frames_dropped")[0][1] == 3
    assert watch.why_not_whole(0) == "ffplay ended at 8.0 s of 20.0 s"


def test_delays_too_short_to_be_seen_do_not_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [one for i in range(8) for one in playing(0.5 + 60 * i, 60.5 + 60 * i, 0.5 + 0.03 * i)]
    _, told = said_by([*HEAD, *lines], tmp_path, monkeypatch)
    assert told("stall") == [] and told("stall_count")[-1][1] == 0


def test_a_stall_that_goes_on_is_told_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, told = said_by([*HEAD, *playing(0.5, 5, 0.5), *playing(5, 8, 0.5, 0)], tmp_path, monkeypatch)
    watch.over(8.0)
    # Three pictures were decoded.
    assert told("stall") == [(5.12, None)] and told("resume") == []


def test_a_queue_that_is_short_for_a_moment_is_no_stall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, told = said_by([*HEAD, *playing(0.5, 5, 0.5), *playing(5, 5.2, 0.5, 0)], tmp_path, monkeypatch)
    watch.over(5.2)
    assert told("stall") == []


def test_how_ffplay_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [(0.1, "[http @ 0x7f] [error] HTTP error 404 Not Found")]
    watch, _ = said_by(refused, tmp_path, monkeypatch)
    assert watch.why_not_whole(0) == "ffplay showed nothing (HTTP error 404 Not Found)"
    watch, _ = said_by([*HEAD, *playing(0.5, 20.4, 0.5)], tmp_path, monkeypatch)
    assert watch.why_not_whole(0) == ""
    assert watch.why_not_whole(-11) == "ffplay ended with status -11"
