"""Where a paper's trials ran: simulated, or emulated on this machine or in a virtual one.

In tables and figures of papers each of these is a mode of its own: ``sim``, ``virtual`` (by its speed also
``virtual-2``, as `--machine` names its folder), and ``emu``, which is this machine. Nothing is averaged over
two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from streamgauge.campaign.layout import machine_folders, machine_of

__all__ = ["HERE", "folders_of", "in_order", "look_of", "mode_json", "mode_on", "words_of"]

HERE = ""
"""This machine, among machines."""
_LOOKS: dict[str, tuple[str, str, list[int]]] = {
    "sim": ("●", "circle", [1, 0]),
    "emu": ("▲", "triangle-up", [4, 3]),
    "virtual": ("■", "square", [1, 2]),
}
_OTHER_SPEED = ("▼", "triangle-down", [6, 2, 1, 2])


def folders_of(out: Path, below: Path = Path(), machines: Iterable[str] = ()) -> dict[str, Path]:
    """Returns by machine the folders of trials for `out`, and in it for the folder `below`: this machine's,
    and each virtual one's that has a folder, or has its folder's name in `machines`."""
    virtual = sorted({*machine_folders(out), *(out / name for name in machines if name)})
    return {HERE: out / below} | {machine_of(folder): folder / below for folder in virtual}


def mode_on(mode: str, machine: str) -> str:
    """Returns how papers' tables name a mode on a machine: sim is the same on each."""
    return mode if mode == "sim" else machine or "emu"


def in_order(modes: Iterable[str]) -> list[str]:
    """Modes as columns stand: sim, virtual machines, this one."""
    return sorted(set(modes), key=lambda mode: (mode != "sim", mode == "emu", mode))


def words_of(mode: str, among: Collection[str] = ()) -> str:
    """Returns the name of a column: ``emu (virtual machine)``; ``emu (this machine)`` where `among` the
    columns there is a virtual one too."""
    if mode == "sim":
        return mode
    if mode == "emu":
        return "emu (this machine)" if any(one not in ("sim", "emu") for one in among) else "emu"
    _, _, speed = mode.partition("-")
    return f"emu (virtual machine at {speed})" if speed else "emu (virtual machine)"


def mode_json(mode: str) -> dict[str, Any]:
    """Returns the same in JSON: ``mode`` is sim or emu, ``machine`` of emu ``host``, ``virtual`` or
    ``virtual:2``."""
    if mode == "sim":
        return {"mode": "sim", "machine": None}
    return {"mode": "emu", "machine": "host" if mode == "emu" else mode.replace("-", ":")}


def look_of(mode: str) -> tuple[str, str, list[int]]:
    """Returns how figures draw it: its mark in words, the point's shape, the line's dashes."""
    return _LOOKS.get(mode, _OTHER_SPEED)
