"""Blocks of addresses: beside each other, inside each other, and never somebody else's."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from itertools import islice
from typing import Any

import pytest
from streamgauge.errors import CannotRunError
from streamgauge.link_command.addresses import PROTOCOL, AddressBlock, Routes


def routes(*entries: dict[str, Any]) -> Routes:
    return Routes([{"dst": "default", "gateway": "192.168.1.1", "dev": "eth0"}, *entries])


def inside(network: IPv4Network, *entries: dict[str, Any]) -> Routes:
    return routes({"type": "blackhole", "dst": str(network), "protocol": str(PROTOCOL)}, *entries)


def test_a_block_avoids_every_route_and_address() -> None:
    taken = [
        {"dst": "100.64.0.0/16", "dev": "tailscale0"},
        {"type": "local", "dst": "100.66.1.1", "dev": "eth0"},
        {"dst": "100.71.0.7", "dev": "eth0"},
    ]
    for block in islice(routes(*taken).free(), 20):
        for entry in taken:
            assert not block.network.overlaps(IPv4Network(entry["dst"]))
        assert {IPv4Address(block.near), IPv4Address(block.client)} <= set(islice(block.network.hosts(), 2))


def test_where_the_shared_space_is_taken_private_addresses_serve() -> None:
    block = next(routes({"dst": "100.64.0.0/10", "dev": "tailscale0"}, {"dst": "10.0.0.0/16"}).free())
    assert block.network.subnet_of(IPv4Network("10.0.0.0/8"))
    assert not block.network.overlaps(IPv4Network("10.0.0.0/16"))


def test_links_inside_a_link_take_from_its_block_and_not_its_own_addresses() -> None:
    outer = next(routes().free())
    ends = [{"type": "local", "dst": outer.client}, {"dst": outer.near}]
    first = next(inside(outer.network, *ends).free())
    assert first.network.subnet_of(outer.network)
    assert IPv4Address(outer.near) not in first.network and IPv4Address(outer.client) not in first.network
    beside = next(inside(outer.network, *ends, {"dst": str(first.network)}).free())
    assert beside.network.subnet_of(outer.network) and not beside.network.overlaps(first.network)


def test_five_links_inside_each_other_and_then_a_clear_end() -> None:
    block = next(routes().free())
    for _ in range(4):
        ends = [{"type": "local", "dst": block.client}, {"dst": block.near}]
        block = next(inside(block.network, *ends).free())
        assert block.client in map(str, block.network.hosts())
    with pytest.raises(CannotRunError, match="5 links"):
        next(inside(block.network).free())


def test_other_peoples_blackholes_are_not_ours() -> None:
    assert routes({"type": "blackhole", "dst": "192.0.2.0/24", "protocol": "static"}).inside() is None
    network = IPv4Network("100.64.0.0/15")
    assert inside(network).inside() == network


def test_addresses_that_others_reach() -> None:
    found = routes(
        {"type": "local", "dst": "127.0.0.0/8", "dev": "lo"},
        {"type": "local", "dst": "192.168.1.5", "dev": "eth0"},
        {"type": "broadcast", "dst": "192.168.1.255", "dev": "eth0"},
    ).local()
    assert found == ["192.168.1.5"]


def test_ends_of_a_block() -> None:
    block = AddressBlock(IPv4Network("100.64.0.0/30"))
    assert (block.near, block.client) == ("100.64.0.1", "100.64.0.2")
