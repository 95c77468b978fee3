"""How names are found inside a link: /etc/resolv.conf and /etc/nsswitch.conf as the command sees them.

Name servers behind a Unix socket (systemd-resolved, nscd) would carry a question around the link and out of
the machine, since such sockets ignore network namespaces. Names are therefore from files and, where the link
leads out of the machine, from name servers that are reached through it.
"""

from __future__ import annotations

from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

__all__ = ["files_to_show", "name_servers"]

_RESOLV, _NSSWITCH, _NSCD = Path("/etc/resolv.conf"), Path("/etc/nsswitch.conf"), Path("/run/nscd")
_UPSTREAM = Path("/run/systemd/resolve/resolv.conf")
"""Where systemd-resolved writes the servers behind its stub."""


def name_servers(resolv: Path = _RESOLV, upstream: Path = _UPSTREAM) -> list[str]:
    """IPv4 name servers of this machine that are not the machine itself, in order.

    Args:
        resolv: the file that the machine's programs read.
        upstream: read instead if `resolv` names the machine itself, as systemd-resolved does.
    """
    said = _servers(resolv)
    if any(server.is_loopback for server in said):
        said += _servers(upstream)
    return [str(server) for server in dict.fromkeys(said) if not server.is_loopback]


def _servers(file: Path) -> list[IPv4Address]:
    found: list[IPv4Address] = []
    if file.is_file():
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] == "nameserver":
                with suppress(AddressValueError):  # an IPv6 address
                    found.append(IPv4Address(words[1]))
    return found


def files_to_show(folder: Path, *, servers: list[str]) -> list[tuple[Path, Path]]:
    """Writes the command's versions into `folder`; returns pairs of a file and the file that it replaces."""
    pairs = []
    if _RESOLV.exists():
        lines = ["# by streamgauge link"]
        lines += [f"nameserver {server}" for server in servers]
        # Without a line glibc asks 127.0.0.1, where no server listens in here: names fail at once.
        shown = folder / "resolv.conf"
        shown.write_text("\n".join(lines) + "\n", encoding="ascii")
        pairs.append((shown, _RESOLV))
    if _NSSWITCH.is_file():
        said = _NSSWITCH.read_text(encoding="utf-8", errors="replace").splitlines()
        kept = [line for line in said if line.partition("#")[0].partition(":")[0].strip() != "hosts"]
        shown = folder / "nsswitch.conf"
        shown.write_text("\n".join([*kept, "hosts: files dns"]) + "\n", encoding="utf-8")
        pairs.append((shown, _NSSWITCH))
    if _NSCD.is_dir():
        empty = folder / "nscd"
        empty.mkdir()
        pairs.append((empty, _NSCD))
    return pairs
