"""Faults of the processes of a flow, and the main one of each side."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from streamgauge.systems.adapter import SIDES, Process, Side

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")


class ProcessError(ValueError):
    """Processes that cannot be run as described: place (side, name, part), reason, and remedy."""

    def __init__(self, key: tuple[str, ...], why: str, hint: str | None = None) -> None:
        super().__init__(f"{'.'.join(key)}: {why}" + (f" ({hint})" if hint else ""))
        self.key, self.why, self.hint = key, why, hint


def check_names(side: Side, names: Sequence[str]) -> None:
    """Refuses a side without a process, and names that files and sentences cannot go by.

    Raises ProcessError.
    """
    if not names:
        raise ProcessError((side,), "has no process", "name at least one")
    for number, name in enumerate(names):
        if not name and len(names) > 1:
            raise ProcessError((side,), "has several processes, and one of them no name", "name each of them")
        if name and not _NAME.fullmatch(name):
            expected = "expected a letter, then letters, digits or _, 100 at most"
            raise ProcessError((side, name), f"{name!r} is not a process's name; {expected}")
        if name in names[:number]:
            raise ProcessError((side, name), f"two processes are called '{name}'", "every name is given once")


def check_helpers(side: Side, name: str, helpers: Sequence[Path]) -> None:
    """Refuses helpers that are not there, cannot be read, or would take each other's place.

    Raises ProcessError.
    """
    key = (side, *([name] if name else []), "helpers")
    seen: dict[str, Path] = {}
    for helper in helpers:
        if not helper.exists():
            raise ProcessError(key, f"there is no file {helper}")
        if not os.access(helper, os.R_OK):
            raise ProcessError(key, f"{helper} cannot be read", "see its permissions")
        if helper.name in ("", ".."):
            raise ProcessError(key, f"{helper} has no name to be copied by", "name the file or the folder")
        if (other := seen.get(helper.name)) is not None:
            why = f"{helper} is there twice" if other == helper else f"{other} and {helper} have one name"
            raise ProcessError(key, why, "leave one out" if other == helper else "rename one of them")
        seen[helper.name] = helper


def check_reach(side: Side, name: str, helpers: Sequence[Path], folder: Path) -> None:
    """Refuses helpers outside `folder` that not every user may read, if root is to copy them.

    They are copied for programs without root's rights, and a scenario or a link in its folder may be another
    user's. Raises ProcessError.
    """
    if os.geteuid() != 0:
        return
    key = (side, *([name] if name else []), "helpers")
    for helper in helpers:
        place = helper.resolve()
        if not place.is_relative_to(folder.resolve()) and not _is_open_to_all(place):
            why = f"{helper} leads to {place}, outside the scenario's folder, which not every user may read"
            raise ProcessError(key, why, "copy it into the scenario's folder")


def _is_open_to_all(place: Path) -> bool:
    found = place.stat().st_mode
    needed = 0o005 if stat.S_ISDIR(found) else 0o004
    return found & needed == needed and all(parent.stat().st_mode & 0o001 for parent in place.parents)


def check_processes(processes: Sequence[Process]) -> None:
    """Refuses processes that no flow can run. Raises ProcessError."""
    for side in SIDES:
        mine = [one for one in processes if one.side == side]
        check_names(side, [one.name for one in mine])
        if not any(one.essential for one in mine):
            raise ProcessError((side,), "has no essential process", "one of them must be the side's own")
        late = False
        for one in mine:
            if one.early and late:
                why = "is to be ready before the trial, but stands behind one that starts with the flow"
                raise ProcessError((side, one.name), why, "put it before that one")
            late = late or not one.early
            check_helpers(side, one.name, one.helpers)


def main_process(processes: Sequence[Process], side: Side) -> Process:
    """Returns the process that ends its side: the last that is essential."""
    return [one for one in processes if one.side == side and one.essential][-1]
