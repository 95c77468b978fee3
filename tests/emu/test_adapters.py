"""Every adapter, both ways: a short trial that is valid, and statistics that agree with the taps."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from driving import Person, the_valid_one
from scenarios import FTP, PING, rtsp, scenario
from streamgauge.record import Record

TRANSPORTS = ["udp", "tcp"]


def _once_for_a_user(person: Person, transport: str) -> None:
    """A program that starts in the ordinary user's way over one transport starts over the other."""
    if transport != TRANSPORTS[0] and person.way == "user" and os.geteuid() == 0:
        pytest.skip("both transports are tried in root's way")


def _verdict(trial: dict[str, Any]) -> dict[str, Any]:
    verdict: dict[str, Any] = json.loads((Path(trial["directory"]) / "trial.json").read_text())["validity"]
    return verdict


def _provenance(trial: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(trial["directory"]) / "provenance.json").read_text())
    return found


def _events(trial: dict[str, Any], name: str) -> list[float]:
    events = Record.open(Path(trial["directory"])).events
    if hasattr(events, "collect"):
        events = events.collect()
    return [row["value"] for row in events.iter_rows(named=True) if row["name"] == name]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rtsp_to_gstreamer(person: Person, transport: str) -> None:
    _once_for_a_user(person, transport)
    cross = (
        "  cross: {role: rival, traffic: cbr, from: router, parameters: {rate: 20 packets/s, size: 1000 B}, "
    )
    flows = rtsp("gstreamer", transport) + "\n" + cross + "start: 2 s, stop: cross.start + 2 s}"
    trial = the_valid_one(person.trials(scenario(flows, until="7 s")))
    video = trial["flows"]["video"]
    assert video["received_packets"] > 60
    verdict = _verdict(trial)
    unit = "packets" if transport == "udp" else "bytes"
    assert verdict["measured"][f"player_{unit}_off.video"] <= verdict["bounds"][f"player_{unit}_off.video"]
    assert verdict["measured"]["cbr_packets.cross"] == pytest.approx(40, abs=2)
    if transport == "udp":
        # What the player's RTP session calls received is what the path delivered, less what it started with.
        assert _events(trial, "total_packets_received")[-1] <= video["received_packets"]
    assert _events(trial, "frames_rendered")[-1] > 25
    assert _events(trial, "packets_sent")[-1] > 60


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_rtsp_to_ffmpeg(person: Person, transport: str) -> None:
    _once_for_a_user(person, transport)
    trial = the_valid_one(person.trials(scenario(rtsp("ffmpeg", transport))))
    assert trial["flows"]["video"]["received_packets"] > 50
    assert _events(trial, "frames_decoded")[-1] > 10


@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
def test_bulk_uses_the_congestion_control_asked_for(person: Person, control: str) -> None:
    if control != "reno" and person.way == "user":
        pytest.skip("the route's choice is tried once in the ordinary user's way")
    flows = FTP.replace("reno", control) + "\n" + PING
    trial = the_valid_one(person.trials(scenario(flows, until="5 s")))
    assert _provenance(trial)["systems"]["ftp"]["congestion_control_used"] == [control]
    assert trial["flows"]["ftp"]["received_bytes"] > 60_000
    # 16 KiB of window: never more than that on its way, so the queue holds no more either.
    assert trial["flows"]["ftp"]["queue_delay_max_s"] < 16_384 * 8 / 300_000 * 1.25
    assert trial["flows"]["probe"]["received_packets"] == pytest.approx(23, abs=3)


def test_cbr_in_bursts_is_sent_by_our_own_sender(person: Person) -> None:
    settings = "{rate: 40 packets/s, size: 500 B, burst: 4 packets}"
    flows = f"  cross: {{role: subject, traffic: cbr, parameters: {settings}}}"
    trial = the_valid_one(person.trials(scenario(flows, until="4 s")))
    assert trial["flows"]["cross"]["sent_packets"] == pytest.approx(160, abs=6)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_our_own_rtp(person: Person, transport: str) -> None:
    _once_for_a_user(person, transport)
    settings = f"{{transport: {transport}}}"
    flows = f"  video: {{role: subject, system: rtp, parameters: {settings}, clip: carphone-200k}}"
    trial = the_valid_one(person.trials(scenario(flows, until="5 s")))
    assert trial["flows"]["video"]["received_bytes"] > 60_000


COMMANDS = """
  http:
    role: subject
    system:
      server: >-
        python3 -u -m http.server --bind $STREAMGAUGE_SERVER --directory /usr/share/common-licenses
        $STREAMGAUGE_PORT
      player: >-
        sh -c 'while curl -sS -o $STREAMGAUGE_OUT/page http://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/GPL-3; do
        echo "{\\"t_s\\": 1, \\"name\\": \\"fetched\\", \\"value\\": 1, \\"unit\\": \\"1\\"}"
        >> $STREAMGAUGE_EVENTS; sleep 0.5; done'
"""


def test_any_command(person: Person) -> None:
    trial = the_valid_one(person.trials(scenario(COMMANDS, until="5 s")))
    assert trial["flows"]["http"]["received_bytes"] > 35_000
    assert _events(trial, "fetched")
    assert (Path(trial["directory"]) / "logs" / "http-player-page").is_file()


def test_a_command_that_cannot_says_so(person: Person) -> None:
    flows = "  x: {role: subject, system: {server: 'sh -c \"echo no codec >&2; exit 127\"', player: 'true'}}"
    done = person.run(
        "run", person.scenario(scenario(flows)), "--mode", "emu", "--seed", "1", "--out", str(person.out)
    )
    assert done.returncode == 4, done.stderr
    assert "server of flow x cannot do what the scenario asks" in done.stderr.replace("\n", " ")
    assert "no codec" in done.stderr
