"""Reads files from folders of tested programs.

Such a program runs without privileges and may write anything there: symbolic links to files that root alone
may read, pipes on which a reader waits for ever, hard links to another program's file. The reader has
privileges. It therefore opens every part of a path by itself, from the folder down, follows no symbolic link,
crosses no mount, never waits, and reads regular files that have one name, up to a bound.

``openat2`` (Linux 5.6) resolves such paths in one call. Python has no wrapper for it, and a part at a time is
as strict on every kernel.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

__all__ = [
    "UNFIT",
    "FileRefusedError",
    "FoundFile",
    "exists_in",
    "files_in",
    "folder_of",
    "new_in",
    "printable",
    "read_in",
    "tail_of",
    "write_in",
]

UNFIT = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
"""Raised where data of a program has another form than its reader expects."""
MOST_FILES = 5_000
"""Entries that `files_in` looks at below one folder."""
MOST_DEPTH = 16
"""Folders within one another that it enters."""
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_SPARSE_FROM_BYTES = 1 << 20
_SPARSE_SHARE = 16
"""A longer file with less than this part of its bytes on disk is refused: it is holes."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class FileRefusedError(Exception):
    """A file that is not read; the text completes a sentence that begins with its name."""


@dataclass(frozen=True)
class FoundFile:
    """The first bytes of a file."""

    data: bytes
    size: int
    """Length of the whole file, bytes."""

    @property
    def is_cut(self) -> bool:
        """Returns whether the file has more bytes than `data`."""
        return self.size > len(self.data)


def read_in(folder: Path, name: PurePath | str, largest: int) -> FoundFile | None:
    """Reads up to `largest` bytes of the file `name` below `folder`; None if it does not exist.

    Raises FileRefusedError if it is no regular file of its own, or cannot be read.
    """
    descriptor = _opened(folder, name)
    if descriptor is None:
        return None
    try:
        size = os.fstat(descriptor).st_size
        data = _read(descriptor, min(largest, size) if size else largest)
        return FoundFile(data, max(size, len(data)))
    except OSError as error:
        raise FileRefusedError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def tail_of(folder: Path, name: PurePath | str, most: int) -> bytes:
    """Reads the last `most` bytes of a file; empty if it does not exist. Raises FileRefusedError."""
    descriptor = _opened(folder, name)
    if descriptor is None:
        return b""
    try:
        os.lseek(descriptor, max(0, os.fstat(descriptor).st_size - most), os.SEEK_SET)
        return _read(descriptor, most)
    except OSError as error:
        raise FileRefusedError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)


def exists_in(folder: Path, name: PurePath | str, *, filled: bool = False) -> bool:
    """Returns whether `read_in` could read the file; with `filled`, whether it also has any bytes."""
    try:
        descriptor = _opened(folder, name)
    except FileRefusedError:
        return False
    if descriptor is None:
        return False
    try:
        return not filled or os.fstat(descriptor).st_size > 0
    finally:
        os.close(descriptor)


def folder_of(folder: Path) -> int:
    """Opens a folder with a parent that belongs to no program, through no link; returns a descriptor.

    Raises FileRefusedError if it is no folder.
    """
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    except OSError as error:
        if folder.is_symlink():
            raise FileRefusedError("is a symbolic link, which is not followed") from None
        raise FileRefusedError(f"cannot be opened: {error.strerror}") from None


def new_in(directory: int, name: str) -> int:
    """Makes a file in an open folder, in place of any file with that name, and through no link.

    Returns a descriptor to write to. Raises FileRefusedError if it cannot.
    """
    try:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644, dir_fd=directory)
    except OSError as error:
        raise FileRefusedError(f"cannot be written: {error.strerror}") from None


def write_in(folder: Path, name: str, data: bytes) -> None:
    """Writes a file into `folder`, in place of any file with that name, and through no link.

    Raises FileRefusedError if it cannot.
    """
    directory = folder_of(folder)
    try:
        with os.fdopen(new_in(directory, name), "wb") as target:
            target.write(data)
    except OSError as error:
        raise FileRefusedError(f"cannot be written: {error.strerror}") from None
    finally:
        os.close(directory)


def files_in(folder: Path, largest: int) -> Iterator[tuple[PurePath, FoundFile | FileRefusedError]]:
    """Reads every file below `folder`, in order of paths, up to `largest` bytes each.

    Yields the error in place of a file that is refused. Empty files are left out. An entry without a path
    replaces files that are left out because there are too many.
    """
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    except FileNotFoundError:
        return
    except OSError as error:
        yield PurePath(), FileRefusedError(f"cannot be read: {error.strerror}")
        return
    left = [MOST_FILES]
    try:
        yield from _walk(directory, PurePath(), left, largest)
    finally:
        os.close(directory)
    if left[0] < 0:
        yield PurePath(), FileRefusedError(f"has more than {MOST_FILES} files; the rest is not read")


def _walk(
    directory: int, below: PurePath, left: list[int], largest: int
) -> Iterator[tuple[PurePath, FoundFile | FileRefusedError]]:
    names: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    break
                names.append(entry.name)
    except OSError as error:
        yield below, FileRefusedError(f"cannot be read: {error.strerror}")
    for name in sorted(names):
        place = below / name
        try:
            is_folder = stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
            if not is_folder:
                descriptor = _open_regular(directory, name)
                try:
                    size = os.fstat(descriptor).st_size
                    if size:
                        yield place, FoundFile(_read(descriptor, min(size, largest)), size)
                finally:
                    os.close(descriptor)
                continue
            if len(place.parts) > MOST_DEPTH:
                yield place, FileRefusedError(f"is more than {MOST_DEPTH} folders deep")
                continue
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=directory)
        except FileNotFoundError:
            continue
        except FileRefusedError as error:
            yield place, error
            continue
        except OSError as error:
            yield place, FileRefusedError(f"cannot be read: {error.strerror}")
            continue
        try:
            if os.fstat(inner).st_dev == os.fstat(directory).st_dev:
                yield from _walk(inner, place, left, largest)
            else:
                yield place, FileRefusedError("is on another file system")
        finally:
            os.close(inner)


def _opened(folder: Path, name: PurePath | str) -> int | None:
    """Opens the file `name` below `folder` for reading, a part of its path at a time."""
    *parents, last = PurePath(name).parts
    if any(part in ("..", "/") for part in (*parents, last)):
        raise FileRefusedError("is not below its folder")
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileRefusedError(f"cannot be read: {error.strerror}") from None
    try:
        for part in parents:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=directory)
            crosses = os.fstat(inner).st_dev != os.fstat(directory).st_dev
            os.close(directory)
            directory = inner
            if crosses:
                raise FileRefusedError("is on another file system")
        return _open_regular(directory, last)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileRefusedError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(directory)


def _open_regular(directory: int, name: str) -> int:
    """Opens a regular file of its own. Raises FileNotFoundError, FileRefusedError."""
    try:
        descriptor = os.open(name, os.O_RDONLY | _FLAGS, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as error:
        # A link gives ELOOP, a socket ENXIO: the kind is the clearer reason.
        raise FileRefusedError(_kind(directory, name) or _reason(error)) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileRefusedError(
                f"is {_KINDS.get(stat.S_IFMT(found.st_mode), 'no regular file')}, not a file"
            )
        if found.st_dev != os.fstat(directory).st_dev:
            raise FileRefusedError("is on another file system")
        if found.st_nlink > 1:
            raise FileRefusedError("has a second name (a hard link), and may be another program's file")
        if found.st_size > _SPARSE_FROM_BYTES and found.st_blocks * 512 < found.st_size // _SPARSE_SHARE:
            raise FileRefusedError(f"has {found.st_size} bytes, nearly all of them holes (a sparse file)")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _kind(directory: int, name: str) -> str | None:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except OSError:
        return None
    if stat.S_ISLNK(mode):
        return "is a symbolic link, which is not followed"
    kind = _KINDS.get(stat.S_IFMT(mode))
    return None if kind is None else f"is {kind}, not a file"


def _reason(error: OSError) -> str:
    if error.errno == errno.EWOULDBLOCK:
        return "cannot be read: a program holds a lease on it"
    return f"cannot be read: {error.strerror}"


def _read(descriptor: int, most: int) -> bytes:
    parts = []
    while most > 0 and (part := os.read(descriptor, min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def printable(text: str, most: int = 300) -> str:
    """Returns a program's text as one line that terminals and records can hold.

    Escapes control characters and bytes that are no characters, and cuts it after `most` characters.
    """
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "replace").decode("ascii")
        for letter in text[: most + 1]
    )
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
