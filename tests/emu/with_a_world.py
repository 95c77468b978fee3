"""Runs a link in a machine with one interface to a small world: for `test_link_command`.

Run as root in a network and a mount namespace of its own. Prints JSON: what the command said, as whom the
world saw it, and what was left, also when the link is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

FORWARDING = Path("/proc/sys/net/ipv4/conf/up0/forwarding")
WORLD = "sgworld"
SERVE = """
import http.server, sys
class Seen(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_):
        print(self.client_address[0], flush=True)
server = http.server.HTTPServer(("", 8000), Seen)
print("ready", flush=True)
server.serve_forever()
"""


def ip(*words: str) -> None:
    """Runs ip."""
    subprocess.run(["ip", *words], check=True)


def tables() -> list[str]:
    """Names of nftables' tables."""
    return subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:-1]


def main() -> int:
    """0 if the command ended with 0."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    ip("netns", "add", WORLD)
    ip("link", "set", "lo", "up")
    ip("link", "add", "up0", "type", "veth", "peer", "name", "eth0", "netns", WORLD)
    ip("address", "add", "203.0.113.1/24", "dev", "up0")
    ip("link", "set", "up0", "up")
    ip("route", "add", "default", "via", "203.0.113.2")
    ip("-n", WORLD, "address", "add", "203.0.113.2/24", "dev", "eth0")
    ip("-n", WORLD, "link", "set", "eth0", "up")
    world = subprocess.Popen(
        ["ip", "netns", "exec", WORLD, sys.executable, "-c", SERVE], stdout=subprocess.PIPE, text=True
    )
    try:
        assert world.stdout is not None
        assert world.stdout.readline() == "ready\n"
        done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=False)
        found = {
            "said": done.stdout,
            "client": world.stdout.readline().strip() if done.returncode == 0 else None,
            "tables_after": tables(),
            "forwarding_after": FORWARDING.read_text().strip(),
            "killed": killed(),
        }
        print(json.dumps(found))
        return done.returncode
    finally:
        world.kill()


def killed() -> dict[str, object]:
    """What is left a little after a link has been killed."""
    command = [*sys.argv[1 : sys.argv.index("--") + 1], "sh", "-c", "echo begun; exec sleep 60"]
    popen = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert popen.stdout is not None
    popen.stdout.readline()
    assert tables() and FORWARDING.read_text().strip() == "1"
    os.kill(popen.pid, signal.SIGKILL)
    popen.wait()
    time.sleep(2)
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
    return {
        "tables": tables(),
        "forwarding": FORWARDING.read_text().strip(),
        "interfaces": [line.split()[0] for line in links.splitlines() if line.startswith("sglink")],
    }


sys.exit(main())
