"""The files of virtual machines that are kept on this machine's disk."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamgauge.emu.machine.image import machines_folder


@dataclass(frozen=True, kw_only=True)
class Kept:
    """An image or a snapshot."""

    #: Its folder's.
    name: str
    #: In words.
    what: str
    #: Its size on the disk.
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """As data."""
        return asdict(self)


def kept() -> list[Kept]:
    """All of it, images first."""
    home = machines_folder()
    found = [
        Kept(name=folder.name, what=_image(folder), bytes=_bytes(folder)) for folder in home.glob("image-*")
    ]
    found += [
        Kept(name=folder.name, what=_snapshot(folder), bytes=_bytes(folder))
        for folder in home.glob("snapshot-*")
    ]
    return sorted(found, key=lambda one: one.name)


def _image(folder: Path) -> str:
    data = _read(folder / "image.json")
    if not data:
        return "an image that cannot be read"
    return f"image {data['digest']}, Linux {data['kernel_release']}, {len(data['packages'])} packages"


def _snapshot(folder: Path) -> str:
    data = _read(folder / "snapshot.json")
    if not data:
        return "a snapshot that cannot be read"
    speed = f"{data['speed']} thousand million instructions/s"
    return f"snapshot of image {data['image']} at {speed}, QEMU {data['qemu']}"


def _read(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return data
    return {}


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
