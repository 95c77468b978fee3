"""Addresses that collide with no other's, also where links lie within links and beside each other.

A link takes a block of addresses. Its own two ends use the first of them, and links inside it take their
blocks from the rest, so that the far end reaches all of them by one route. Which block a namespace may take
from is written in the namespace itself: a route of the kernel's type *blackhole* with our protocol number.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any

from streamgauge.errors import CannotRunError

__all__ = ["PROTOCOL", "AddressBlock", "Routes", "fresh_block"]

PROTOCOL = 83
"""Marks our routes (``/etc/iproute2/rt_protos`` leaves the number to users)."""
_POOLS = (IPv4Network("100.64.0.0/10"), IPv4Network("10.0.0.0/8"))
"""Shared address space (RFC 6598) first: few machines have it on an interface. Then private addresses."""
_PREFIXES = (15, 20, 24, 27, 30)
"""Prefixes of a link at top level, of one inside it, and so on."""


@dataclass(frozen=True)
class AddressBlock:
    """The addresses of one link."""

    network: IPv4Network

    @property
    def near(self) -> str:
        """Returns the far end's own address, seen from the command: the server's."""
        return str(self.network[1])

    @property
    def client(self) -> str:
        """Returns the command's own address."""
        return str(self.network[2])


def fresh_block() -> AddressBlock:
    """Returns a block for a link with two namespaces of its own as ends: no other program sees its
    addresses."""
    return AddressBlock(next(_POOLS[0].subnets(new_prefix=_PREFIXES[0])))


class Routes:
    """The IPv4 routes and addresses of the caller's namespace."""

    def __init__(self, entries: Sequence[dict[str, Any]]) -> None:
        self._entries = entries

    @classmethod
    def read(cls) -> Routes:
        """As they are now."""
        done = subprocess.run(
            ["ip", "-j", "-4", "route", "show", "table", "all"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise CannotRunError(f"cannot read this machine's routes: {done.stderr.strip()}; see `ip route`.")
        return cls(json.loads(done.stdout or "[]"))

    def inside(self) -> IPv4Network | None:
        """Returns the block of the link that we are inside; None outside of all."""
        for entry in self._entries:
            if entry.get("type") == "blackhole" and str(entry.get("protocol")) == str(PROTOCOL):
                return IPv4Network(entry["dst"])
        return None

    def local(self) -> list[str]:
        """Returns the addresses of this namespace that others can reach."""
        return sorted(
            {
                entry["dst"]
                for entry in self._entries
                if entry.get("type") == "local" and not entry["dst"].startswith("127.")
            }
        )

    def free(self) -> Iterator[AddressBlock]:
        """Yields blocks for a link with this namespace as its far end, the best first.

        Raises CannotRunError if links are nested more deeply than there are addresses for.
        """
        within = self.inside()
        if within is None:
            pools, prefix = list(_POOLS), _PREFIXES[0]
        else:
            longer = [length for length in _PREFIXES if length > within.prefixlen]
            if not longer:
                raise CannotRunError(
                    f"{len(_PREFIXES)} links inside each other are the most; join some of their paths."
                )
            pools, prefix = [within], longer[0]
        used = self._used(within)
        for pool in pools:
            for network in pool.subnets(new_prefix=prefix):
                if not any(network.overlaps(other) for other in used):
                    yield AddressBlock(network)

    def _used(self, within: IPv4Network | None) -> list[IPv4Network]:
        found = []
        for entry in self._entries:
            if entry["dst"] == "default":
                continue
            network = IPv4Network(entry["dst"], strict=False)
            if network != within:
                found.append(network)
        return found
