"""A route out of the machine for a link with the caller's own namespace as its far end, and its undoing.

Two things are needed, and only these are done: the command's addresses are shown as the machine's own
(masquerading, in one nftables table), and the interface towards the outside may forward, if it might not
before. The table belongs to an ``nft`` process that reads from a pipe of ours (``flags owner``): when we
end, however that be, the process ends and the kernel removes the table. A `Guard` puts the interface's
setting back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from streamgauge.emu.engine import search_path
from streamgauge.errors import CannotRunError
from streamgauge.link_command.addresses import AddressBlock
from streamgauge.link_command.commands import INTERFACE
from streamgauge.link_command.guard import Guard

__all__ = ["Internet", "check_internet", "table"]

_TABLE = "streamgauge_link_"
_CHANGED = "_fwd"
"""Ends the name of a table of a link that switched on an interface's forwarding."""


def _tools() -> dict[str, str]:
    return {**os.environ, "PATH": search_path()}


def check_internet(option: str = "--internet") -> None:
    """CannotRunError with the remedy if there is no way out that we could open."""
    if shutil.which("nft", path=search_path()) is None:
        raise CannotRunError(
            f"{option} needs nft, which is missing; install it (Debian, Ubuntu: `apt-get install nftables`)."
        )
    if not _outward():
        raise CannotRunError(f"{option}: this namespace has no default route, so it leads nowhere itself.")


def _outward() -> list[str]:
    """Interfaces of the default routes."""
    said = subprocess.run(
        ["ip", "-j", "-4", "route", "show", "default"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env=_tools(),
    ).stdout
    return sorted({route["dev"] for route in json.loads(said or "[]") if "dev" in route})


def table(name: str, block: AddressBlock, interface: str, opened: Sequence[str]) -> str:
    """Returns the nftables table: masquerading, and no more forwarding on `opened` interfaces than the link
    needs."""
    rules = [
        f"table ip {name} {{ flags owner;",
        "chain out { type nat hook postrouting priority srcnat; policy accept;",
        f'ip saddr {block.network} oifname != "{interface}" masquerade; }};',
        "chain through { type filter hook forward priority filter; policy accept;",
    ]
    for outward in opened:
        rules += [
            f'iifname "{outward}" oifname != "{INTERFACE}*" drop;',
            f'iifname "{outward}" ct state != {{ established, related }} drop;',
        ]
    return " ".join([*rules, "}; }"])


class Internet:
    """The way out, open until `close`."""

    def __init__(self, block: AddressBlock, interface: str) -> None:
        """Opens it for a link of these addresses with `interface` as its far end.

        Raises CannotRunError, with the remedy, if the kernel or the rights do not allow it.
        """
        self._guard: Guard | None = None
        settings = {one: Path(f"/proc/sys/net/ipv4/conf/{one}/forwarding") for one in _outward()}
        by_us = _CHANGED in "".join(_tables())
        opened = [
            one for one, file in settings.items() if file.read_text(encoding="ascii").strip() == "0" or by_us
        ]
        name = f"{_TABLE}{os.getpid()}{_CHANGED if opened else ''}"
        self._nft = subprocess.Popen(
            ["nft", "-i"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            env=_tools(),
        )
        assert self._nft.stdin is not None
        self._nft.stdin.write(table(name, block, interface, opened) + "\n")
        self._nft.stdin.flush()
        self._wait_for(name)
        if opened:
            # The last of several links puts it back.
            back = "; ".join(f"echo 0 > {settings[one]}" for one in opened)
            last = (
                f"nft list tables ip | grep -v ' {name}$' | grep -q '{_TABLE}.*{_CHANGED}$' || {{ {back}; }}"
            )
            self._guard = Guard([last], _tools())
            for one in opened:
                settings[one].write_text("1\n", encoding="ascii")

    def _wait_for(self, name: str) -> None:
        until = time.monotonic() + 5
        while not any(one == name for one in _tables()):
            if self._nft.poll() is not None or time.monotonic() > until:
                self.close()
                raise CannotRunError(
                    "--internet: nft cannot set up masquerading here. It needs root, nft 1.0 or later and a "
                    "kernel with nf_tables and nft_masq (try `nft list ruleset`)."
                )
            time.sleep(0.005)

    def close(self) -> None:
        """Closes it."""
        if self._nft.poll() is None:
            assert self._nft.stdin is not None
            self._nft.stdin.close()
            try:
                self._nft.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._nft.kill()
                self._nft.wait()
        if self._guard is not None:
            self._guard.close()


def _tables() -> list[str]:
    """Names of the tables for IPv4."""
    said = subprocess.run(
        ["nft", "list", "tables", "ip"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env=_tools(),
    )
    return [line.split()[-1] for line in said.stdout.splitlines() if line.strip()]
