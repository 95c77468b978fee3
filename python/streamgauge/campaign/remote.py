"""A campaign's records in an object store, or wherever else fsspec reaches: ``s3://bucket/run-1``.

A trial is made in a local folder and uploaded when it is whole, ``trial.json`` last. An object store renames
nothing: a trial counts when its ``trial.json`` exists; the next one overwrites the rest of one that was cut
short before.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import platform
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import unquote, urlsplit

from streamgauge.campaign.layout import campaign_of, logs_of_broken, process_alive
from streamgauge.campaign.trial import EmuSettings, reuse
from streamgauge.campaign.work import Row, Task, perform
from streamgauge.errors import CannotRunError, ScenarioError, StreamGaugeError
from streamgauge.media.store import FOLDER as CONTENT
from streamgauge.record.schema import EVENTS, PACKETS, TRIAL
from streamgauge.record.write import KEPT, rewrite_trial

__all__ = ["EXTRA", "Remote", "as_folder", "is_url"]

LOCK: Final = ".campaign.json"
"""The object that names the writing campaign."""
EXTRA: Final = "pip install 'streamgauge[cluster]'"
_LARGE: Final = (PACKETS, EVENTS, "capture.pcapng")
"""Files of an existing trial that only `verify` reads."""


def is_url(where: str) -> bool:
    """Returns whether records are to go to a URL instead of a folder."""
    return "://" in where


def as_folder(url: str) -> Path | None:
    """Returns the folder of a ``file://`` URL, which is no object store; None of another."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme in ("file", "local") else None


class Remote:
    """The campaign at a URL. Raises CannotRunError, naming URL and remedy, if it cannot be reached."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        with _errors(self.url):
            self._fs, self._root = _file_system(self.url)

    def _at(self, relative: Path | PurePosixPath | str) -> str:
        return f"{self._root}/{PurePosixPath(relative)}"

    def probe(self, name: str) -> None:
        """Writes, reads and removes an object."""
        place = self._at(f".{name}")
        with _errors(self.url):
            self._fs.pipe_file(place, name.encode())
            found = self._fs.cat_file(place)
            self._fs.rm_file(place)
        if found != name.encode():
            raise CannotRunError(
                f"{self.url}: reads return other bytes than were written. "
                "Stop any other program that writes there."
            )

    def there(self, places: Collection[Path]) -> dict[Path, bytes]:
        """Returns the ``trial.json`` of those trials that are there, in one request's time."""
        paths = {self._at(place / TRIAL): place for place in places}
        with _errors(self.url):
            found: Mapping[str, Any] = self._fs.cat(list(paths), on_error="return") if paths else {}
            for told in found.values():
                if isinstance(told, Exception) and not isinstance(told, FileNotFoundError):
                    raise told
        return {paths[path]: data for path, data in found.items() if isinstance(data, bytes)}

    def reuse(self, task: Task, place: Path, header: bytes) -> Row | None:
        """Returns a trial that lies in its place already, if it is the same and whole; None if it must run.

        ``header`` is its ``trial.json``. Raises ScenarioError if it is another experiment's: nothing can be
        moved out of the way in an object store.
        """
        try:
            trial = json.loads(header)
            key = trial.get("resume_key")
        except (ValueError, AttributeError):
            return None  # damaged
        if key != task.key:
            raise ScenarioError(
                f"{self.url}/{place.as_posix()}: holds a trial of another experiment or version of "
                "StreamGauge. Objects cannot be renamed. Give --out another "
                "URL, or delete those objects."
            )
        if trial.get("replaces") != task.replaces:
            return None  # it replaces another repetition
        local = self._folder / place
        with _errors(self.url):
            listed = [PurePosixPath(path).name for path in self._fs.ls(self._at(place), detail=False)]
        if not {*KEPT[task.keep]} <= {*listed}:
            return None
        small = [name for name in listed if name not in _LARGE]
        local.mkdir(parents=True, exist_ok=True)
        try:
            with _errors(self.url):
                self._fs.get(
                    [self._at(place / name) for name in small], [str(local / name) for name in small]
                )
            before = (local / TRIAL).read_bytes()
            found = reuse(replace(task, directory=str(local)).job(), "metrics", task.leaves)
            if found is not None and (local / TRIAL).read_bytes() != before:
                with _errors(self.url):  # its words or checks read otherwise now
                    self._fs.put_file(str(local / TRIAL), self._at(place / TRIAL))
            return None if found is None else Row.of(found)
        finally:
            shutil.rmtree(local, ignore_errors=True)

    def perform(self, task: Task, place: Path, emu: EmuSettings | None) -> Row:
        """Runs a trial into a local folder; `upload` takes it from there."""
        return perform(replace(task, directory=str(self._folder / place)), emu=emu)

    def upload(self, place: Path) -> None:
        """Moves a trial from its local folder up: ``trial.json`` after all else, the contents that it plays
        before."""
        local = self._folder / place
        files = sorted(file for file in local.rglob("*") if file.is_file() and file.name != TRIAL)
        contents = sorted(
            file
            for file in (campaign_of(local) / CONTENT).glob("*.json")
            if file not in _sent(self.url) and not file.name.startswith(".")
        )
        with _errors(self.url):
            everything = [*files, *contents]
            self._fs.put(
                [str(file) for file in everything],
                [self._at(file.relative_to(self._folder)) for file in everything],
            )
            if (local / TRIAL).exists():  # not of logs that a broken trial left
                self._fs.put_file(str(local / TRIAL), self._at(place / TRIAL))
        _sent(self.url).update(contents)
        shutil.rmtree(local, ignore_errors=True)

    def with_logs(self, place: Path, error: StreamGaugeError) -> StreamGaugeError:
        """Returns the error of a trial that broke, naming where the logs are that it left: they go up."""
        kept = logs_of_broken(place)
        if not (self._folder / kept).is_dir():
            return error
        said = str(error).replace(str(self._folder / kept), f"{self.url}/{kept.as_posix()}")
        self.upload(kept)
        return type(error)(said)

    @property
    def _folder(self) -> Path:
        return _growing(self.url).folder

    def under_way(self) -> contextlib.AbstractContextManager[None]:
        """While trials are performed, uploaded and reused: afterwards nothing of them is on this machine."""
        return _growing(self.url).open()

    def fetch(self, into: Path, *, under: str = ".", below: bool = False, large: bool = False) -> int:
        """Copies the trials of the campaign in the folder `under` there to the same place in the folder
        `into`; returns how many.

        Args:
            into: the local folder.
            under: relative to the URL.
            below: also those of campaigns in folders below it, such as of mutants.
            large: also packets and events.

        A trial without ``trial.json`` is none, and is left out.
        """
        base = self._root if under == "." else self._at(under)
        with _errors(self.url):
            found = [PurePosixPath(path).relative_to(self._root) for path in self._fs.find(base)]
        top = PurePosixPath(under)
        if not below:
            found = [path for path in found if top in (path.parent.parent, path.parent.parent.parent.parent)]
        whole = {path.parent for path in found if path.name == TRIAL}
        wanted = [
            path
            for path in found
            if (path.parent in whole and (large or path.name not in _LARGE)) or path.parent.name == CONTENT
        ]
        for folder in {path.parent for path in wanted}:
            (into / folder).mkdir(parents=True, exist_ok=True)
        if wanted:
            with _errors(self.url):
                self._fs.get([self._at(path) for path in wanted], [str(into / path) for path in wanted])
        for place in whole if not large else ():
            _as_kept(into / place)
        return len(whole)

    def put(self, folder: Path, files: Iterable[Path]) -> None:
        """Copies files of `folder` up, each to the same place below the URL."""
        files = list(files)
        with _errors(self.url):
            self._fs.put(
                [str(file) for file in files], [self._at(file.relative_to(folder)) for file in files]
            )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps other campaigns out, which would write the same trials.

        Raises CannotRunError naming the writer. The rest of a dead campaign of this machine does not count.
        """
        me = {
            "host": platform.node(),
            "pid": os.getpid(),
            "user": _user(),
            "since": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "token": uuid.uuid4().hex,
        }
        lock = self._at(LOCK)
        with _errors(self.url):
            while not self._made(lock, json.dumps(me).encode()):
                holder = self._holder(lock)
                if holder is None:
                    continue  # it has just gone
                if holder.get("host") != me["host"] or process_alive(int(holder.get("pid", 0))):
                    raise CannotRunError(
                        f"{self.url}: another campaign writes there: {holder.get('user')} on "
                        f"{holder.get('host')} (process {holder.get('pid')}) since {holder.get('since')}. "
                        "Wait for its end, or give --out another URL. If that process is gone, delete "
                        f"{self.url}/{LOCK}."
                    )
                self._fs.rm_file(lock)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                if (self._holder(lock) or {}).get("token") == me["token"]:
                    self._fs.rm_file(lock)

    def _made(self, place: str, data: bytes) -> bool:
        """Makes an object if there is none; False if there is one."""
        try:
            self._fs.pipe_file(place, data, mode="create")
        except FileExistsError:
            return False
        except (NotImplementedError, TypeError, ValueError):
            # A store without conditional writes cannot separate two that begin in the same moment.
            if self._fs.exists(place):
                return False
            self._fs.pipe_file(place, data)
        return True

    def _holder(self, lock: str) -> dict[str, Any] | None:
        try:
            found = json.loads(self._fs.cat_file(lock))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def _as_kept(directory: Path) -> None:
    """Marks the large files of a copied trial as not kept, as far as the copy is incomplete."""
    trial = json.loads((directory / TRIAL).read_text(encoding="utf-8"))
    kept = [name for name in trial.get("kept", ()) if (directory / name).exists()]
    rewrite_trial(directory, trial, kept=kept)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name for the number
        return f"user {os.getuid()}"


class _Growing:
    """Where trials of a process grow before they go to a URL: a folder while any are under way, else none.

    A signal may end a worker at any time, and Python then cleans up nothing. An idle one leaves nothing; the
    next that begins on the machine removes the files of another.
    """

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._users = 0
        self._lock: IO[str] | None = None
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        assert self._users and self._folder is not None, "no trial is under way"
        return self._folder

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        with self._turn:
            if not self._users:
                self._make()
            self._users += 1
        try:
            yield
        finally:
            with self._turn:
                self._users -= 1
                if not self._users:
                    assert self._folder is not None and self._lock is not None
                    shutil.rmtree(self._folder, ignore_errors=True)
                    self._lock.close()

    def _make(self) -> None:
        try:
            if self._folder is None:
                raise FileExistsError
            # Under the original name: caches of contents identify files by it.
            self._folder.mkdir(mode=0o700)
        except FileExistsError:
            _remove_what_others_left()
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self._folder / _HELD).open("w")
        if fcntl := _locks():
            fcntl.flock(self._lock, fcntl.LOCK_EX)


_PREFIX: Final = "streamgauge-trials-"
_HELD: Final = ".held"
_NEW_S: Final = 60


def _locks() -> Any:
    """Returns the module that locks files; ``None`` where there is none: locks are then unknown, and stay."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _remove_what_others_left() -> None:
    """Folders that no process holds; a new one may not be held yet."""
    if (fcntl := _locks()) is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (folder / _HELD).open("r+") as lock:
            if time.time() - folder.stat().st_mtime > _NEW_S:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=8)
def _growing(url: str) -> _Growing:
    del url
    return _Growing()


@lru_cache(maxsize=8)
def _sent(url: str) -> set[Path]:
    """Contents that this process has put there."""
    del url
    return set()


def _file_system(url: str) -> tuple[Any, str]:
    scheme = urlsplit(url).scheme
    if scheme == "memory":
        raise ScenarioError(
            f"{url}: the memory of one process is seen by no other; name a store or a folder."
        )
    try:
        import fsspec
    except ImportError:
        raise CannotRunError(f"{url}: fsspec is not installed; {EXTRA}.") from None
    if scheme not in fsspec.available_protocols():
        raise ScenarioError(
            f"{url}: fsspec knows no '{scheme}://'; name one such as s3://bucket/run-1, or a folder."
        )
    # Listings are never kept: others write there too.
    fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    return fs, str(root).rstrip("/")


@contextlib.contextmanager
def _errors(url: str) -> Iterator[None]:
    """Raises any failure between here and a store as one error with a remedy."""
    try:
        yield
    except (CannotRunError, ScenarioError):
        raise
    except ImportError as error:
        package = f": {EXTRA}" if urlsplit(url).scheme == "s3" else f" on this machine ({error})"
        raise CannotRunError(f"{url}: the package that reaches it is not installed{package}.") from error
    except Exception as error:
        raise CannotRunError(f"{url}: {_said(error)}; {_remedy(error)}.") from error


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _remedy(error: Exception) -> str:
    name = type(error).__name__
    if "Credential" in name or "Token" in name:
        return (
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or whatever your store takes, for this machine "
            "and for every worker"
        )
    if isinstance(error, PermissionError):
        return "its credentials may not do that; ask for reading, writing, listing and deleting there"
    if isinstance(error, FileNotFoundError):
        return "make the bucket first, or see how it is written"
    if "Connection" in name or "Timeout" in name:
        return "see that the store is up, and that its address (AWS_ENDPOINT_URL) is right"
    return "see that the store is up and has room, and start again: what is there is kept"
