"""Archives for a kernel to start from: cpio in its "newc" form, the same bytes for the same files.

Source: Linux's Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

_TRAILER = "TRAILER!!!"


def archive(files: dict[str, bytes | Path | None]) -> bytes:
    """The archive of `files`: by name in it, their content, the file or link that is taken as it is, or None
    for a folder. Folders above are made. All belong to root and are of 1970."""
    entries: dict[str, bytes | Path | None] = {}
    for name, content in sorted(files.items()):
        for above in reversed(Path(name).parents[:-1]):
            entries.setdefault(str(above), None)
        entries[name] = content
    return b"".join(_all(entries))


def _all(entries: dict[str, bytes | Path | None]) -> Iterator[bytes]:
    for number, (name, content) in enumerate(entries.items(), start=1):
        if content is None:
            yield _entry(number, name, stat.S_IFDIR | 0o755, b"")
        elif isinstance(content, bytes):
            yield _entry(number, name, stat.S_IFREG | 0o755, content)
        elif content.is_symlink():
            yield _entry(number, name, stat.S_IFLNK | 0o777, str(content.readlink()).encode())
        else:
            mode = 0o755 if content.stat().st_mode & 0o100 else 0o644
            yield _entry(number, name, stat.S_IFREG | mode, content.read_bytes())
    yield _entry(0, _TRAILER, 0, b"")


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    path = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return _padded(head) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
