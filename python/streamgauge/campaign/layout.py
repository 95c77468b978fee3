"""Where trials lie on disk: ``OUT/scenario=<id>/mode=<mode>/seed=<n>/``, Hive-partitioned as polars, DuckDB
and Spark read it."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from streamgauge.media.store import FOLDER as CONTENT
from streamgauge.systems.registry import Mode

__all__ = [
    "LOCK",
    "campaign_of",
    "is_trial_directory",
    "keep_logs",
    "logs_of_broken",
    "machine_folder",
    "machine_folders",
    "machine_of",
    "place",
    "process_alive",
    "remove_leftovers",
    "scenario_of",
    "seed_of",
    "sweep",
    "trial_directory",
]

LOCK: Final = ".writing"
"""A process that writes trials into a campaign's folder holds a part of this file in it locked."""
# A trial grows beside its place under such a name and is renamed when it is whole. Several machines may share
# the folder: the name contains the machine of the process; names of earlier versions do not, and are this
# machine's.
_PARTIAL = re.compile(
    r"\.(?P<name>seed=\d+)\.(?:(?P<host>[\w.-]+)\.)?(?P<pid>\d+)-[0-9a-f]{8}\.partial", re.ASCII
)
_PLACE = re.compile(r"scenario=[^/]+/mode=[a-z]+/seed=\d+", re.ASCII)
_MACHINE: Final = "machine-"
_DEAD_S = 86_400.0
"""Time without a change after which a trial of another machine, with processes that are invisible here, is
given up, s: much longer than any trial."""


def trial_directory(out: Path, scenario: str, mode: Mode, seed: int) -> Path:
    """Returns the trial's place. The scenario's id is percent-encoded, so that it is one folder's name."""
    return out / f"scenario={quote(scenario, safe='')}" / f"mode={mode}" / f"seed={seed}"


def is_trial_directory(directory: Path) -> bool:
    """Returns whether the names of `directory` and of the two above it are those of a trial's place."""
    names = directory.parts[-3:]
    return _PLACE.fullmatch("/".join(names)) is not None


def machine_folder(machine: str) -> str:
    """Returns the name of the folder below a campaign's for trials on a virtual machine: for ``virtual:2``
    ``machine-virtual-2``."""
    return _MACHINE + machine.replace(":", "-")


def machine_folders(out: Path) -> list[Path]:
    """Returns those below ``out``, by name."""
    return sorted(place for place in out.glob(f"{_MACHINE}*") if place.is_dir())


def machine_of(folder: Path) -> str:
    """Returns the machine of the trials in a folder, ``virtual-2``; empty for this machine's."""
    return folder.name.removeprefix(_MACHINE) if folder.name.startswith(_MACHINE) else ""


def campaign_of(directory: Path) -> Path:
    """Returns the campaign's folder, in which the trial in ``directory`` lies."""
    return directory.parent.parent.parent


def scenario_of(directory: Path) -> str:
    """Returns the id of the scenario of the trial in ``directory``."""
    return unquote(directory.parent.parent.name.removeprefix("scenario="))


def seed_of(directory: Path) -> int:
    """Returns the seed of the trial that lies in ``directory``."""
    return int(directory.name.partition("=")[2])


@contextlib.contextmanager
def place(directory: Path) -> Iterator[Path]:
    """A temporary sibling to write a trial into: renamed to ``directory`` at the end, removed on any failure.

    A trial that lies there already is replaced only by a whole one.
    """
    partial = _partial(directory)
    # With its parents: a trial that fails beside this one removes those that it leaves empty.
    partial.mkdir(parents=True)
    try:
        yield partial
        if directory.exists():
            old = _partial(directory)
            directory.rename(old)
            partial.rename(directory)
            shutil.rmtree(old, ignore_errors=True)
        else:
            partial.rename(directory)
        shutil.rmtree(logs_of_broken(directory), ignore_errors=True)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        _prune(directory.parent)
        raise


def _partial(directory: Path) -> Path:
    """Returns a name beside ``directory`` that no other process takes, here or on another machine."""
    return directory.with_name(f".{directory.name}.{_host()}.{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")


@functools.cache
def _host() -> str:
    """Returns this machine's name, in the form for names of files."""
    return re.sub(r"[^\w.-]", "_", platform.node(), flags=re.ASCII) or "unnamed"


def logs_of_broken(directory: Path) -> Path:
    """Returns where the logs are kept of a trial that broke on its way to `directory`."""
    return directory.with_name(f"{directory.name}.broken")


def keep_logs(partial: Path, directory: Path) -> Path | None:
    """Keeps the logs of a trial that broke on the way beside its place, until a whole trial takes that.

    Returns their folder, ``None`` if it left none.
    """
    logs = [file for file in sorted((partial / "logs").glob("*")) if file.is_file() and file.stat().st_size]
    if not logs:
        return None
    kept = logs_of_broken(directory)
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    for log in logs:
        log.rename(kept / log.name)
    return kept


def _prune(folder: Path) -> None:
    """Removes the empty folders that a failed trial would leave, and contents that no trial plays."""
    out = folder.parent.parent
    for empty in (folder, folder.parent, out):
        try:
            if empty == out and {inside.name for inside in out.iterdir()} - {LOCK} == {CONTENT}:
                shutil.rmtree(out / CONTENT, ignore_errors=True)
            empty.rmdir()
        except OSError:
            return


def remove_leftovers(out: Path) -> int:
    """Removes half-written trials of dead processes in ``out``; returns how many.

    Files of another machine that shares the folder stay until nothing in it has changed for a day.
    """
    removed = 0
    for partial in out.glob("scenario=*/mode=*/.seed=*.partial"):
        match = _PARTIAL.fullmatch(partial.name)
        if match is None:
            continue
        if match["host"] in (None, _host()):
            gone = not process_alive(int(match["pid"]))
        else:
            gone = _unchanged_s(partial) > _DEAD_S
        if gone:
            shutil.rmtree(partial, ignore_errors=True)
            removed += 1
    return removed


def _unchanged_s(partial: Path) -> float:
    """Returns the time without a change in a folder, s, by the clock of the machine that stores the files:
    those of two machines may be apart."""
    try:
        with tempfile.NamedTemporaryFile(dir=partial.parent, prefix=".now-") as probe:
            now = os.fstat(probe.fileno()).st_mtime
        return now - max(path.stat().st_mtime for path in (partial, *partial.rglob("*")))
    except OSError:  # it has just gone, or nothing can be written there
        return 0.0


def process_alive(pid: int) -> bool:
    """Returns whether this machine has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def sweep(out: Path) -> Iterator[Path]:
    """Yields every whole trial in ``out``, sorted by scenario, mode and seed."""
    found = [path.parent for path in out.glob("scenario=*/mode=*/seed=*/trial.json")]
    yield from sorted(found, key=lambda d: (d.parent.parent.name, d.parent.name, seed_of(d)))
