"""The changes by ``--set``, as a name: of folders, and in reports."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

__all__ = [
    "AS_IT_IS",
    "named",
    "set_folder",
    "setting_labels",
    "short_addresses",
    "sorting",
    "taken_apart",
    "tidy",
]

AS_IT_IS = "as it is"
"""The name of a scenario in which nothing is set, beside others in which something is."""

Key = TypeVar("Key")
_SETTINGS = re.compile(r", (?=[\w*][\w.*-]*=)")
_FOLDERS = re.compile(r"[^\s,/\[\]{}]*(?:/[^\s,/\[\]{}]+)*/(?=[^\s,/\[\]{}]+\.[A-Za-z]\w*)")
"""In front of a file's name."""
_LONGEST = 80
"""Length of a folder's name, in characters; a longer one is cut and gets a digest."""


def tidy(settings: Iterable[str]) -> tuple[str, ...]:
    """Settings ``ADDRESS=VALUE`` in one form: sorted by address, of each address the last, which counts."""
    found: dict[str, str] = {}
    for setting in settings:
        address, _, value = setting.partition("=")
        found[address.strip()] = " ".join(value.split())
    return tuple(f"{address}={found[address]}" for address in sorted(found))


def set_folder(settings: Iterable[str]) -> Path:
    """Returns where records of a scenario with these settings lie, below the folder of those without.

    A folder for each setting, ``path.down.rate=2Mbit_s``, so that readers of Hive partitions have a column of
    each. Characters that a folder's name cannot hold are left out; a digest then makes it unique.
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
    """Returns a scenario's id with its settings: ``my/download (path.down.rate=2Mbit/s)``."""
    return f"{scenario} ({', '.join(settings)})" if settings else scenario


def taken_apart(id_: str) -> tuple[str, tuple[str, ...]]:
    """Returns a name of `named` as id and settings."""
    plain, bracket, said = id_.partition(" (")
    return plain, tuple(_SETTINGS.split(said.removesuffix(")"))) if bracket else ()


def short_addresses(addresses: Iterable[str]) -> dict[str, str]:
    """Returns addresses by their shortest unique ends: ``rate`` of ``path.down.rate``."""
    every = list(dict.fromkeys(addresses))
    found = {}
    for address in every:
        parts = address.split(".")
        ends = [".".join(parts[at:]) for at in range(len(parts) - 1, 0, -1)]
        others = [f".{other}" for other in every if other != address]
        alone = (end for end in ends if not any(other.endswith(f".{end}") for other in others))
        found[address] = next(alone, address)
    return found


def setting_labels(settings: Mapping[Key, Iterable[str]]) -> dict[Key, str]:
    """Returns short labels of sets of settings: ``bba-2``, or ``rule bba-2, rate 2 Mbit/s`` where several
    addresses differ. Common settings are left out; `AS_IT_IS` if none remains. Files go by their names,
    unless two have the same one."""
    sets = {key: tidy(mine) for key, mine in settings.items()}
    everywhere = set.intersection(*map(set, sets.values())) if sets else set()
    own = {key: [one for one in mine if one not in everywhere] for key, mine in sets.items()}
    short = short_addresses(one.partition("=")[0] for mine in own.values() for one in mine)

    def labels(spoken: Callable[[str], str]) -> dict[Key, str]:
        found = {}
        for key, mine in own.items():
            pairs = [one.partition("=")[::2] for one in mine]
            said = [
                spoken(value) if len(short) == 1 else f"{short[address]} {spoken(value)}"
                for address, value in pairs
            ]
            found[key] = ", ".join(said) or AS_IT_IS
        return found

    found = labels(lambda value: _FOLDERS.sub("", value))
    return found if len(set(found.values())) == len(found) else labels(str)


def sorting(settings: Sequence[str]) -> tuple[Any, ...]:
    """Returns a key that puts settings in the order of their values: 500 kbit/s before 2 Mbit/s."""
    return (len(settings), [_key(setting) for setting in settings])


def _key(setting: str) -> tuple[str, float, str]:
    from streamgauge.units import UnitError, parse

    address, _, value = setting.partition("=")
    try:
        return (address, float(parse(value).amount), value)
    except UnitError:
        return (address, 0.0, value)
