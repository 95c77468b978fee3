"""Every adapter, both ways: a short trial that is valid, and statistics that agree with the taps."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import Person, said, the_valid_one
from scenarios import FTP, PING, nginx_http, rtsp, scenario
from streamgauge.record import Record

TRANSPORTS = ["udp", "tcp"]
HTTP_PLAYERS = ["gstreamer", "ffplay"]
CONTROLS = ["reno", "cubic", "bbr"]

CROSS = (
    "  cross: {role: rival, traffic: cbr, from: router, parameters: {rate: 20 packets/s, size: 1000 B}, "
    "start: 2 s, stop: cross.start + 2 s}"
)
BURSTS = "{rate: 40 packets/s, size: 500 B, burst: 4 packets}"
COMMANDS = """
  http:
    role: subject
    system:
      server: >-
        sh -c 'curl -s -m 5 http://$STREAMGAUGE_PLAYER:9;
        exec python3 -u -m http.server --bind $STREAMGAUGE_SERVER --directory /usr/share/common-licenses
        $STREAMGAUGE_PORT'
      player: >-
        sh -c 'cd $STREAMGAUGE_OUT;
        while curl -sS -o part http://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/GPL-3 && mv part page; do
        echo "{\\"t_s\\": 1, \\"name\\": \\"fetched\\", \\"value\\": 1, \\"unit\\": \\"1\\"}"
        >> $STREAMGAUGE_EVENTS; sleep 0.5; done'
"""


def _scenarios() -> dict[str, str]:
    found = {}
    for transport in TRANSPORTS:
        found[f"gstreamer-{transport}"] = scenario(rtsp("gstreamer", transport) + "\n" + CROSS, until="7 s")
        found[f"ffmpeg-{transport}"] = scenario(rtsp("ffmpeg", transport))
        ours = f"{{role: subject, system: rtp, parameters: {{transport: {transport}}}, clip: carphone-200k}}"
        found[f"rtp-{transport}"] = scenario(f"  video: {ours}", until="5 s")
    for player in HTTP_PLAYERS:
        found[f"http-{player}"] = scenario(nginx_http(player), until="8 s")
    for control in CONTROLS:
        found[control] = scenario(FTP.replace("reno", control) + "\n" + PING, until="5 s")
    cbr = f"  cross: {{role: subject, traffic: cbr, parameters: {BURSTS}}}"
    found["bursts"] = scenario(cbr, until="4 s")
    found["commands"] = scenario(COMMANDS, until="5 s")
    return found


Get = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def valid(resident: Person) -> Get:
    """The valid trial of a scenario, by its name. All run side by side when the first is asked for.

    In the ordinary user's way not all, where root's way has tried each: a program that starts over one
    transport starts over the other, and a route's choice of congestion control is one line.
    """
    texts = _scenarios()
    if resident.way == "user" and os.geteuid() == 0:
        texts = {name: text for name, text in texts.items() if name not in ("cubic", "bbr")}
        texts = {name: text for name, text in texts.items() if not name.endswith("-tcp")}
    found = resident.trials_together(texts)

    def get(name: str) -> dict[str, Any]:
        if name not in found:
            pytest.skip("tried in root's way")
        return the_valid_one(found[name])

    return get


def _verdict(trial: dict[str, Any]) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((Path(trial["directory"]) / "trial.json").read_text())["validity"]
    return verdict


def _provenance(trial: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(trial["directory"]) / "provenance.json").read_text())
    return found


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rtsp_to_gstreamer(valid: Get, transport: str) -> None:
    trial = valid(f"gstreamer-{transport}")
    video = trial["flows"]["video"]
    assert video["received_packets"] > 60
    verdict = _verdict(trial)
    unit = "packets" if transport == "udp" else "bytes"
    assert verdict["measured"][f"player_{unit}_off.video"] <= verdict["bounds"][f"player_{unit}_off.video"]
    assert verdict["measured"]["cbr_packets.cross"] == pytest.approx(40, abs=2)
    if transport == "udp":
        # What the player's RTP session calls received is what the path delivered, less what it started with.
        assert said(trial, "total_packets_received")[-1] <= video["received_packets"]
    assert said(trial, "frames_rendered")[-1] > 25
    assert said(trial, "packets_sent")[-1] > 60


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rtsp_to_ffmpeg(valid: Get, transport: str) -> None:
    trial = valid(f"ffmpeg-{transport}")
    assert trial["flows"]["video"]["received_packets"] > 50
    assert said(trial, "frames_decoded")[-1] > 10


@pytest.mark.parametrize("player", HTTP_PLAYERS)
def test_nginx_to_a_player(valid: Get, player: str) -> None:
    trial = valid(f"http-{player}")
    video, verdict = trial["flows"]["video"], _verdict(trial)
    assert video["received_bytes"] > 60_000
    assert said(trial, "position")[-1] > 1 and 0 < said(trial, "playout_start")[0] < 8
    # One answer, cut off at the trial's end or whole; what nginx wrote the path did not yet carry whole.
    (sent,) = said(trial, "response_sent")
    assert sent > 60_000
    assert (Path(trial["directory"]) / "logs" / "video-server-access.log").stat().st_size
    assert video["startup_delay_s"] == pytest.approx(said(trial, "playout_start")[0])
    assert video["stall_count"] == len(said(trial, "stall"))
    if player == "gstreamer":
        assert verdict["measured"]["player_bytes_off.video"] <= verdict["bounds"]["player_bytes_off.video"]
        assert said(trial, "frames_rendered")[-1] > 25 and video["frames_shown"] > 25
    else:
        assert video["frames_shown"] is None  # it does not say


@pytest.mark.parametrize("control", CONTROLS)
def test_bulk_uses_the_congestion_control_asked_for(valid: Get, control: str) -> None:
    trial = valid(control)
    assert _provenance(trial)["systems"]["ftp"]["congestion_control_used"] == [control]
    assert trial["flows"]["ftp"]["received_bytes"] > 60_000
    # 16 KiB of window: never more than that on its way, so the queue holds no more either.
    assert trial["flows"]["ftp"]["queue_delay_max_s"] < 16_384 * 8 / 300_000 * 1.25
    assert trial["flows"]["probe"]["received_packets"] == pytest.approx(23, abs=3)


def test_cbr_in_bursts_is_sent_by_our_own_sender(valid: Get) -> None:
    assert valid("bursts")["flows"]["cross"]["sent_packets"] == pytest.approx(160, abs=6)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_our_own_rtp(valid: Get, transport: str) -> None:
    assert valid(f"rtp-{transport}")["flows"]["video"]["received_bytes"] > 60_000


def test_any_command(valid: Get) -> None:
    trial = valid("commands")
    assert trial["flows"]["http"]["received_bytes"] > 35_000
    assert said(trial, "fetched")
    assert (Path(trial["directory"]) / "logs" / "http-player-page").is_file()
    packets = Record.open(Path(trial["directory"])).packets
    # The server's own, which was refused before the trial, is none of its connections.
    found = sorted(packets.filter(flow="http")["connection"].drop_nulls().unique())
    assert found == list(range(len(found))) and found


def test_a_command_that_cannot_says_so(person: Person) -> None:
    flows = "  x: {role: subject, system: {server: 'sh -c \"echo no codec >&2; exit 127\"', player: 'true'}}"
    done = person.run(
        "run", person.scenario(scenario(flows)), "--mode", "emu", "--seed", "1", "--out", str(person.out)
    )
    assert done.returncode == 4, done.stderr
    assert "server of flow x cannot do what the scenario asks" in done.stderr.replace("\n", " ")
    assert "no codec" in done.stderr
