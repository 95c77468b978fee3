"""The nftables tables of a gateway, as text that can be read and tested without one.

All of them have the flag `owner`: the kernel removes them with the process that made them. They divert frames
at the hooks ``ingress`` and ``egress`` of single interfaces, before the machine's own filters and routes.
"""

from __future__ import annotations

from ipaddress import IPv4Interface

__all__ = ["bridged", "contained", "inner_pair", "masqueraded", "routed"]

OUTER, INNER = "169.254.83.1", "169.254.83.2"
"""Addresses of the pair between a routed gateway's clients and the link: link-local ones."""
CONTAINED = "169.254.83.3"
"""Address of the end that a container's packets come back by."""
_MARK = "0x5347"
INNER_MAC, OUTER_MAC = "02:53:47:00:00:04", "02:53:47:00:00:03"
"""Set, so that neighbours are known beforehand."""
_OFFLOADS = " ".join(f"{feature} off" for feature in ("tso", "gso", "gro", "tx", "rx", "sg"))


def _table(family: str, name: str, chains: list[str]) -> str:
    return f"table {family} {name} {{ flags owner; {'; '.join(chains)}; }}"


def _chain(name: str, hook: str, device: str, rules: list[str]) -> str:
    head = f'type filter hook {hook} device "{device}" priority 0; policy accept;'
    return f"chain {name} {{ {head} {'; '.join(rules)}; }}"


def bridged(name: str, *, lan: str, wan: str, near: str, far: str) -> str:
    """Returns the table of a bridge: each frame of `lan` leaves by `wan` and the other way round, both
    through the link. A frame with a VLAN tag is dropped: the emulator would lose the tag."""
    untagged = "vlan id 0-4095 drop"
    return _table(
        "netdev",
        name,
        [
            _chain("from_lan", "ingress", lan, [untagged, f'fwd to "{near}"']),
            _chain("from_wan", "ingress", wan, [untagged, f'fwd to "{far}"']),
            _chain("to_lan", "ingress", near, [f'fwd to "{lan}"']),
            _chain("to_wan", "ingress", far, [f'fwd to "{wan}"']),
        ],
    )


def routed(name: str, *, lan: str, network: IPv4Interface, inner: str) -> str:
    """Returns the table of a router's side towards its clients. IPv4 packets for others go to `INNER` by the
    interface `inner`. Those for this machine or their own network stay, and IPv6 for others is dropped: it
    would lead around the link."""
    stays = [
        "fib daddr type { local, broadcast, multicast } accept",
        "meta protocol ip6 drop",
        "meta protocol != ip accept",
        f"ip daddr {{ {network.network}, 169.254.0.0/16, 255.255.255.255 }} accept",
    ]
    return _table(
        "netdev",
        name,
        [
            _chain("from_lan", "ingress", lan, [*stays, f'fwd ip to {INNER} device "{inner}"']),
            _chain(
                "to_lan",
                "ingress",
                inner,
                ["meta protocol != ip accept", f'fwd ip to ip daddr device "{lan}"'],
            ),
        ],
    )


def masqueraded(name: str) -> str:
    """Returns the table of the link's own namespace: all clients have one address on the link."""
    head = "type nat hook postrouting priority srcnat; policy accept;"
    return _table("ip", name, [f'chain out {{ {head} oifname "eth0" masquerade; }}'])


def contained(name: str, *, interface: str, near: str, far: str) -> str:
    """Returns the table of a container's namespace: IPv4 packets of `interface` pass the link both ways. IPv6
    is dropped: it would lead around the link. ARP passes beside it."""
    ipv4 = ["meta protocol ip6 drop", "meta protocol != ip accept"]
    return _table(
        "netdev",
        name,
        [
            # A packet that comes back from the link leaves by the same interface, and must not re-enter.
            _chain("out", "egress", interface, [f"meta mark {_MARK} accept", *ipv4, f'fwd to "{near}"']),
            _chain("back", "ingress", far, [f'meta mark set {_MARK} fwd to "{interface}"']),
            _chain("in", "ingress", interface, [*ipv4, f'fwd to "{far}"']),
        ],
    )


def inner_pair(inner: str, network: IPv4Interface, client: str) -> tuple[str, str]:
    """Returns the shell lines that join a routed gateway's clients to the link: those for this machine's
    network, and those for the link's own namespace.

    Args:
        inner: the name of this machine's end.
        network: the clients' network.
        client: a path of the link's own namespace.
    """
    here = [
        f"ip link add {inner} address {OUTER_MAC} type veth "
        f"peer name lan0 address {INNER_MAC} netns {client}",
        f"[ ! -e /proc/sys/net/ipv6/conf/{inner} ] || echo 1 > /proc/sys/net/ipv6/conf/{inner}/disable_ipv6",
        f"ethtool -K {inner} {_OFFLOADS} >/dev/null",
        f"ip link set dev {inner} mtu 1500 up",
        f"ip neighbour replace {INNER} lladdr {INNER_MAC} dev {inner} nud permanent",
    ]
    there = [
        "[ ! -e /proc/sys/net/ipv6/conf/lan0 ] || echo 1 > /proc/sys/net/ipv6/conf/lan0/disable_ipv6",
        f"ethtool -K lan0 {_OFFLOADS} >/dev/null",
        "ip link set dev lan0 mtu 1500 up",
        f"ip neighbour replace {OUTER} lladdr {OUTER_MAC} dev lan0 nud permanent",
        f"ip route add {network.network} via {OUTER} dev lan0 onlink",
    ]
    return "\n".join(here), "\n".join(there)
