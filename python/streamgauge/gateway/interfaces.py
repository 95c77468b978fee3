"""This machine's interfaces, and whether one may become a side of a gateway."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from streamgauge.emu.engine import search_path
from streamgauge.errors import CannotRunError

__all__ = ["Interface", "check_bridged", "check_routed", "find", "way_out"]

MTU = 1500
"""Longest IP packet that the emulator carries."""


@dataclass(frozen=True)
class Interface:
    """One interface as it is now."""

    name: str
    up: bool
    wireless: bool
    mtu: int
    addresses: tuple[str, ...]
    """IPv4 and IPv6 with their prefix lengths, without link-local ones."""
    is_way_out: bool
    """A default route leads through it."""
    is_caller: bool
    """The caller's own ssh session comes through it."""
    master: str | None
    """The bridge or bond that it belongs to."""
    merges: bool
    """Its hardware merges packets (large receive offload) in a way that cannot be undone."""

    @property
    def network(self) -> IPv4Interface | None:
        """Returns its first IPv4 address, with the network."""
        return next((IPv4Interface(one) for one in self.addresses if "." in one), None)


def find(option: str, name: str) -> Interface:
    """Returns the interface.

    Raises CannotRunError if it is not there or down.
    """
    known = {one["ifname"]: one for one in _ip("-d", "address", "show")}
    if name not in known:
        others = ", ".join(other for other in known if other != "lo") or "none"
        raise CannotRunError(f"{option} {name}: there is no such interface; there are: {others}.")
    said = known[name]
    addresses = tuple(
        f"{one['local']}/{one['prefixlen']}"
        for one in said.get("addr_info", ())
        if one.get("scope") != "link"
    )
    flags = said.get("flags", ())
    if name == "lo" or "LOOPBACK" in flags:
        raise CannotRunError(f"{option} {name}: loopback leads to no other machine; name another interface.")
    if "UP" not in flags or "NO-CARRIER" in flags:
        why = "it has no carrier; plug it in" if "UP" in flags else f"it is down; `ip link set {name} up`"
        raise CannotRunError(f"{option} {name}: {why}.")
    routes = [*_ip("-4", "route", "show", "default"), *_ip("-6", "route", "show", "default")]
    mine = {address.split("/")[0] for address in addresses}
    return Interface(
        name=name,
        up=True,
        wireless=(Path("/sys/class/net") / name / "phy80211").exists(),
        mtu=int(said["mtu"]),
        addresses=addresses,
        is_way_out=any(route.get("dev") == name for route in routes),
        is_caller=_session_address() in mine,
        master=said.get("master"),
        merges=_merges(name),
    )


def _ip(*words: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["ip", "-j", *words],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**os.environ, "PATH": search_path()},
    )
    if done.returncode != 0:
        raise CannotRunError(
            f"this machine's interfaces cannot be read: {done.stderr.strip()}; see `ip address`."
        )
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return found


def _session_address() -> str | None:
    """Returns this machine's address in the caller's ssh session."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else None


def _merges(name: str) -> bool:
    said = subprocess.run(
        ["ethtool", "-k", name],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**os.environ, "PATH": search_path()},
    ).stdout
    return any(line.strip() == "large-receive-offload: on" for line in said.splitlines())


def _check_any(option: str, one: Interface) -> None:
    if one.mtu > MTU:
        raise CannotRunError(
            f"{option} {one.name}: its MTU is {one.mtu} and the emulator's {MTU}; "
            f"`ip link set {one.name} mtu {MTU}`."
        )
    if one.merges:
        raise CannotRunError(
            f"{option} {one.name}: it merges packets (LRO); `ethtool -K {one.name} lro off`, then call again."
        )
    if one.master is not None:
        raise CannotRunError(
            f"{option} {one.name}: it is in use as a part of {one.master}; name another interface."
        )


def check_bridged(option: str, one: Interface) -> None:
    """Raises CannotRunError if the interface cannot be a side of a bridge."""
    if one.is_way_out or one.is_caller:
        why = "your session comes through it" if one.is_caller else "a default route leads through it"
        raise CannotRunError(
            f"{option} {one.name}: it is the way to this machine ({why}); use two other interfaces."
        )
    if one.addresses:
        raise CannotRunError(
            f"{option} {one.name}: it is in use, with address {one.addresses[0]}; "
            f"`ip address flush dev {one.name}` frees it."
        )
    _check_any(option, one)


def check_routed(option: str, one: Interface) -> None:
    """Raises CannotRunError if the interface cannot be the clients' side of a router."""
    if one.is_way_out:
        raise CannotRunError(
            f"{option} {one.name}: it is this machine's way out (a default route leads through it); "
            "name the clients' interface."
        )
    if one.network is None:
        raise CannotRunError(
            f"{option} {one.name}: it has no IPv4 address; `ip address add 192.168.50.1/24 dev {one.name}`, "
            "and serve DHCP there."
        )
    _check_any(option, one)


def way_out() -> list[str]:
    """Returns the interfaces of the IPv4 default routes. Raises CannotRunError if there is none."""
    found = list(
        dict.fromkeys(str(one["dev"]) for one in _ip("-4", "route", "show", "default") if "dev" in one)
    )
    if not found:
        raise CannotRunError("--lan: this machine has no default route, so it leads nowhere; add one.")
    return found
