"""The exchange of host and guest in a module of memory: a head, and a tar archive."""

from __future__ import annotations

import struct

HEAD = 4096
"""Bytes before the archive."""
PARCEL_JOB, PARCEL_RESULT = b"SGJOB001", b"SGDONE01"
_FORM = struct.Struct("<8sQ")


def head_of(kind: bytes, length: int) -> bytes:
    """The head of an archive of `length` bytes."""
    return _FORM.pack(kind, length).ljust(HEAD, b"\0")


def read_head(head: bytes, kind: bytes) -> int:
    """The archive's length; ValueError if it is none of that kind."""
    found, length = _FORM.unpack_from(head)
    if found != kind:
        raise ValueError(f"no {kind.decode()} in this module of memory")
    return int(length)
