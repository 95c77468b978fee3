"""The sandbox's network: namespaces for the two ends and the router, veths, addresses, routes, settings.

Server and client are on one layer-2 segment that runs through the emulator in the router's namespace, so
neighbours are static and the router has no addresses. Every flow has its own pair of addresses, with a route
at each end that names the source, so that the addresses alone identify a packet's flow. A relay is at home in
the namespace of its end, where it and the flows' ends reach each other by addresses of their own host. At the
other end its address represents the ones behind it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from streamgauge.emu.compartments import Compartment, Compartments
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.errors import CannotRunError
from streamgauge.systems.adapter import FlowSetup, Namespace
from streamgauge.systems.relay import RelaySetup
from streamgauge.systems.tcp import planned_tcp

END_INTERFACE = "eth0"
"""Name of the interface at every end; its other end, in the router, has the end's name."""
ROUTER = "router"
PREFLIGHT_SERVER, PREFLIGHT_PLAYER = "10.1.255.1", "10.2.255.1"
MOST_FLOWS = 250
"""The flow's number is an octet of its addresses; 255 is the pre-flight's."""

RELAYED_TABLES = 1000
"""Number of the first flow's own routing table, where flows share a relay; the kernel's are 253 to 255."""

TIMESTAMPS_OPTION_BYTES = 12
"""RFC 7323's option in every segment: what lies between the MSS of a route and the payload of a packet."""
FULL_PAYLOAD = 1448
"""Payload of a TCP packet of 1500 IP bytes with timestamps."""
INITIAL_WINDOW = 10
"""Linux's (TCP_INIT_CWND), in segments."""

# Linux's defaults, written down so that a machine tuned otherwise gives the same trial.
SYSCTLS: dict[str, str] = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_mtu_probing": "0",
    # A router on the path may fragment a packet that is too large, as in sim; with discovery on it would drop
    # it.
    "net.ipv4.ip_no_pmtu_disc": "1",
    # RTSP has its port, 554, also without privileges.
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ip_local_port_range": "32768 60999",
}

FORWARDING = (
    ("ip_forward", "1"),
    ("ip_early_demux", "0"),
    *(
        (f"conf/all/{name}", "0")
        for name in ("send_redirects", "rp_filter", "proxy_arp", "accept_source_route")
    ),
)
"""Settings of an end that sides are joined to, below net/ipv4. A new network has the machine's own settings
for all interfaces, which may be loose: then a port's strict filter of sources is void."""
PORT = (("rp_filter", "1"), ("proxy_arp", "0"), ("proxy_arp_pvlan", "0"), ("accept_local", "0"))
"""Settings of each port of an end, below net/ipv4/conf: it accepts a side's own address alone, and shows
no other side's."""
PORT_MAC, SIDE_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
"""The addresses of every pair of veths between an end and a side: at the end, and at the side."""
OFFLOADS_OFF = [part for name in ("tso", "gso", "gro", "tx", "rx", "sg") for part in (name, "off")]
"""With them on, loss and queue limits would act on super-packets of 64 kB."""


@dataclass
class Network:
    """The network that was built, for the record's provenance."""

    namespaces: list[str] = field(default_factory=list)
    mac: dict[str, str] = field(default_factory=dict)
    sysctls: dict[str, str] = field(default_factory=dict)
    qdiscs: dict[str, str] = field(default_factory=dict)


def run_all(commands: Sequence[Sequence[str]]) -> None:
    """Runs tools side by side; TrialBrokenError with the words of the first that fails."""
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen(one, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace")
        for one in commands
    ]
    said = [one.communicate() for one in running]
    for command, one, (out, error) in zip(commands, running, said, strict=True):
        if one.returncode != 0:
            raise _failed(command, error or out)


def _failed(command: Sequence[str], said: str) -> TrialBrokenError:
    words = said.strip().replace("\n", "; ")
    return TrialBrokenError(f"the sandbox's network cannot be set up: {' '.join(command)}: {words}.")


def run(command: Sequence[str], *, stdin: str | None = None) -> str:
    """Runs a tool and returns its output. Raises TrialBrokenError with the tool's message if it fails."""
    done = subprocess.run(
        command, input=stdin, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode != 0:
        raise _failed(command, done.stderr or done.stdout)
    return done.stdout


def build(
    flows: Sequence[FlowSetup],
    relays: Sequence[RelaySetup] = (),
    *,
    engine: str,
    own_controls: Mapping[str, str] | None = None,
    compartments: Compartments | None = None,
) -> Network:
    """Makes the namespaces and everything in them.

    `flows` and `relays` have their addresses; `own_controls` names the controls that were registered for this
    trial. The `compartments` of the flows' sides have been made.
    """
    registered = own_controls or {}
    if (count := len(flows) + len(relays)) > MOST_FLOWS:
        whose = "flows and relays" if relays else "flows"
        raise CannotRunError(f"{count} {whose}: emu has addresses for {MOST_FLOWS}; use mode sim.")
    ends: list[Namespace] = ["server", "client"]
    if any(flow.at_router for flow in flows):
        ends.append("cross")
    network = Network(namespaces=[*ends, ROUTER])
    for name in network.namespaces:
        run(["ip", "netns", "add", name])
        network.sysctls = _settings(name, engine)
    for end in ends:
        run(
            [
                "ip",
                "-n",
                ROUTER,
                "link",
                "add",
                end,
                "type",
                "veth",
                "peer",
                "name",
                END_INTERFACE,
                "netns",
                end,
            ]
        )
        for namespace, interface in ((end, END_INTERFACE), (ROUTER, end)):
            offloads_off(namespace, interface, engine)
            run(["ip", "-n", namespace, "link", "set", "dev", interface, "mtu", "1500", "up"])
        run(["ip", "-n", end, "link", "set", "dev", "lo", "up"])
        network.mac[end] = _link(end)["address"]
    by_name = {relay.name: relay for relay in relays}
    for end in ends:
        lines: list[str] = []
        if end != "cross":
            own, peer = PREFLIGHT_SERVER, PREFLIGHT_PLAYER
            own, peer = (own, peer) if end == "server" else (peer, own)
            other = "client" if end == "server" else "server"
            lines += routes(own, peer, network.mac[other])
        for relay in relays:
            if end == relay.near:
                lines.append(f"address add {relay.player_ip}/32 dev {END_INTERFACE}")
        for flow in flows:
            serving, playing = flow.sending_namespace, flow.playing_namespace
            via = flow.plan.get("via")
            if via is not None and end in (serving, playing):
                lines += _relayed(end, flow, by_name[via], network.mac, registered)
        run(["ip", "-n", end, "-batch", "-"], stdin="\n".join(lines) + "\n")
        network.qdiscs[end] = _link(end)["qdisc"]
    _join(compartments.all if compartments is not None else [], network.mac, registered, engine)
    return network


def _join(
    compartments: Sequence[Compartment], mac: Mapping[str, str], registered: Mapping[str, str], engine: str
) -> None:
    """Joins the sides' networks to those of the ends, each by a pair of veths.

    An end forwards a packet from a side only with that side's address as source, since the kernel compares
    the way back to it with the interface of its arrival (rp_filter). A side has a way to its peer alone.
    """
    joined: dict[Namespace, list[Compartment]] = {}
    for one in compartments:
        if one.has_network:
            joined.setdefault(one.end, []).append(one)
    work = []
    for end, sides in joined.items():
        lines, ports = [], [f"port{one.name}" for one in sides]
        for port, one in zip(ports, sides, strict=True):
            own, peer, far = _addresses(one)
            side = f"name {END_INTERFACE} address {SIDE_MAC} netns {one.pid}"
            lines += [
                f"link add {port} address {PORT_MAC} type veth peer {side}",
                f"link set dev {port} mtu 1500 up",
                f"route add {own}/32 dev {port}",
                f"neighbour replace {own} lladdr {SIDE_MAC} dev {port} nud permanent",
                f"route add {peer}/32 dev {END_INTERFACE}",
                f"neighbour replace {peer} lladdr {mac[far]} dev {END_INTERFACE} nud permanent",
            ]
        script = [_batch(lines), *(f"echo {value} > /proc/sys/net/ipv4/{name}" for name, value in FORWARDING)]
        for port in ports:
            script += [
                *(f"echo {value} > /proc/sys/net/ipv4/conf/{port}/{name}" for name, value in PORT),
                f"ethtool -K {port} {' '.join(OFFLOADS_OFF)}",
            ]
        work.append([*inside(end, engine), "/bin/sh", "-ec", "\n".join(script)])
    run_all(work)
    work = []
    for one in (one for sides in joined.values() for one in sides):
        own, peer, _ = _addresses(one)
        script = [
            f"ethtool -K {END_INTERFACE} {' '.join(OFFLOADS_OFF)}",
            _batch(
                [
                    f"link set dev {END_INTERFACE} mtu 1500 up",
                    *routes(own, peer, PORT_MAC, one.flow, registered),
                ]
            ),
        ]
        work.append([*inside(one.netns, engine), "/bin/sh", "-ec", "\n".join(script)])
    run_all(work)


def _addresses(one: Compartment) -> tuple[str, str, Namespace]:
    """A side's own address, its peer's, and the end where that is."""
    flow = one.flow
    if one.side == "server":
        return flow.server_ip, flow.player_ip, flow.playing_namespace
    return flow.player_ip, flow.server_ip, flow.sending_namespace


def _batch(lines: Iterable[str]) -> str:
    """A shell's command that has ip do those lines."""
    text = "\n".join(lines)
    return f"ip -batch - <<END\n{text}\nEND"


def routes(
    own: str,
    peer: str,
    peer_mac: str,
    flow: FlowSetup | None = None,
    registered: Mapping[str, str] = MappingProxyType({}),
) -> Iterable[str]:
    """Returns lines of ``ip -batch`` for one address pair at one end: of a flow, with its plan's settings of
    TCP.

    `registered` is the result of `controls.names`.
    """
    yield f"address add {own}/32 dev {END_INTERFACE}"
    yield f"neighbour replace {peer} lladdr {peer_mac} dev {END_INTERFACE} nud permanent"
    yield _route(own, peer, flow, registered)


def _relayed(
    end: Namespace,
    flow: FlowSetup,
    relay: RelaySetup,
    mac: Mapping[str, str],
    registered: Mapping[str, str],
) -> Iterable[str]:
    """Returns lines of ``ip -batch`` for a flow through a relay, at one end. The exchange of the flow's end
    there and the relay stays in their namespace, which has the addresses of both."""
    own, other = flow.server_ip, flow.player_ip
    if end == flow.playing_namespace:
        own, other = other, own
    yield f"address add {own}/32 dev {END_INTERFACE}"
    if end == relay.near:
        far = "server" if end == "client" else "client"
        yield f"neighbour replace {other} lladdr {mac[far]} dev {END_INTERFACE} nud permanent"
        yield _route(relay.player_ip, other, relay, registered)
    else:
        there = relay.player_ip
        yield f"neighbour replace {there} lladdr {mac[relay.near]} dev {END_INTERFACE} nud permanent"
        # Flows share the relay's address, and each has settings of its own.
        table = RELAYED_TABLES + flow.index
        yield f"rule add from {own}/32 to {there}/32 lookup {table}"
        yield f"{_route(own, there, flow, registered)} table {table}"


def _route(own: str, peer: str, flow: FlowSetup | None, registered: Mapping[str, str]) -> str:
    """The line for a route with the settings of its flow's, or relay's, TCP."""
    route = f"route add {peer}/32 dev {END_INTERFACE} src {own}"
    tcp = None if flow is None else planned_tcp(flow.plan)
    if tcp is not None:
        # Locked: a program may not choose another.
        control = tcp["congestion_control"]
        route += f" congctl lock {registered.get(control, control)}"
        if tcp["ecn"]:
            # Asks for ECN; the other end agrees, as tcp_ecn is 2.
            route += " features ecn"
        # The other settings are for our own machines alone.
        if tcp.get("mss", FULL_PAYLOAD) != FULL_PAYLOAD:
            route += f" advmss {tcp['mss'] + TIMESTAMPS_OPTION_BYTES}"
        if tcp.get("initial_window", INITIAL_WINDOW) != INITIAL_WINDOW:
            route += f" initcwnd {tcp['initial_window']}"
        if tcp.get("delayed_ack") == 0:
            route += " quickack 1"
        largest = int(SYSCTLS["net.ipv4.tcp_rmem"].split()[2]) // 2
        if tcp.get("receive_window", largest) < largest:
            # Beside SO_RCVBUF, which a program may or may not set.
            route += f" window {tcp['receive_window']}"
    return route


def inside(namespace: str, engine: str) -> list[str]:
    """The command prefix that runs a trusted tool in a namespace."""
    return [engine, "run-as", "--keep-privileges", "--netns", namespace, "--"]


def sysctl_files() -> dict[str, str]:
    """Returns the settings of every network, by file below /proc/sys."""
    return {_path(name): value for name, value in {**dict.fromkeys(IPV6_OFF, "1"), **SYSCTLS}.items()}


IPV6_OFF = ("net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6")
"""An IPv6-enabled veth emits frames of its own."""


def _settings(namespace: str, engine: str) -> dict[str, str]:
    """Sets the values that a trial depends on and reads them back."""
    wanted = dict(SYSCTLS)
    script = "".join(
        f"[ ! -e /proc/sys/{_path(name)} ] || echo 1 > /proc/sys/{_path(name)}\n" for name in IPV6_OFF
    )
    script += "".join(f"echo '{value}' > /proc/sys/{_path(name)}\n" for name, value in wanted.items())
    script += "".join(f"echo {name} $(cat /proc/sys/{_path(name)})\n" for name in wanted)
    said = run([*inside(namespace, engine), "/bin/sh", "-ec", script])
    return {name: value for name, _, value in (line.partition(" ") for line in said.splitlines())}


def _path(name: str) -> str:
    return name.replace(".", "/")


def offloads_off(namespace: str, interface: str, engine: str) -> None:
    """Turns offloads off, so that frames on this interface have their size on the wire."""
    run([*inside(namespace, engine), "ethtool", "-K", interface, *OFFLOADS_OFF])


def _link(namespace: str) -> dict[str, Any]:
    found = json.loads(run(["ip", "-j", "-n", namespace, "link", "show", "dev", END_INTERFACE]))
    link: dict[str, Any] = found[0]
    return link


def counters(end: str, sides: Sequence[Compartment], engine: str) -> dict[str, int]:
    """Returns the counts of the networks at an end: the end's interface its packets and bytes, all together
    UDP, TCP and IP counters.

    Names as in /proc/net/snmp and /proc/net/netstat (``Udp.RcvbufErrors``); ``link.rx_packets`` and so on;
    ``sides.tx_dropped``: packets that were lost between the end and its sides.
    """
    command = [*inside(end, engine), "cat", *(f"/proc/net/{file}" for file in COUNTERS)]
    text = run(command)
    found = _parse_counters(text)
    found["sides.tx_dropped"] = sum(_dropped(text).values()) - found["link.tx_dropped"]
    for one in sides:
        text = one.read_net(*COUNTERS)
        for name, value in _parse_counters(text).items():
            if not name.startswith("link."):
                found[name] = found.get(name, 0) + value
        found["sides.tx_dropped"] += sum(_dropped(text).values())
    return found


COUNTERS = ("snmp", "netstat", "dev")
"""Files of /proc/net."""


def received_packets(side: Compartment) -> int:
    """Returns the received packets of the interface of a side's own network."""
    return _parse_counters(side.read_net("dev"))["link.rx_packets"]


def unread_bytes(side: Compartment) -> dict[str, int]:
    """Returns the unread bytes that TCP holds for programs of a side, by local address."""
    found: dict[str, int] = {}
    for line in side.read_net("tcp").splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        if state != "0A":  # the queue of a listener is of connections
            address = ".".join(str(octet) for octet in reversed(bytes.fromhex(local.partition(":")[0])))
            found[address] = found.get(address, 0) + int(queues.partition(":")[2], 16)
    return found


def _dropped(text: str) -> dict[str, int]:
    """Returns the packets that each interface of /proc/net/dev could not send."""
    rows = (line.partition(":") for line in text.splitlines())
    return {
        name.strip(): int(numbers.split()[11])
        for name, _, numbers in rows
        if len(numbers.split()) == 16 and numbers.split()[0].isdigit()
    }


def _parse_counters(text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    lines = text.splitlines()
    for line, below in pairwise(lines):
        group, _, names = line.partition(":")
        same, _, numbers = below.partition(":")
        # A line of names, and below it one of numbers.
        if group == same and group in ("Udp", "Tcp", "Ip", "TcpExt") and not names.split()[0].isdigit():
            pairs = zip(names.split(), numbers.split(), strict=False)
            values |= {f"{group}.{name}": int(number) for name, number in pairs}
    for line in lines:
        name, _, numbers = line.partition(":")
        if name.strip() == END_INTERFACE:
            row = [int(number) for number in numbers.split()]
            keys = ("rx_bytes", "rx_packets", "rx_errors", "rx_dropped")
            values |= {f"link.{key}": row[place] for place, key in enumerate(keys)}
            keys = ("tx_bytes", "tx_packets", "tx_errors", "tx_dropped")
            values |= {f"link.{key}": row[8 + place] for place, key in enumerate(keys)}
    return values
