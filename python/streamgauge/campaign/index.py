"""Contents of a campaign's folder, in one file beside the trials of all its sets: ``OUT/index.sqlite``.

A row a trial: its summary, and the size and time of its ``trial.json`` at that moment. A row with another
``trial.json`` by now is ignored. The trials are the truth: the file may be deleted at any time, and is
written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from streamgauge.campaign.stored import SCHEMA
from streamgauge.checks.readings import READING, Number
from streamgauge.metrics.result import measured_by

__all__ = ["FILE", "Index", "IndexedTrial", "listed_but_gone"]

FILE: Final = "index.sqlite"
_WRITE_EVERY_S: Final = 1.0


@cache
def _version() -> int:
    """Returns a number that changes with the metrics or the leaves that checks read of them: then all trials
    are read anew."""
    return zlib.crc32(f"2 {SCHEMA} {measured_by()} {READING}".encode()) & 0x7FFFFFFF


@dataclass(frozen=True)
class IndexedTrial:
    """One trial as it was when it was read last."""

    key: str
    """Its resume key."""
    scenario: str
    """Digest of the scenario as its record has it, words and checks included."""
    valid: bool
    why: tuple[str, ...]
    digest: str
    replaces: int | None = None
    readings: Mapping[str, Number] = field(default_factory=dict)


class Index:
    """The index of the folder `out`. It is used from one thread.

    A damaged file, or one of another version, is begun anew. In a folder without write access there
    is no index.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        self._rows: dict[str, tuple[int, int, str]] = {}
        self._waiting: dict[str, tuple[int, int, str]] = {}
        self._written = time.monotonic()
        self._file: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        file = self._out / FILE
        if file.is_file():
            try:
                self._file = self._open()
            except sqlite3.OperationalError:  # another campaign is at it
                pass
            except sqlite3.DatabaseError:
                with contextlib.suppress(OSError):
                    file.unlink()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.write()
        self._forget_gone()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._out / FILE, isolation_level=None)
        # A row that a loss of power takes is only read anew.
        connection.execute("pragma synchronous = off")
        (version,) = connection.execute("pragma user_version").fetchone()
        if version != _version():
            connection.execute("begin immediate")
            connection.execute("drop table if exists trials")
            connection.execute(
                "create table trials (place text primary key, mtime_ns integer, size integer, trial text)"
            )
            connection.execute(f"pragma user_version = {_version()}")
            connection.execute("commit")
        rows = connection.execute("select place, mtime_ns, size, trial from trials")
        self._rows = {place: (mtime_ns, size, trial) for place, mtime_ns, size, trial in rows}
        return connection

    def find(self, directory: Path) -> IndexedTrial | None:
        """Returns the trial in `directory`, if its row matches the present `trial.json`."""
        row = self._rows.get(self._place(directory))
        if row is None:
            return None
        stamp = _stamp(directory)
        if stamp is None or stamp != row[:2]:
            return None
        text, _, digest_of_row = row[2].rpartition(" ")
        if digest_of_row != _digest(
            self._place(directory), stamp, text
        ):  # edited: no other check would see it
            return None
        try:
            key, scenario, valid, why, digest, replaces, readings = json.loads(text)
            return IndexedTrial(key, scenario, valid, tuple(why), digest, replaces, dict(readings))
        except (ValueError, TypeError):  # damaged
            return None

    def add(self, directory: Path, trial: IndexedTrial) -> None:
        """Keeps the summary of the trial in `directory`; it is on disk within a second, and by the end."""
        stamp = _stamp(directory)
        if stamp is None:
            return
        of = trial
        told = (of.key, of.scenario, of.valid, of.why, of.digest, of.replaces, dict(of.readings))
        place, text = self._place(directory), json.dumps(told, separators=(",", ":"))
        row = (*stamp, f"{text} {_digest(place, stamp, text)}")
        self._rows[place] = self._waiting[place] = row
        if time.monotonic() - self._written >= _WRITE_EVERY_S:
            self.write()

    def write(self) -> None:
        """Writes pending rows."""
        self._written = time.monotonic()
        if not self._waiting:
            return
        try:
            if self._file is None:
                rows = self._rows
                self._file = self._open()
                self._rows = self._rows | rows
            with self._file:
                self._file.execute("begin immediate")
                self._file.executemany(
                    "insert or replace into trials values (?, ?, ?, ?)",
                    [(place, *row) for place, row in self._waiting.items()],
                )
        except sqlite3.Error:
            return
        self._waiting.clear()

    def _forget_gone(self) -> None:
        """Deletes the rows of trials that were moved or removed."""
        gone = [place for place in self._rows if not (self._out / place).exists()]
        if self._file is not None and gone:
            with contextlib.suppress(sqlite3.Error):
                self._file.executemany("delete from trials where place = ?", [(place,) for place in gone])

    def _place(self, directory: Path) -> str:
        return directory.relative_to(self._out).as_posix()


def listed_but_gone(file: Path) -> list[Path]:
    """Returns the trials that an index lists and that are not in its folder; none of an index that cannot be
    read."""
    if not file.is_file():
        return []
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as index:
            rows = index.execute("select place from trials order by place").fetchall()
    except sqlite3.Error:
        return []
    places = [file.parent / str(place) for (place,) in rows]
    return [place for place in places if not place.exists()]


def _digest(place: str, stamp: tuple[int, int], text: str) -> str:
    """Returns the digest of a row. It shows damage and edits, and is no signature."""
    return hashlib.blake2b(f"{place}\0{stamp}\0{text}".encode(), digest_size=16).hexdigest()


def _stamp(directory: Path) -> tuple[int, int] | None:
    try:
        status = (directory / "trial.json").stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
