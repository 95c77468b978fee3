"""What ``--set`` changed, as a name: of folders, and in reports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

__all__ = ["named", "set_folder", "sorting", "tidy"]

_LONGEST = 80
"""Of a folder's name, in characters; a longer one is cut and told apart by a digest."""


def tidy(settings: Iterable[str]) -> tuple[str, ...]:
    """Settings ``ADDRESS=VALUE`` in one form: sorted by address, of each address the last, which counts."""
    found: dict[str, str] = {}
    for setting in settings:
        address, _, value = setting.partition("=")
        found[address.strip()] = " ".join(value.split())
    return tuple(f"{address}={found[address]}" for address in sorted(found))


def set_folder(settings: Iterable[str]) -> Path:
    """Where records of a scenario with these settings lie, below the folder of those without.

    A folder for each setting, ``path.down.rate=2Mbit_s``, so that readers of Hive partitions have a column of
    each. What a folder's name cannot hold is left out of it and told apart by a digest.
    """
    return Path(*map(_folder, tidy(settings)))


def _folder(setting: str) -> str:
    address, _, value = setting.partition("=")
    spelt = value.replace(" ", "").replace("/", "_")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", spelt).strip("-")
    name = f"{quote(address, safe='')}={safe}"
    if safe == spelt and "_" not in value and len(name) <= _LONGEST:
        return name
    digest = hashlib.blake2b(f"{address}={spelt}".encode(), digest_size=4).hexdigest()
    return f"{name[: _LONGEST - len(digest) - 1]}-{digest}"


def named(scenario: str, settings: Sequence[str]) -> str:
    """A scenario's id with what was set: ``my/download (path.down.rate=2Mbit/s)``."""
    return f"{scenario} ({', '.join(settings)})" if settings else scenario


def sorting(settings: Sequence[str]) -> tuple[Any, ...]:
    """A key that puts settings in the order of their values: 500 kbit/s before 2 Mbit/s."""
    return (len(settings), [_key(setting) for setting in settings])


def _key(setting: str) -> tuple[str, float, str]:
    from streamgauge.units import UnitError, parse

    address, _, value = setting.partition("=")
    try:
        return (address, float(parse(value).amount), value)
    except UnitError:
        return (address, 0.0, value)
