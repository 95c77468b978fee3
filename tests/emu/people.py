"""Who runs StreamGauge: root, and an ordinary user with a home of his own. Fixtures for conftest files."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import CHECKOUT, STARVED, UNUSUAL, Beside, Person, all_side_by_side, the_valid_one
from guests import ON_THE_HOST, no_guests

__all__ = [
    "anybody",
    "anyone",
    "base",
    "beside",
    "cache",
    "checkout",
    "emulated",
    "guests",
    "person",
    "resident",
]

NOBODY = 65534


def tell_of_the_starved(reporter: pytest.TerminalReporter) -> None:
    """At a session's end: which trials were run again, which were never judged, and which ran elsewhere than
    they should."""
    if STARVED:
        reporter.section(f"{len(STARVED)} trials were starved, and others run in their place")
        for line in STARVED:
            reporter.line(line)
    if UNUSUAL:
        reporter.section(f"{len(UNUSUAL)} trials were unlike others, and a second one was asked")
        for line in UNUSUAL:
            reporter.line(line)
    if ON_THE_HOST:
        reporter.section("trials that a virtual machine runs better ran on this one")
        for line in sorted(set(ON_THE_HOST)):
            reporter.line(line)
    for report in reporter.stats.get("skipped", ()):
        if "no processor for" in str(report.longrepr):
            reporter.line(f"NOT JUDGED, the machine was too busy: {report.nodeid}", red=True)


def _can_reach(uid: int, path: Path) -> bool:
    done = subprocess.run(
        ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "test", "-r", str(path)],
        check=False,
    )
    return done.returncode == 0


@pytest.fixture(scope="session")
def base() -> Iterator[Path]:
    # pytest's own temporary folders are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cache(base: Path) -> Path:
    """Clips, encoded once for both ways."""
    folder = base / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture(scope="session")
def checkout(base: Path) -> Path:
    """The checkout, or, where its folder is closed to an ordinary user, hard links to it where he can go."""
    if os.geteuid() != 0 or _can_reach(NOBODY, CHECKOUT / "pyproject.toml"):
        return CHECKOUT
    open_to_all = base / "checkout"
    open_to_all.mkdir()
    for name in (".venv", "python", "catalogue", "examples", "pyproject.toml"):
        linked = subprocess.run(["cp", "-al", CHECKOUT / name, open_to_all], capture_output=True, check=False)
        if linked.returncode != 0:
            subprocess.run(["cp", "-a", CHECKOUT / name, open_to_all], check=True)
    return open_to_all


@pytest.fixture(params=["root", "user"])
def person(request: pytest.FixtureRequest, base: Path, cache: Path, checkout: Path) -> Iterator[Person]:
    """Most emu tests run as both."""
    way = request.param
    if way == "root" and os.geteuid() != 0:
        pytest.skip("root's way needs root")
    yield from _someone(way, base, cache, checkout)


@pytest.fixture(scope="module", params=["root", "user"])
def resident(request: pytest.FixtureRequest, base: Path, cache: Path, checkout: Path) -> Iterator[Person]:
    """As `person`, and the same one for all tests of a module: what he has run, they share."""
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("root's way needs root")
    yield from _someone(request.param, base, cache, checkout)


@pytest.fixture(scope="module")
def anybody(base: Path, cache: Path, checkout: Path) -> Iterator[Person]:
    """As `anyone`, and the same one for all tests of a module."""
    yield from _someone("root" if os.geteuid() == 0 else "user", base, cache, checkout)


@pytest.fixture
def anyone(base: Path, cache: Path, checkout: Path) -> Iterator[Person]:
    """Of what the link does to packets once is enough: it is the same code with the same sockets for both."""
    yield from _someone("root" if os.geteuid() == 0 else "user", base, cache, checkout)


@pytest.fixture(scope="session")
def guests() -> bool:
    """Whether trials of those who ask run in virtual machines; if not, on this one, and the end says why."""
    why = no_guests()
    if why is not None:
        ON_THE_HOST.append(f"no virtual machine: {why}")
    return why is None


@pytest.fixture(scope="session")
def emulated(base: Path, cache: Path, checkout: Path) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The trials of all that was given to `side_by_side`, by name: each waits more than it works."""
    for someone in _someone("root" if os.geteuid() == 0 else "user", base, cache, checkout):
        yield someone.trials_together(all_side_by_side())


@pytest.fixture
def beside(emulated: dict[str, list[dict[str, Any]]]) -> Beside:
    """The valid trial of what was given to `side_by_side`, by its name."""
    return lambda name: the_valid_one(emulated[name])


def _someone(way: str, base: Path, cache: Path, checkout: Path) -> Iterator[Person]:
    uid = NOBODY if way == "user" and os.geteuid() == 0 else os.geteuid()
    home = Path(tempfile.mkdtemp(prefix=f"{way}-", dir=base))
    if uid != os.geteuid():
        os.chown(home, uid, uid)
    home.chmod(0o755)
    environment = {"STREAMGAUGE_CACHE": str(cache)}
    yield Person(way=way, home=home, uid=uid, checkout=checkout, environment=environment)
    for file in cache.rglob("*"):
        if not file.is_dir():
            file.chmod(0o644)
    for folder in (cache / one for one in ("clips", "ladders", "presentations", "sources")):
        if folder.is_dir() and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o777)
