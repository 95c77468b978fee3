"""A gateway's changes in words, before they are made."""

from __future__ import annotations

import os
from collections.abc import Iterator

from streamgauge.gateway import rules
from streamgauge.gateway.request import Bridged, Contained, Forwarded, GatewayRequest, Kind, Routed

__all__ = ["intended"]


def intended(kind: Kind, name: str, request: GatewayRequest, *, short: bool = False) -> Iterator[str]:
    """Yields the intended changes, a line each; `short` leaves out the tables' text.

    Args:
        kind: the form.
        name: of the nftables table.
        request: the link.
        short: as at the start of a gateway.
    """
    near, far = f"sgnear{os.getpid()}", f"sgfar{os.getpid()}"
    tables = []
    match kind:
        case Bridged(lan, wan):
            yield f"gateway: {lan.name} and {wan.name} become a bridge, with '{request.label}' as its wire"
            yield "layer: Ethernet; all frames without a VLAN tag pass the link, ARP and DHCP too"
            yield "DHCP and DNS: those of the network itself; this machine serves none"
            yield f"changes: two veth pairs ({near}, {far}), one nftables table, promiscuous mode of both"
            tables.append(rules.bridged(name, lan=lan.name, wan=wan.name, near=near, far=far))
        case Routed(lan, wan):
            network, inner = lan.network, f"sginner{os.getpid()}"
            assert network is not None
            yield f"gateway: clients of {lan.name} ({network.network}) reach {wan} through '{request.label}'"
            yield "layer: IPv4, with NAT before the link and behind it; IPv6 of the clients is dropped"
            yield f"DHCP: serve it on {lan.name} with {network.ip} as router, none is served here"
            yield f"DNS: asked at {network.ip} it passes beside the link; name a server beyond {wan} instead"
            pairs = f"two veth pairs ({inner}, sglink{os.getpid()})"
            yield f"changes: {pairs}, nftables tables, forwarding of {wan} while it lasts"
            tables.append(rules.routed(name, lan=lan.name, network=network, inner=inner))
        case Contained(given, pid, interface):
            yield f"gateway: {interface} of process {pid} ({given}) is behind '{request.label}'"
            yield "layer: IPv4; ARP passes beside the link, IPv6 is dropped"
            yield "DHCP and DNS: the container's own"
            yield f"changes, in its network alone: two veth pairs ({near}, {far}) and one nftables table"
            tables.append(rules.contained(name, interface=interface, near=near, far=far))
        case Forwarded(one):
            yield (
                f"gateway: port {one.port} of {one.address} (TCP and UDP) leads to "
                f"{one.host}:{one.server_port} through '{request.label}'"
            )
            yield "layer: transport; each TCP connection ends here, and a second one crosses the link"
            yield "DHCP and DNS: not concerned"
            yield "changes: none of this machine's network; a port is open"
    yield "at the end, SIGKILL included, all of this is undone"
    if not short:
        for text in tables:
            yield f"table: {text}"
