"""How names are found inside a link: /etc/resolv.conf and /etc/nsswitch.conf as the command sees them.

Name servers that are asked through a Unix socket (systemd-resolved, nscd) would carry a question around the
link and out of the machine, since such sockets know no network namespaces. So names come from files and,
where the link leads out of the machine, from name servers that are reached through it.
"""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

__all__ = ["files_to_show", "name_servers"]

_RESOLV, _NSSWITCH, _NSCD = Path("/etc/resolv.conf"), Path("/etc/nsswitch.conf"), Path("/run/nscd")
_UPSTREAM = Path("/run/systemd/resolve/resolv.conf")
"""Where systemd-resolved writes the servers behind its stub."""


def name_servers() -> list[str]:
    """IPv4 name servers of this machine that are not the machine itself, in order."""
    found: list[str] = []
    for file in (_RESOLV, _UPSTREAM):
        if not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] == "nameserver":
                try:
                    address = IPv4Address(words[1])
                except AddressValueError:
                    continue
                if not address.is_loopback and str(address) not in found:
                    found.append(str(address))
        if found:
            break
    return found


def files_to_show(folder: Path, *, servers: list[str]) -> list[tuple[Path, Path]]:
    """Writes the command's versions into `folder`; pairs of a file and the file that it stands in for."""
    pairs = []
    if _RESOLV.exists():
        lines = ["# by streamgauge link"]
        lines += [f"nameserver {server}" for server in servers]
        # Without a line glibc asks 127.0.0.1, where nobody listens in here: names fail at once.
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
