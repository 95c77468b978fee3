"""nginx to players that adapt: what is asked of the programs, what is read of what they leave, and what they
say when it cannot be done. nginx is the real one, on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamgauge.emu.process import furnish
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario import from_text
from streamgauge.systems import javascript, nginx
from streamgauge.systems.adapter import ACTIONS, ENDS, PROGRAMS, Clock, FlowSetup, Program
from streamgauge.systems.adapters import adapter_for, check_programs
from streamgauge.systems.javascript import LIBRARIES
from streamgauge.systems.nginx_dash import PLAYERS, SYSTEM, NginxDash
from streamgauge.systems.processes import check_processes

sys.path.insert(0, str(PROGRAMS))
import ffmpeg_dash_player
import mpv_dash_player
import vlc_dash_player
from player_line import Events

needs_nginx = pytest.mark.skipif(not Path(nginx.NGINX).exists(), reason="no nginx")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")


def flow(folder: Path, port: int = 6000, **parameters: str) -> FlowSetup:
    times: dict[str, Any] = {"plan": {"start": 0}, "trial": {"duration": 10**9}}
    media = folder / "media"
    media.mkdir(exist_ok=True)
    rows = [
        {"id": str(number), "kind": "video", "name": f"{rate}k", "bit_rate_bps": rate * 1000}
        for number, rate in enumerate((100, 500))
    ]
    rows.append({"id": "2", "kind": "audio", "name": "audio", "bit_rate_bps": 48_000})
    (media / "presentation.json").write_text(json.dumps({"representations": rows}))
    return FlowSetup(
        name="v",
        index=0,
        system="nginx-dash",
        parameters={"player": "dashjs", **parameters},
        media=media,
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


def clock(t0_s: float = 1000.0) -> Clock:
    return Clock(
        t0_monotonic_ns=7_000, t0_realtime_ns=round(t0_s * 1e9), started={}, ended_monotonic_ns=10**12
    )


# --- what is asked of the programs ---


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("http", ["1.1", "2", "3"])
def test_processes_make_sense(tmp_path: Path, player: str, http: str) -> None:
    setup = flow(tmp_path, player=player, http=http)
    made = adapter_for(setup).processes(setup)
    # Of a browser's player the JavaScript need not be here.
    check_processes([replace(one, helpers=one.helpers[:1]) for one in made])
    *before, server, playing = made
    assert [one.name for one in before] == (["certificate"] if http != "1.1" else [])
    assert server.side == "server" and server.ready == "port" and playing.side == "player"
    settings = playing.files["settings.json"]
    assert isinstance(settings, dict)
    scheme = "http" if http == "1.1" else "https"
    assert settings["url"]["dash"] == f"{scheme}://127.0.0.1:6000/manifest.mpd"
    forced = "--origin-to-force-quic-on=127.0.0.1:6000" in settings["flags"]
    assert forced == (http == "3")
    assert NginxDash().actions({"player": player}) == (ACTIONS if PLAYERS[player].holds else ENDS)


def test_what_a_scenario_says_reaches_the_player(tmp_path: Path) -> None:
    told = {
        "rule": "bola",
        "buffer": "20 s",
        "initial": "300 kbit/s",
        "safety_factor": "0.8",
        "cmcd": "header",
    }
    setup = flow(tmp_path, **told)
    settings = adapter_for(setup).processes(setup)[-1].files["settings.json"]
    assert isinstance(settings, dict)
    wanted = {"rule": "bola", "buffer_s": 20.0, "initial_bps": 300_000, "safety_factor": 0.8}
    assert wanted | {"cmcd": "header"} | settings == settings


TEXT = """
id: test/adapts
title: Adaptive streaming
path: {{down: {{rate: 1 Mbit/s, queue: droptail 10 packets}}}}
flows:
  v: {{role: subject, system: nginx-dash, clip: {clip}, parameters: {{{parameters}}}}}
until: {{time: 5 s}}
modes: [emu]
"""
LADDER = "{source: testsrc2, ladder: [100k, 200k]}"


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("player: vlcc", "'vlcc' is not one of dashjs, hlsjs, shaka, gstreamer, vlc, mpv, ffmpeg"),
        ("player: hlsjs, rule: bola", "player hlsjs has no rule 'bola', which dashjs has; expected one of"),
        ("player: mpv, http: 2", "player mpv does not speak HTTP/2; expected 1.1 at most"),
        ("player: gstreamer, http: 3", "player gstreamer does not speak HTTP/3"),
        ("http: 1", "'1' is not one of 1.1, 2, 3"),
        ("player: ffmpeg, buffer: 10 s", "player ffmpeg cannot be told 'buffer'"),
        ("safety_factor: 3", "3.0 is more than 2"),
        ("cmcd: yes", "is not one of off, query, header"),
        ("bufer: 10 s", "bufer"),
    ],
)
def test_what_a_player_cannot_do_is_refused_when_the_scenario_is_read(parameters: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(says)) as caught:
        from_text(TEXT.format(clip=LADDER, parameters=parameters))
    assert "parameters" in str(caught.value)


@pytest.mark.parametrize("parameters", ["http: 1.1", "http: 2", "http: '3'", "cmcd: query", "rule: l2a"])
@pytest.mark.parametrize("clip", [LADDER, "testsrc2-200k"])
def test_what_it_can_do_is_taken(parameters: str, clip: str) -> None:
    (scenario,) = from_text(TEXT.format(clip=clip, parameters=parameters))
    assert scenario.unsupported("emu") is None and SYSTEM.ladders


# --- what is missing ---


def test_a_missing_player_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str) -> None:
        def there(self: Program, path: str | None = None) -> str | None:
            return None if name in self.name else "/there"

        monkeypatch.setattr(Program, "find", there)

    library = LIBRARIES["shaka"].path.name
    for lacks, parameters, says in (
        ("chromium", {}, r"chromium is missing; install it .*apt-get install chromium"),
        (
            library,
            {"player": "shaka"},
            rf"{re.escape(library)} is missing; .*-m streamgauge.systems.javascript",
        ),
        ("vlc", {"player": "vlc"}, r"vlc is missing; install it .*apt-get install vlc-bin vlc-plugin-base"),
        ("aioquic", {"http": "3"}, r"aioquic is missing; `.* -m pip install aioquic` installs it"),
        ("openssl", {"http": "2"}, r"openssl is missing; install it"),
    ):
        lacking(lacks)
        with pytest.raises(CannotRunError, match=rf"^flow v: .*{says}") as caught:
            check_programs(flow(tmp_path, **parameters))
        assert caught.value.exit_status == 4


def test_others_need_nothing_of_what_a_player_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "find", lambda self, path=None: None if "js" in self.name else "/there")
    check_programs(flow(tmp_path, player="gstreamer"))


def test_players_are_pinned_by_their_bytes() -> None:
    assert set(LIBRARIES) == {name for name, player in PLAYERS.items() if player.library}
    for library in LIBRARIES.values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", library.version)
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", library.integrity)


NPM = """#!/bin/sh
for one; do case $one in --pack-destination=*) cd "${one#*=}" ;; esac; done
DO
"""


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo no such package >&2; exit 1", r"npm cannot fetch hls\.js@.* \(no such package\); see whether"),
        ("echo other > x.tgz", r"is not what was pinned \(sha512-.*\); it is not used"),
        (None, r"npm is missing, by which hls\.js@.* is fetched: install it"),
    ],
)
def test_what_cannot_be_fetched_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str | None, says: str
) -> None:
    if does is not None:
        (tmp_path / "npm").write_text(NPM.replace("DO", does))
        (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if does else str(tmp_path))
    if does is None and shutil.which("npm"):
        pytest.skip("npm is everywhere")
    monkeypatch.setenv("STREAMGAUGE_PLAYERS", str(tmp_path / "players"))
    with pytest.raises(CannotRunError, match=says):
        javascript.fetch(LIBRARIES["hlsjs"])
    assert not list((tmp_path / "players").glob("*"))


def test_what_is_there_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_PLAYERS", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    LIBRARIES["hlsjs"].path.touch()
    assert not javascript.fetch(LIBRARIES["hlsjs"])


# --- what the server leaves ---

LINE = {
    "t": 1000.5, "took": 0.2, "status": 200, "bytes": 7, "request": "GET /segment-1-3.m4s HTTP/1.1",
    "range": "", "whole": "OK", "connection": 3, "on_connection": 1, "http": "HTTP/1.1",
    "cmcd_object": "", "cmcd_request": "", "cmcd_session": "", "cmcd_status": "",
}  # fmt: skip


def collected(setup: FlowSetup, *lines: dict[str, Any] | str) -> Any:
    log = setup.out("server", "" if setup.parameters.get("http", "1.1") == "1.1" else "nginx")
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines)
    (log / nginx.ACCESS_LOG).write_text(text)
    return NginxDash().collect(setup, clock())


def named(found: Any, name: str) -> list[tuple[float, float | None]]:
    return [(one["t_monotonic_ns"] / 1e9, one["value"]) for one in found.events if one["name"] == name]


def test_which_level_was_fetched_the_log_tells_of_players_that_do_not(tmp_path: Path) -> None:
    other = LINE | {"t": 1002.0, "request": "GET /segment-0-4.m4s?x=1 HTTP/1.1"}
    sound = LINE | {"t": 1003.0, "request": "GET /segment-2-4.m4s HTTP/1.1"}
    lines = (LINE, LINE | {"t": 1001.0}, other, sound, other | {"t": 1004.0}, '{"t":10')
    found = collected(flow(tmp_path, player="vlc"), *lines)
    assert found.faults == []
    assert named(found, "level_changed") == [
        (pytest.approx(0.3, abs=1e-4), 500_000),
        (pytest.approx(1.8, abs=1e-4), 100_000),
    ]
    assert len(named(found, "response_sent")) == 5
    assert named(collected(flow(tmp_path, player="dashjs"), *lines), "level_changed") == []


@pytest.mark.parametrize("way", ["query", "header"])
def test_what_players_say_by_cmcd(tmp_path: Path, way: str) -> None:
    if way == "query":
        said = "CMCD=bl%3D4200%2Cbr%3D502%2Cbs%2Cmtp%3D900%2Cot%3Dv%2Csid%3D%22a%22"
        line = LINE | {"request": f"GET /segment-1-3.m4s?{said} HTTP/1.1"}
    else:
        line = LINE | {"cmcd_object": "br=502,ot=v", "cmcd_request": "bl=4200,mtp=900", "cmcd_status": "bs"}
    found = collected(flow(tmp_path), line)
    assert found.faults == []
    at = pytest.approx(0.3, abs=1e-4)
    assert named(found, "cmcd_buffer") == [(at, 4.2)]
    assert named(found, "cmcd_throughput") == [(at, 900_000)]
    assert named(found, "cmcd_level") == [(at, 502_000)]
    assert named(found, "cmcd_starved") == [(at, None)]
    (whole,) = (one["reason"] for one in found.events if one["name"] == "cmcd")
    assert {"bl=4200", "br=502", "bs", "mtp=900", "ot=v"} <= set(whole.split(","))


def test_cmcd_of_sound_and_of_nonsense_gives_no_numbers(tmp_path: Path) -> None:
    said = ("bl%3D4200%2Cot%3Da", "bl%3D-3%2Cbr%3D%22x%22%2Cot%3Dv", "%2C%2C%3D%2C", "")
    lines = [LINE | {"request": f"GET /segment-1-3.m4s?CMCD={one} HTTP/1.1"} for one in said]
    found = collected(flow(tmp_path), *lines)
    assert found.faults == []
    assert not {"cmcd_buffer", "cmcd_level"} & {one["name"] for one in found.events}


@pytest.mark.parametrize(
    "line", ['{"t": "soon"}\n', "[]\n", "no JSON\n", json.dumps(LINE | {"took": "-"}) + "\n"]
)
def test_a_line_that_nginx_does_not_write_is_a_fault(tmp_path: Path, line: str) -> None:
    for http, name in (("1.1", ""), ("2", "-nginx")):
        found = collected(flow(tmp_path, http=http), LINE, line, LINE)
        assert found.faults == [f"v-server{name}-access.log:2: not a line of nginx's as we have it written"]


# --- the servers themselves ---


@needs_nginx
@needs_openssl
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_nginx_serves_the_presentation_to_other_origins(http: str) -> None:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)  # root's nginx serves as another user
        setup = flow(Path(made), free_port(), http=http)
        assert setup.media is not None
        (setup.media / "segment-1-3.m4s").write_bytes(b"x" * 5000)
        *before, server, _ = adapter_for(setup).processes(setup)
        for one in (*before, server):
            furnish(setup, one, None)
        for one in before:
            out = setup.out("server", one.name)
            environment = {**os.environ, **setup.variables("server", one.name)}
            subprocess.run(one.command, cwd=out, env=environment, check=True)
        if http == "2":
            spki = (setup.shared("server") / "spki").read_text()
            assert re.fullmatch(r"[A-Za-z0-9+/]{43}=", spki)
        running = subprocess.Popen(
            server.command, cwd=setup.out("server", server.name), start_new_session=True
        )
        try:
            head, body = fetched(setup.port, has_tls=http == "2")
        finally:
            os.killpg(running.pid, signal.SIGQUIT)
            assert running.wait(timeout=10) == 0
        assert body == b"x" * 5000
        for line in ("Access-Control-Allow-Origin: *", "Timing-Allow-Origin: *", "Content-Type: video/mp4"):
            assert line in head
        found = NginxDash().collect(setup, clock(time.time()))
    assert found.faults == []
    (sent,) = (one for one in found.events if one["name"] == "response_sent")
    assert (
        sent["value"] > 5000 and "200 to GET /segment-1-3.m4s?CMCD=bl%3D100 HTTP/1.1: whole" in sent["reason"]
    )


def fetched(port: int, *, has_tls: bool) -> tuple[str, bytes]:
    for _ in range(100):
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    with closing(socket.create_connection(("127.0.0.1", port), timeout=10)) as plain:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        asked = context.wrap_socket(plain) if has_tls else plain
        asked.sendall(b"GET /segment-1-3.m4s?CMCD=bl%3D100 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        said = b""
        while more := asked.recv(65_536):
            said += more
    head, _, body = said.partition(b"\r\n\r\n")
    return head.decode(), body


# --- what players say ---


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    file = tmp_path / "events.jsonl"
    monkeypatch.setenv("STREAMGAUGE_EVENTS", str(file))

    def of(name: str) -> list[tuple[float, float | None]]:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        return [(round(one["t_monotonic_ns"] / 1e9, 3), one["value"]) for one in lines if one["name"] == name]

    return of


def changed(name: str, value: Any) -> bytes:
    return json.dumps({"event": "property-change", "name": name, "data": value}).encode()


def test_mpv_waits_for_its_cache(told: Any) -> None:
    watch = mpv_dash_player.Watch(Events(), 1.0)
    watch.line(changed("paused-for-cache", True), 1.5)  # before the first picture
    watch.line(changed("paused-for-cache", False), 1.9)
    watch.line(b'{"event":"playback-restart"}', 2.0)
    watch.line(b'{"event":"playback-re', 2.1)
    watch.line(b'{"error":"success","request_id":0}', 2.1)
    watch.line(changed("paused-for-cache", None), 2.2)
    watch.line(changed("demuxer-cache-duration", 3.25), 2.5)
    for begins, ends in ((4.0, 4.05), (5.0, 7.5)):
        watch.line(changed("paused-for-cache", True), begins)
        watch.line(changed("paused-for-cache", False), ends)
    watch.line(changed("paused-for-cache", True), 9.0)
    watch.over(9.05)
    watch.over(10.0)
    assert told("playout_start") == [(2.0, 1.0)] and told("buffer") == [(2.5, 3.25)]
    assert told("stall") == [(5.0, None), (9.0, None)] and told("resume") == [(7.5, 2.5)]


def test_vlc_stalls_while_no_picture_is_displayed(told: Any) -> None:
    watch = vlc_dash_player.Watch(Events(), 1.0)
    watch.status({}, 1.1)
    watch.status({"stats": None}, 1.2)
    shown, at_s = 0, 2.0
    for _ in range(10):
        shown, at_s = shown + 3, at_s + 0.1
        watch.status({"stats": {"displayedpictures": shown}, "position": 0.1, "length": 60}, at_s)
    for _ in range(20):
        at_s += 0.1
        watch.status({"stats": {"displayedpictures": shown}}, at_s)
    # One picture by itself is no end of it.
    for later_s, more in ((0.1, 1), (0.6, 1), (1.0, 2), (1.1, 3), (1.2, 5)):
        watch.status({"stats": {"displayedpictures": shown + more}}, at_s + later_s)
    assert told("playout_start") == [(2.1, 1.1)] and told("stall") == [(3.0, None)]
    ((_, lasted_s),) = told("resume")
    assert lasted_s == pytest.approx(3.0, abs=1e-6)
    assert told("position")[0][1] == 6.0


def test_ffmpeg_tells_what_it_decodes(told: Any) -> None:
    watch = ffmpeg_dash_player.Watch(Events(), 1.0)
    for line in ("frame=0", "out_time_us=N/A", "frame=25", "frame=x", "nonsense", "out_time_us=1000000"):
        watch.line(line + "\n", 2.0)
    assert told("playout_start") == [(2.0, 1.0)] and told("frames_decoded")[-1] == (2.0, 25)
    assert told("position") == [(2.0, 1.0)] and not watch.has_ended
    watch.line("progress=end\n", 3.0)
    assert watch.has_ended
