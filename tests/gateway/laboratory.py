"""Networks made for a test: namespaces of machines, joined by wires, and the gateway of one of them."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 60


@dataclass
class Machine:
    """A network namespace, held by a process that sleeps."""

    holder: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.holder.pid

    def inside(self, *command: str) -> list[str]:
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]

    def run(self, *command: str) -> str:
        done = subprocess.run(self.inside(*command), capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def python(self, script: str, *arguments: str) -> str:
        return self.run(sys.executable, "-c", script, *arguments)

    def popen(self, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.inside(*command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def state(self) -> dict[str, Any]:
        """All of its network that a gateway could leave something in."""
        links = json.loads(self.run("ip", "-j", "-d", "link"))
        sysctls = self.run(
            "sh", "-c", "cat /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv4/ip_forward"
        )
        return {
            "interfaces": sorted((one["ifname"], one.get("promiscuity"), one["mtu"]) for one in links),
            "addresses": self.run("ip", "-br", "address"),
            "routes": self.run("ip", "route", "show", "table", "all"),
            "rules": self.run("ip", "rule"),
            "tables": self.run("nft", "list", "ruleset"),
            "forwarding": sysctls,
        }


class Laboratory:
    """Machines and wires, gone with `close`."""

    def __init__(self) -> None:
        self._machines: list[Machine] = []

    def machine(self) -> Machine:
        holder = subprocess.Popen(["unshare", "--net", "sleep", "1000"])
        made = Machine(holder)
        self._machines.append(made)
        mine = Path("/proc/self/ns/net").stat().st_ino
        until = time.monotonic() + PATIENCE_S
        while Path(f"/proc/{holder.pid}/ns/net").stat().st_ino == mine or _name(holder.pid) != "sleep":
            assert time.monotonic() < until
            time.sleep(0.005)
        # Its addresses settle when they like, and would look like a change.
        ipv6 = "/proc/sys/net/ipv6/conf/default/disable_ipv6"
        made.run("sh", "-c", f"[ ! -e {ipv6} ] || echo 1 > {ipv6}")
        made.run("ip", "link", "set", "lo", "up")
        return made

    def wire(self, one: Machine, its: str, other: Machine, others: str) -> None:
        far = f"/proc/{other.pid}/ns/net"
        one.run("ip", "link", "add", its, "type", "veth", "peer", "name", others, "netns", far)
        one.run("ip", "link", "set", its, "up")
        other.run("ip", "link", "set", others, "up")

    def close(self) -> None:
        for one in self._machines:
            one.holder.kill()
            one.holder.wait()


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


class Gateway:
    """A `streamgauge gateway` that is open."""

    def __init__(self, machine: Machine | None, arguments: Sequence[str]) -> None:
        command = [sys.executable, "-m", "streamgauge", "gateway", "--no-preflight", *arguments]
        self.popen = subprocess.Popen(
            command if machine is None else machine.inside(*command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.said = ""
        until = time.monotonic() + PATIENCE_S
        assert self.popen.stderr is not None
        while "the gateway is open" not in self.said:
            assert select.select([self.popen.stderr], [], [], until - time.monotonic())[0], self.said
            more = os.read(self.popen.stderr.fileno(), 1 << 16)
            assert more, self.said
            self.said += more.decode()

    def rest(self) -> str:
        """What it printed after its opening."""
        _, error = self.popen.communicate(timeout=PATIENCE_S)
        self.said += error.decode()
        return error.decode()

    def end(self, number: int) -> dict[str, Any]:
        """Its summary, after a signal."""
        self.popen.send_signal(number)
        rest = self.rest()
        assert self.popen.returncode == 0, self.said
        found: dict[str, Any] = json.loads(rest.splitlines()[-1])
        return found


@contextmanager
def gateway(machine: Machine | None, *arguments: str) -> Iterator[Gateway]:
    opened = Gateway(machine, arguments)
    try:
        yield opened
    finally:
        if opened.popen.poll() is None:
            opened.popen.kill()
            opened.popen.communicate()


def round_trips_s(machine: Machine, to: str, count: int = 3) -> list[float]:
    said = machine.run("ping", "-c", str(count), "-i", "0.2", "-W", "5", to)
    return [float(time) / 1e3 for time in re.findall(r"time=([0-9.]+) ms", said)]


SENDS = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
print("listening", flush=True)
while True:
    peer, address = listener.accept()
    print(address[0], flush=True)
    peer.sendall(bytes(int(sys.argv[2])))
    peer.close()
"""
RECEIVES = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
came, began = 0, None
while data := peer.recv(65536):
    began = began or time.monotonic()
    came += len(data)
print(came, time.monotonic() - began)
"""


@contextmanager
def sender(machine: Machine, port: int, octets: int) -> Iterator[subprocess.Popen[str]]:
    """A server that sends as many bytes to each that connects, and prints its address."""
    popen = machine.popen(sys.executable, "-c", SENDS, str(port), str(octets))
    try:
        assert popen.stdout is not None
        assert popen.stdout.readline() == "listening\n"
        yield popen
    finally:
        popen.kill()
        popen.communicate()


def fetch_bps(machine: Machine, to: str, port: int, octets: int) -> float:
    came, took_s = machine.python(RECEIVES, to, str(port)).split()
    assert int(came) == octets
    return 8 * octets / float(took_s)


def wait_until_same(machine: Machine, before: dict[str, Any]) -> None:
    until = time.monotonic() + 20
    while (now := machine.state()) != before:
        assert time.monotonic() < until, {
            key: (now[key], before[key]) for key in now if now[key] != before[key]
        }
        time.sleep(0.05)
