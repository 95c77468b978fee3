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
"""Who writes trials into a campaign's folder holds a part of this file in it locked."""
# A trial grows beside its place under such a name and is renamed when it is whole. Several machines may share
# the folder, so it says whose the process is; names of earlier versions do not, and are this machine's.
_PARTIAL = re.compile(
    r"\.(?P<name>seed=\d+)\.(?:(?P<host>[\w.-]+)\.)?(?P<pid>\d+)-[0-9a-f]{8}\.partial", re.ASCII
)
_MACHINE: Final = "machine-"
_DEAD_S = 86_400.0
"""A trial of another machine, whose processes cannot be seen from here, is given up after so long without a
change, s: much longer than any trial."""


def trial_directory(out: Path, scenario: str, mode: Mode, seed: int) -> Path:
    """The trial's place. The scenario's id is percent-encoded, so that it is one folder's name."""
    return out / f"scenario={quote(scenario, safe='')}" / f"mode={mode}" / f"seed={seed}"


def machine_folder(machine: str) -> str:
    """What the folder below a campaign's is called that has its trials on a virtual machine: of ``virtual:2``
    ``machine-virtual-2``."""
    return _MACHINE + machine.replace(":", "-")


def machine_folders(out: Path) -> list[Path]:
    """Those below ``out``, by name."""
    return sorted(place for place in out.glob(f"{_MACHINE}*") if place.is_dir())


def machine_of(folder: Path) -> str:
    """The machine whose trials a folder has, ``virtual-2``; empty of this machine's."""
    return folder.name.removeprefix(_MACHINE) if folder.name.startswith(_MACHINE) else ""


def campaign_of(directory: Path) -> Path:
    """The campaign's folder, in which the trial in ``directory`` lies."""
    return directory.parent.parent.parent


def scenario_of(directory: Path) -> str:
    """The id of the scenario whose trial lies in ``directory``."""
    return unquote(directory.parent.parent.name.removeprefix("scenario="))


def seed_of(directory: Path) -> int:
    """The seed of the trial that lies in ``directory``."""
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
    """A name beside ``directory`` that nobody else takes, here or on another machine."""
    return directory.with_name(f".{directory.name}.{_host()}.{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")


@functools.cache
def _host() -> str:
    """This machine's name, as it stands in names of files."""
    return re.sub(r"[^\w.-]", "_", platform.node(), flags=re.ASCII) or "unnamed"


def logs_of_broken(directory: Path) -> Path:
    """Where the logs are kept of a trial that broke on its way to `directory`."""
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
    """Removes what processes that are gone left half-written in ``out``; returns how many.

    What another machine that shares the folder writes stays until nothing in it has changed for a day.
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
    """For how long nothing in a folder has changed, s, by the clock of whoever keeps the files: those of two
    machines may be apart."""
    try:
        with tempfile.NamedTemporaryFile(dir=partial.parent, prefix=".now-") as probe:
            now = os.fstat(probe.fileno()).st_mtime
        return now - max(path.stat().st_mtime for path in (partial, *partial.rglob("*")))
    except OSError:  # it has just gone, or nothing can be written there
        return 0.0


def process_alive(pid: int) -> bool:
    """Whether this machine has a process of that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def sweep(out: Path) -> Iterator[Path]:
    """Every whole trial in ``out``, sorted by scenario, mode and seed."""
    found = [path.parent for path in out.glob("scenario=*/mode=*/seed=*/trial.json")]
    yield from sorted(found, key=lambda d: (d.parent.parent.name, d.parent.name, seed_of(d)))
