"""An nftables table that lasts as long as we do."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

from streamgauge.emu.engine import search_path
from streamgauge.errors import CannotRunError
from streamgauge.link_command.testbed import Testbed

__all__ = ["Table", "check_nft"]

READY_S = 5.0


def check_nft() -> None:
    """Raises CannotRunError if nft is missing."""
    if shutil.which("nft", path=search_path()) is None:
        raise CannotRunError("nft is missing; install it (Debian, Ubuntu: `apt-get install nftables`).")


class Table:
    """A table in one of a testbed's namespaces, held by an ``nft`` process that ends with us at any kind of
    end. The kernel then removes the table."""

    def __init__(self, testbed: Testbed, where: str, name: str, text: str) -> None:
        """Makes the table. Raises CannotRunError if the kernel refuses it."""
        self._testbed, self._where = testbed, where
        self._popen = testbed.enter(
            where,
            ["nft", "-i"],
            trusted=True,
            outlives=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            env=_tools(),
        )
        assert self._popen.stdin is not None
        self._popen.stdin.write(text + "\n")
        self._popen.stdin.flush()
        until = time.monotonic() + READY_S
        while name not in self._names():
            if self._popen.poll() is not None or time.monotonic() > until:
                self.close()
                raise CannotRunError(
                    "nft cannot divert packets here. It needs root, nft 1.0 or later and Linux 5.16 or later "
                    "with nf_tables, nft_fwd_netdev and nft_masq (try `nft list ruleset`)."
                )
            time.sleep(0.005)

    def _names(self) -> list[str]:
        listing = self._testbed.enter(
            self._where,
            ["nft", "list", "tables"],
            trusted=True,
            outlives=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            env=_tools(),
        )
        said, _ = listing.communicate()
        return [line.split()[-1] for line in said.splitlines() if line.strip()]

    def close(self) -> None:
        """Removes it."""
        if self._popen.poll() is None:
            assert self._popen.stdin is not None
            self._popen.stdin.close()
            try:
                self._popen.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait()


def _tools() -> dict[str, str]:
    return {**os.environ, "PATH": search_path()}
