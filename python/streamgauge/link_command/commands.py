"""The shell lines that build a link's network, as text that can be read and tested without one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from streamgauge.link_command.addresses import PROTOCOL, AddressBlock

__all__ = ["CLIENT_MAC", "INTERFACE", "NEAR_MAC", "caller_end", "inside", "segment_ends"]

INTERFACE = "sglink"
"""How the names of far ends in a caller's own namespace begin."""

CLIENT_MAC, NEAR_MAC = "02:53:47:00:00:02", "02:53:47:00:00:01"
"""Set, not drawn, so that neighbours are known beforehand and no udev rule changes them."""

_OFFLOADS = " ".join(f"{feature} off" for feature in ("tso", "gso", "gro", "tx", "rx", "sg"))


def inside(engine: str, block: AddressBlock, *, ids: tuple[int, int] | None, fresh: bool,
           routes: Sequence[str], socket: int, config: str, segment: bool = False) -> str:  # fmt: skip
    """Returns the sandbox's whole work: namespaces, hand-over, and, at the launcher's signal, the emulator.

    Args:
        engine: the executable.
        block: the link's addresses.
        ids: user and group that the command has, if it gets a user namespace of its own.
        fresh: whether the far end is a namespace of ours; else the launcher brings the interface `server`
            here.
        routes: destinations that the client reaches through the far end, besides its address.
        socket: where the descriptors go.
        config: the emulator's configuration file.
        segment: whether the launcher brings both interfaces, `server` and `client`, and no namespace is made.
    """
    quoted = shlex.quote(engine)
    shown = [] if ids is None else ["--uid", str(ids[0]), "--gid", str(ids[1])]
    names = [] if segment else ["client", *(["server"] if fresh else [])]
    lines = [
        "set -e",
        f"{quoted} netns --socket {socket} {' '.join([*shown, *names])}",
    ]
    if not segment:
        lines += [
            *_batch([], [line for name in names for line in _pair(name)]),
            *_end(quoted, "client", "eth0", ["echo 1 > /proc/sys/net/ipv4/ip_forward"]),
            *_batch(["-n", "client"], _client(block, routes)),
        ]
    if fresh and not segment:
        lines += [*_end(quoted, "server", "eth0", []), *_batch(["-n", "server"], _near("eth0", block))]
    return "\n".join([
        *lines,
        # The launcher's first line. The rest is for the emulator.
        "read -r go",
        "for f in server client; do",
        "  [ ! -e /proc/sys/net/ipv6/conf/$f ] || echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6",
        f"  ethtool -K $f {_OFFLOADS} >/dev/null",
        "  ip link set dev $f mtu 1500 up",
        "done >&2",
        f"exec {quoted} link --config {shlex.quote(config)}",
    ]) + "\n"  # fmt: skip


def caller_end(interface: str, block: AddressBlock, router: str, *, forwards: bool) -> str:
    """Returns the far end in the caller's own namespace.

    Args:
        interface: its name.
        block: the link's addresses.
        router: a path of the sandbox's network namespace.
        forwards: whether packets from the link may be forwarded elsewhere.
    """
    pair = f"link add {interface} address {NEAR_MAC} type veth peer name server netns {router}"
    return "\n".join([
        "set -e",
        *_batch([], [pair]),
        *_settle(interface, [f"echo {int(forwards)} > /proc/sys/net/ipv4/conf/{interface}/forwarding"]),
        *_batch([], _near(interface, block)),
    ]) + "\n"  # fmt: skip


def segment_ends(near: str, far: str, router: str) -> str:
    """Returns both ends of a link in one namespace, without addresses.

    Args:
        near: the name of the end towards the clients.
        far: the name of the end towards the servers.
        router: a path of the sandbox's network namespace.
    """
    # Another namespace's filter may be stricter: packets of any source come back here.
    loose = [f"echo 2 > /proc/sys/net/ipv4/conf/{end}/rp_filter" for end in (near, far)]
    return "\n".join([
        "set -e",
        *_batch([], [
            f"link add {near} type veth peer name client netns {router}",
            f"link add {far} type veth peer name server netns {router}",
        ]),
        *_settle(near, loose[:1]),
        *_settle(far, loose[1:]),
    ]) + "\n"  # fmt: skip


def _pair(name: str) -> Iterable[str]:
    mac = CLIENT_MAC if name == "client" else NEAR_MAC
    yield f"link add {name} type veth peer name eth0 address {mac} netns {name}"


def _client(block: AddressBlock, routes: Sequence[str]) -> Iterable[str]:
    yield f"address add {block.client}/32 dev eth0"
    yield f"neighbour replace {block.near} lladdr {NEAR_MAC} dev eth0 nud permanent"
    yield f"route add {block.near}/32 dev eth0 src {block.client}"
    # Links inside this one take their addresses from here; all others are dropped.
    yield f"route add blackhole {block.network} proto {PROTOCOL}"
    for destination in routes:
        yield f"route add {destination} via {block.near} dev eth0 src {block.client}"


def _near(interface: str, block: AddressBlock) -> Iterable[str]:
    yield f"address add {block.near}/32 dev {interface}"
    yield f"neighbour replace {block.client} lladdr {CLIENT_MAC} dev {interface} nud permanent"
    yield f"route add {block.client}/32 dev {interface} src {block.near}"
    yield f"route add {block.network} via {block.client} dev {interface} src {block.near}"


def _settle(interface: str, more: Sequence[str]) -> list[str]:
    """In the interface's namespace: no frames of its own, frames as they are on the wire, up."""
    ipv6 = f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"
    return [
        f"[ ! -e {ipv6} ] || echo 1 > {ipv6}",
        f"ethtool -K {interface} {_OFFLOADS} >/dev/null",
        *more,
        f"ip link set dev {interface} mtu 1500 up",
    ]


def _end(engine: str, namespace: str, interface: str, more: Sequence[str]) -> list[str]:
    """Runs `_settle` in a namespace of the sandbox."""
    script = "\n".join([
        "set -e",
        # A user's command may listen where root's could.
        "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start",
        *more,
        *_settle(interface, []),
    ])  # fmt: skip
    return [f"{engine} run-as --keep-privileges --netns {namespace} -- /bin/sh -c {shlex.quote(script)}"]


def _batch(options: Sequence[str], commands: Iterable[str]) -> list[str]:
    return [f"ip {' '.join([*options, '-batch', '-'])} <<'END'", *commands, "END"]
