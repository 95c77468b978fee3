"""nginx as a server of systems: its program, the parts of its configuration that all have, its access log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from streamgauge.systems.adapter import Clock, FlowSetup, Program, place
from streamgauge.systems.player_files import UNFIT, FileRefusedError, read_in

NGINX = "/usr/sbin/nginx"
"""Where distributions have it: ordinary users' PATH lacks that folder."""
ACCESS_LOG = "access.log"
LARGEST_LOG_BYTES = 20_000_000
"""As much as is kept of a log."""
SIGQUIT = 3
"""Signal on which nginx ends current transfers, for as long as its configuration allows, and logs them."""

# Debian's sendfile and tcp_nopush, nginx's own keep-alive. An answer that is under way when the trial ends is
# cut off and logged. Words in capitals are filled in.
_CONFIG = """\
daemon off;
worker_processes 1;
worker_shutdown_timeout 500ms;
pid nginx.pid;
error_log stderr warn;
events {}
http {
  log_format answers escape=json '{FIELDS}';
  access_log ACCESS_LOG answers;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout 75s;
  types { TYPES }
  server {
SERVER
  }
}
"""

_FIELDS = {
    "t": "$msec",
    "status": "$status",
    "bytes": "$bytes_sent",
    "request": '"$request"',
    "range": '"$http_range"',
    "whole": '"$request_completion"',
    "connection": "$connection",
    "on_connection": "$connection_requests",
    "rtt_us": '"$tcpinfo_rtt"',
    "cwnd": '"$tcpinfo_snd_cwnd"',
}
"""Logged fields of each answer: a field's name, and nginx's expression for it. Texts are in quotes."""


def program(purpose: str) -> Program:
    """Returns nginx, for that purpose. It prints its version on stderr."""
    return Program(name=NGINX, packages="nginx-light", purpose=purpose, id="nginx", probe=["-v"])


def command(out: str) -> list[str]:
    """By which it runs with the ``nginx.conf`` of a folder."""
    return [NGINX, "-e", "stderr", "-p", out, "-c", f"{out}/nginx.conf"]


def config(server: str, *, types: str, fields: Mapping[str, str] | None = None) -> str:
    """Returns a configuration with one server, of the lines `server`; `fields` are logged beside the common
    ones."""
    logged = ",".join(f'"{name}":{value}' for name, value in {**_FIELDS, **(fields or {})}.items())
    filled = _CONFIG.replace("{FIELDS}", f"{{{logged}}}").replace("TYPES", types)
    return filled.replace("ACCESS_LOG", ACCESS_LOG).replace("SERVER", server.rstrip("\n"))


def answers(
    flow: FlowSetup,
    faults: list[str],
    read: Callable[[Mapping[str, Any]], list[dict[str, Any]]],
    *,
    name: str = "",
) -> list[dict[str, Any]]:
    """Returns the events that `read` makes of each line of the access log of the server's process `name`.

    The first line that cannot be read is put in `faults`, and ends it; a last one without its end is passed
    over.
    """
    shown = f"{flow.name}-{place('server', name)}-{ACCESS_LOG}"
    try:
        found = read_in(flow.out("server", name), ACCESS_LOG, LARGEST_LOG_BYTES)
    except FileRefusedError as error:
        faults.append(f"{shown} {error}")
        return []
    if found is None:
        return []
    if found.is_cut:
        faults.append(f"{shown} has more than {LARGEST_LOG_BYTES / 1e6:g} MB; what follows is not read")
    *lines, _ = found.data.split(b"\n")
    events: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            events += read(json.loads(line))
        except UNFIT:
            faults.append(f"{shown}:{number}: not a line of nginx's as we have it written")
            break
    return events


def at_ns(seconds: float, clock: Clock) -> int:
    """CLOCK_MONOTONIC at a time of its log, which is CLOCK_REALTIME."""
    return clock.t0_monotonic_ns + round(seconds * 1e9) - clock.t0_realtime_ns


def answered(told: Mapping[str, Any]) -> str:
    """Returns an answer in words."""
    cut = "whole" if told["whole"] else "cut off"
    asked = f"{told['request']}{', ' + told['range'] if told['range'] else ''}"
    which = f"number {told['on_connection']} on connection {told['connection']}"
    return f"{told['status']} to {asked}: {cut}; {which}"
