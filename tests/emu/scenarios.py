"""Short scenarios for the tests.

A slow link with a long round trip: beside those, the lateness of a busy machine is small even where the
emulator runs in the normal scheduling class, so that the verdict speaks of StreamGauge, not of the machine.
"""

from __future__ import annotations


def scenario(flows: str, *, until: str = "6 s", rate: str = "300 kbit/s", queue: str = "100 packets") -> str:
    """A scenario of `flows` (YAML, indented by two)."""
    return f"""
id: test/short
title: A short trial
path:
  down: {{rate: {rate}, queue: droptail {queue}, delay: 150 ms}}
  up: {{delay: 150 ms}}
flows:
{flows}
until: {{time: {until}}}
modes: [emu]
"""


def rtsp(player: str, transport: str) -> str:
    """A flow that plays carphone by RTSP."""
    return (
        f"  video: {{role: subject, system: rtsp, parameters: {{player: {player}, transport: {transport}}}, "
        "clip: carphone-200k}"
    )


def nginx_http(player: str) -> str:
    """A flow that downloads carphone and plays it meanwhile."""
    asked = f"system: nginx-http, parameters: {{player: {player}}}"
    return f"  video: {{role: subject, {asked}, clip: carphone-200k}}"


FTP = "  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}}"
PING = "  probe: {role: rival, traffic: ping, parameters: {interval: 200 ms}}"
