"""MPlayer, without a window or a loudspeaker."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def mplayer(source: str, *options: str) -> None:
    """Plays, as fast as it comes."""
    if shutil.which("mplayer") is None:
        pytest.skip("mplayer is not here (scripts/packages-tests.txt)")
    command = ["mplayer", "-noconfig", "all", "-really-quiet", "-benchmark", *options, source]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)


def pictures(source: str, folder: Path, *options: str) -> list[str]:
    """The digest of every picture that it shows, in order."""
    digests = folder / "digests"
    digests.unlink(missing_ok=True)
    mplayer(source, *options, "-nosound", "-vo", f"md5sum:outfile={digests}")
    return digests.read_text().splitlines()
