"""Players for browsers: which, in which version, where they lie, and how they come there.

``python -m streamgauge.systems.javascript`` fetches each as the package that its authors publish, by npm's
own client, and keeps the one file that a page loads, and the licence. Nothing is fetched unless that is run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgauge.errors import CannotRunError

__all__ = ["LIBRARIES", "Library", "fetch", "folder"]

_PINNED = Path(__file__).parent / "javascript.json"
_FETCH_S = 300


@dataclass(frozen=True, kw_only=True)
class Library:
    """A player's JavaScript, pinned."""

    #: Name of npm's package.
    package: str
    version: str
    #: Digest of the package's archive (W3C Subresource Integrity): another archive is refused.
    integrity: str
    #: File that a page loads, in the package.
    file: str
    #: Its licence's identifier (SPDX), and its place in the package; empty if it is in `file` alone.
    licence: str
    licence_file: str

    @property
    def path(self) -> Path:
        """Returns where the file lies once it is fetched."""
        return folder() / f"{self.package}-{self.version}.js"


def folder() -> Path:
    """Returns where the players lie: ``$STREAMGAUGE_PLAYERS``, or the package's own folder."""
    chosen = os.environ.get("STREAMGAUGE_PLAYERS")
    return Path(chosen) if chosen else Path(__file__).parent.parent / "_players"


def _pinned() -> dict[str, Library]:
    told: Mapping[str, Mapping[str, str]] = json.loads(_PINNED.read_text(encoding="utf-8"))
    return {name: Library(**one) for name, one in told.items()}


LIBRARIES: dict[str, Library] = _pinned()
"""By the name of the player."""


def fetch(library: Library) -> bool:
    """Fetches a library, unless it is there; whether it had to. Raises CannotRunError."""
    if library.path.is_file():
        return False
    named = f"{library.package}@{library.version}"
    npm = shutil.which("npm")
    if npm is None:
        raise CannotRunError(
            f"npm is missing, by which {named} is fetched: install it (Debian, Ubuntu: "
            "`apt-get install npm`)."
        )
    try:
        library.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.path.parent, prefix=".streamgauge-") as scratch:
            _unpack(library, _packed(npm, named, Path(scratch)))
    except OSError as error:
        raise CannotRunError(
            f"{library.path.parent}: cannot keep {named} ({error.strerror or error}); set "
            "STREAMGAUGE_PLAYERS to a folder that you may write to."
        ) from error
    return True


def _packed(npm: str, named: str, scratch: Path) -> Path:
    """Returns the package's archive, by npm's client."""
    command = [npm, "pack", "--silent", "--ignore-scripts", f"--pack-destination={scratch}", named]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=_FETCH_S
        )
        said = done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        said = [f"no answer within {_FETCH_S} s"]
    archives = list(scratch.glob("*.tgz"))
    if len(archives) != 1:
        why = said[-1] if said else "no message"
        raise CannotRunError(f"npm cannot fetch {named} ({why}); see whether `npm view {named}` answers.")
    return archives[0]


def _unpack(library: Library, archive: Path) -> None:
    """Keeps the required files of an archive that has the pinned digest."""
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != library.integrity:
        raise CannotRunError(
            f"{library.package}@{library.version} is not what was pinned ({found}); it is not used. See "
            f"whether {_PINNED.name} is whole."
        )
    with tarfile.open(archive) as packed:
        wanted = {library.file: library.path}
        if library.licence_file:
            wanted[library.licence_file] = library.path.with_suffix(".LICENSE")
        for name, kept in reversed(wanted.items()):
            source = packed.extractfile(f"package/{name}")
            assert source is not None
            part = archive.parent / kept.name
            part.write_bytes(source.read())
            part.chmod(0o644)
            part.replace(kept)


def main() -> int:
    """Fetches all; the exit status."""
    for name, library in LIBRARIES.items():
        try:
            was_fetched = fetch(library)
        except CannotRunError as error:
            print(f"streamgauge: {error}", file=sys.stderr)
            return error.exit_status
        print(f"{name}: {library.package} {library.version} {'fetched' if was_fetched else 'is there'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
