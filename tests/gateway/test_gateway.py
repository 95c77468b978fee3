"""``streamgauge gateway`` between machines made for it: traffic is limited, delayed, and free again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from laboratory import (
    Laboratory,
    Machine,
    fetch_bps,
    gateway,
    round_trips_s,
    sender,
    wait_until_same,
)

pytestmark = [pytest.mark.emu, pytest.mark.xdist_group("machine")]

OCTETS = 200_000
PATH = ("--down", "rate 4 Mbit/s, queue 60 kB, delay 20 ms", "--up", "delay 15 ms")


def limited(machine: Machine, to: str, port: int) -> None:
    """The rate is the path's: 4 Mbit/s of Ethernet bytes, and 38 kB of a burst's start at most beside it."""
    assert fetch_bps(machine, to, port, OCTETS) <= 4.1e6


def bridge(laboratory: Laboratory) -> tuple[Machine, Machine, Machine]:
    """A phone, a machine with a cable to either side, and a router."""
    phone, machine, router = (laboratory.machine() for _ in range(3))
    laboratory.wire(machine, "lan", phone, "eth0")
    laboratory.wire(machine, "wan", router, "eth0")
    for one, address in ((phone, "192.168.5.2/24"), (router, "192.168.5.1/24")):
        one.run("ip", "address", "add", address, "dev", "eth0")
    return phone, machine, router


def test_a_bridge_is_the_paths_wire(laboratory: Laboratory, tmp_path: Path) -> None:
    phone, machine, router = bridge(laboratory)
    before = machine.state()
    capture = tmp_path / "gateway.pcapng"
    arguments = ("--lan", "lan", "--wan", "wan", *PATH, "--json", "--capture", str(capture))
    with gateway(machine, *arguments) as opened, sender(router, 7000, OCTETS):
        assert "lan and wan become a bridge" in opened.said and "layer: Ethernet" in opened.said
        assert "192.168.5.1" not in router.run("ip", "neighbour")
        # ARP crosses the path, and so has its delay once.
        assert min(round_trips_s(phone, "192.168.5.1")) >= 0.035
        limited(phone, "192.168.5.1", 7000)
        found = opened.end(signal.SIGTERM)
    assert found["down"]["delivered_bytes"] > OCTETS
    assert capture.read_bytes().startswith(b"\x0a\x0d\x0d\x0a"), "a section header of pcapng"
    wait_until_same(machine, before)


def test_sigkill_undoes_a_bridge(laboratory: Laboratory) -> None:
    _, machine, _ = bridge(laboratory)
    before = machine.state()
    with gateway(machine, "--lan", "lan", "--wan", "wan", *PATH) as opened:
        assert machine.state() != before
        opened.popen.kill()
        opened.popen.communicate()
        wait_until_same(machine, before)


def routed(laboratory: Laboratory) -> tuple[Machine, Machine, Machine]:
    """A phone in a Wi-Fi of the machine's own, the machine, and a server beyond its way out."""
    phone, machine, server = (laboratory.machine() for _ in range(3))
    laboratory.wire(machine, "wlan", phone, "eth0")
    laboratory.wire(machine, "up0", server, "eth0")
    machine.run("ip", "address", "add", "192.168.50.1/24", "dev", "wlan")
    machine.run("ip", "address", "add", "203.0.113.2/24", "dev", "up0")
    machine.run("ip", "route", "add", "default", "via", "203.0.113.1")
    phone.run("ip", "address", "add", "192.168.50.7/24", "dev", "eth0")
    phone.run("ip", "route", "add", "default", "via", "192.168.50.1")
    server.run("ip", "address", "add", "203.0.113.1/24", "dev", "eth0")
    server.run("ip", "address", "add", "198.51.100.1/32", "dev", "lo")
    return phone, machine, server


def test_a_router_hides_its_clients_and_limits_them(laboratory: Laboratory) -> None:
    phone, machine, server = routed(laboratory)
    before = machine.state()
    with (
        gateway(machine, "--lan", "wlan", *PATH, "--json") as opened,
        sender(server, 7000, OCTETS) as sending,
    ):
        assert "clients of wlan (192.168.50.0/24) reach up0" in opened.said
        assert "DHCP" in opened.said and "DNS" in opened.said
        assert min(round_trips_s(phone, "198.51.100.1")) >= 0.035
        limited(phone, "198.51.100.1", 7000)
        assert sending.stdout is not None
        assert sending.stdout.readline() == "203.0.113.2\n"
        # This machine itself answers beside the path.
        assert min(round_trips_s(phone, "192.168.50.1")) < 0.035
        found = opened.end(signal.SIGINT)
    assert found["down"]["delivered_bytes"] > OCTETS
    wait_until_same(machine, before)


def test_sigkill_undoes_a_router(laboratory: Laboratory) -> None:
    _, machine, _ = routed(laboratory)
    machine.run("sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/up0/forwarding")
    before = machine.state()
    with gateway(machine, "--lan", "wlan", *PATH) as opened:
        assert machine.state()["forwarding"] != before["forwarding"]
        opened.popen.kill()
        opened.popen.communicate()
        wait_until_same(machine, before)


def contained(laboratory: Laboratory) -> tuple[Machine, Machine]:
    """A container, and the machine at the other end of its wire."""
    inside, machine = laboratory.machine(), laboratory.machine()
    laboratory.wire(machine, "veth0", inside, "eth0")
    machine.run("ip", "address", "add", "172.30.0.1/24", "dev", "veth0")
    inside.run("ip", "address", "add", "172.30.0.2/24", "dev", "eth0")
    inside.run("ip", "route", "add", "default", "via", "172.30.0.1")
    return inside, machine


def test_a_container_is_behind_the_path_until_it_ends(laboratory: Laboratory) -> None:
    inside, machine = contained(laboratory)
    before = inside.state()
    with (
        gateway(None, "--container", str(inside.pid), *PATH, "--json") as opened,
        sender(machine, 7000, OCTETS),
    ):
        assert f"eth0 of process {inside.pid}" in opened.said
        assert min(round_trips_s(inside, "172.30.0.1")) >= 0.035
        assert min(round_trips_s(machine, "172.30.0.2")) >= 0.035, "from outside too"
        limited(inside, "172.30.0.1", 7000)
        opened.end(signal.SIGTERM)
    wait_until_same(inside, before)
    with gateway(None, "--container", str(inside.pid), *PATH) as opened:
        opened.popen.kill()
        opened.popen.communicate()
        wait_until_same(inside, before)
    with gateway(None, "--container", str(inside.pid), *PATH) as opened:
        inside.holder.kill()
        inside.holder.wait()
        assert "it has ended, and the gateway with it" in opened.rest()
        assert opened.popen.returncode == 2


ECHOES = """
import socket, sys
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("127.0.0.1", 0))
print(here.getsockname()[1], flush=True)
while True:
    data, peer = here.recvfrom(65536)
    here.sendto(data[::-1], peer)
"""
ASKS = """
import socket, sys, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.settimeout(30)
here.connect(("127.0.0.1", int(sys.argv[1])))
for word in (b"first", b"second" * 200):
    began = time.monotonic()
    here.send(word)
    assert here.recv(65536) == word[::-1]
print(time.monotonic() - began)
"""


def test_a_forwarder_of_tcp_and_udp(laboratory: Laboratory) -> None:
    """In a machine of its own: ports of this one are others'."""
    machine = laboratory.machine()
    echo = machine.popen(sys.executable, "-c", ECHOES)
    assert echo.stdout is not None
    port = int(echo.stdout.readline())
    try:
        arguments = ("--listen", "8554", *PATH)
        with gateway(machine, *arguments, "--to", f"127.0.0.1:{port}", "--json") as opened:
            assert float(machine.python(ASKS, "8554")) >= 0.035
            found = opened.end(signal.SIGTERM)
        assert found["up"]["delivered_packets"] >= 2
    finally:
        echo.kill()
        echo.communicate()
    with (
        sender(machine, 7000, OCTETS),
        gateway(machine, *arguments, "--to", "127.0.0.1:7000") as opened,
    ):
        # Two at once, and both get all.
        rates = []
        both = [
            threading.Thread(target=lambda: rates.append(fetch_bps(machine, "127.0.0.1", 8554, OCTETS)))
            for _ in range(2)
        ]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert len(rates) == 2 and sum(rates) <= 2 * 4.1e6 and min(rates) <= 4.1e6
        taken = machine.popen(
            sys.executable, "-m", "streamgauge", "gateway", "--listen", "8554", "--to", "127.0.0.1:1"
        )
        _, error = taken.communicate(timeout=60)
        assert taken.returncode == 4 and "--listen 8554: Address already in use" in error
        opened.popen.kill()
        opened.popen.communicate()
        until = time.monotonic() + 20
        while ":8554 " in machine.run("ss", "-lntuH"):
            assert time.monotonic() < until
            time.sleep(0.05)


ASKED = """
import json, sys
from streamgauge.errors import StreamGaugeError
from streamgauge.gateway.request import kind_of
for words in json.loads(sys.argv[1]):
    options = dict.fromkeys(("lan", "wan", "container", "listen", "to")) | words
    try:
        print(kind_of(**options))
    except StreamGaugeError as error:
        print(error.exit_status, str(error))
"""


def test_refusals_are_one_line_each_and_change_nothing(laboratory: Laboratory) -> None:
    _, machine, _ = routed(laboratory)
    other = laboratory.machine()
    for name, others in (("spare", "eth0"), ("spare2", "eth1"), ("port", "eth2"), ("long", "eth3")):
        laboratory.wire(machine, name, other, others)
    machine.run("ip", "link", "add", "br0", "type", "bridge")
    machine.run("ip", "link", "set", "port", "master", "br0")
    machine.run("ip", "link", "set", "long", "mtu", "9000")
    before = machine.state()
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({"lan": "eth7"}, "4 --lan eth7: there is no such interface; there are: "),
        ({"lan": "br0"}, "4 --lan br0: it is down"),
        ({"lan": "lo"}, "4 --lan lo: loopback"),
        ({"lan": "up0", "wan": "spare"}, "4 --lan up0: it is the way to this machine"),
        ({"lan": "wlan", "wan": "spare"}, "4 --lan wlan: it is in use, with address 192.168.50.1/24"),
        ({"lan": "port", "wan": "spare"}, "4 --lan port: it is in use as a part of br0"),
        ({"lan": "spare", "wan": "long"}, "4 --wan long: its MTU is 9000"),
        ({"lan": "spare", "wan": "spare"}, "3 --lan and --wan are both spare"),
        ({"lan": "spare"}, "4 --lan spare: it has no IPv4 address"),
        ({"lan": "up0"}, "4 --lan up0: it is this machine's way out"),
        ({"wan": "spare"}, "3 --wan: it has no --lan"),
        ({}, "3 give one of"),
        ({"lan": "spare", "container": "1"}, "3 give one of"),
        ({"container": "999999999"}, "4 --container 999999999: there is no process"),
        ({"container": "no-such-container"}, "4 --container no-such-container: there is no such container"),
        ({"container": str(machine.pid)}, f"4 --container {machine.pid}: it has this machine's own network"),
        ({"container": str(other.pid)}, f"4 --container {other.pid}: no default route"),
        ({"listen": "8554"}, "3 --listen and --to belong together"),
        ({"listen": "no", "to": "127.0.0.1:80"}, "3 --listen no: a port is a number"),
        ({"listen": "8554", "to": "80"}, "3 --to 80: expected HOST:PORT"),
        ({"lan": "spare", "wan": "spare2"}, "Bridged("),
        ({"lan": "wlan"}, "Routed("),
    )
    said = machine.python(ASKED, json.dumps([words for words, _ in cases])).splitlines()
    assert len(said) == len(cases)
    for line, (words, expected) in zip(said, cases, strict=True):
        assert line.startswith(expected), (words, line)
    command = machine.inside(sys.executable, "-c", ASKED, json.dumps([{"lan": "spare"}]))
    place = command.index(sys.executable)
    command[place:place] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.startswith("4 --lan: only root"), done.stderr
    wait_until_same(machine, before)


def test_a_dry_run_prints_the_changes_and_makes_none(laboratory: Laboratory) -> None:
    _, machine, _ = bridge(laboratory)
    before = machine.state()
    command = (
        sys.executable,
        "-m",
        "streamgauge",
        "gateway",
        "--lan",
        "lan",
        "--wan",
        "wan",
        *PATH,
        "--dry-run",
    )
    said = machine.run(*command)
    assert "rate 4 Mbit/s" in said and "nftables table" in said and "flags owner" in said
    assert machine.state() == before


def test_a_record_and_a_page(laboratory: Laboratory, tmp_path: Path) -> None:
    """As of a link: the traffic of all clients is one flow, and `--duration` ends it."""
    phone, machine, _ = bridge(laboratory)
    log = tmp_path / "log"
    arguments = ("--lan", "lan", "--wan", "wan", *PATH, "--log", str(log), "--live=terminal")
    with gateway(machine, *arguments, "--duration", "2 s") as opened:
        round_trips_s(phone, "192.168.5.1")
        said = opened.rest()
    assert opened.popen.returncode == 0 and "live: " in said
    trial = json.loads((log / "trial.json").read_text())
    assert trial["validity"]["measured"]["conservation"] == []
    assert json.loads((log / "provenance.json").read_text())["far_end"] == "segment"
    assert trial["summary"]["link"]["up"]["delivered_packets"] >= 3
