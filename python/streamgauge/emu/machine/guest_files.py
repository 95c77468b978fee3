"""Files of this machine that a guest gets: those that a trial names, and folders of one's own programs."""

from __future__ import annotations

import hashlib
import os
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.emu.machine.snapshot import JOB_BYTES
from streamgauge.errors import CannotRunError

__all__ = ["GUESTS_OWN", "GuestFiles", "brought_by", "digest_of"]

GUESTS_OWN = ("run", "proc", "sys", "dev", "usr", "bin", "sbin", "lib", "etc")
"""Folders, below the root, that the guest has itself."""


@dataclass(frozen=True)
class GuestFiles:
    """The files of this machine that a guest has."""

    #: The files and folders of the guest, by their paths there. A link here is a file there.
    files: Mapping[Path, Path] = field(default_factory=dict)
    #: Folders that are at the same place there, their links links.
    brought: Collection[Path] = ()
    #: Folders of the guest's that are there even if nothing is in them.
    made: Collection[Path] = ()

    def add_to(self, tar: tarfile.TarFile) -> None:
        """Puts them into the guest's archive, with the same bytes for every user and time.

        Raises CannotRunError for a file that is not there or cannot be read, or has the place of a folder of
        the guest's own.
        """
        # A folder that is brought by a link to it is a folder there.
        for folder in sorted({*self.made, *self.brought}):
            made = tarfile.TarInfo(f"files{folder}")
            made.type, made.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(made)
        for place, file in sorted(self.files.items()):
            if place.parts[1] in GUESTS_OWN:
                raise CannotRunError(
                    f"{place}: the virtual machine has a /{place.parts[1]} of its own; move it to "
                    "another folder."
                )
            _add(tar, file.resolve(), place)
        tar.dereference = False
        for folder in sorted(self.brought):
            if not folder.is_dir():
                raise CannotRunError(f"{folder}: is not there, and the trial needs it.")
            for file in sorted(_inside(folder)):
                tar.inodes = {}  # type: ignore[attr-defined]  # a second name of a file is a second file
                _add(tar, file, file, recursive=False)


def _add(tar: tarfile.TarFile, file: Path, place: Path, *, recursive: bool = True) -> None:
    try:
        tar.add(file, f"files{place}", recursive=recursive, filter=_as_roots)
    except FileNotFoundError:
        raise CannotRunError(f"{file}: is not there, and the trial needs it.") from None
    except PermissionError as error:
        raise CannotRunError(f"{error.filename}: may not be read, and the trial needs it.") from None


def _as_roots(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode |= 0o444 | (0o111 if member.mode & 0o100 else 0)
    return member


def brought_by(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Returns the folders by their absolute paths, each once and none within another.

    Raises CannotRunError for a path that is no folder, for the guest's own folders, and for more than fit.
    """
    found: list[Path] = []
    for folder in folders:
        place = Path(os.path.abspath(folder))  # noqa: PTH100  # without "..", and links as they are named
        if not place.is_dir():
            raise CannotRunError(f"--with {folder}: there is no such folder.")
        if len(place.parts) < 2 or place.parts[1] in GUESTS_OWN:
            raise CannotRunError(
                f"--with {folder}: the virtual machine has a /{''.join(place.parts[1:2])} of its own. Copy "
                "the programs into another folder, such as /opt/mine, and give --with that one."
            )
        found.append(place)
    kept = tuple(
        sorted(
            place
            for place in set(found)
            if not any(place.is_relative_to(one) for one in found if one != place)
        )
    )
    size = sum(file.lstat().st_size for place in kept for file in _inside(place) if not file.is_dir())
    if size > JOB_BYTES:
        raise CannotRunError(
            f"--with {' --with '.join(map(str, kept))}: {size / 1e9:.1f} GB, and a job of the virtual "
            f"machine has room for {JOB_BYTES / 1e9:.1f} GB; bring the programs alone."
        )
    return kept


def digest_of(folder: Path) -> str:
    """Returns the SHA-256 of a folder's content as the guest sees it: names, executability, contents, and
    targets of links. The times of files and their owners do not count."""
    found = hashlib.sha256()
    for file in sorted(_inside(folder)):
        kind, said = "file", b""
        if file.is_symlink():
            kind, said = "link", os.fsencode(file.readlink())
        elif file.is_dir():
            kind = "folder"
        elif file.is_file():
            kind = "program" if file.stat().st_mode & 0o100 else "file"
            said = file.read_bytes()
        found.update(b"%s\0%s\0%d\0" % (os.fsencode(file.relative_to(folder)), kind.encode(), len(said)))
        found.update(said)
    return found.hexdigest()


def _inside(folder: Path) -> Iterator[Path]:
    """Lists the content of a folder; it follows no link."""
    for at, folders, files in os.walk(folder):
        yield from (Path(at) / name for name in folders + files)
