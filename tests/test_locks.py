"""The locks of the Python packages hold what pyproject.toml asks for, each file by its hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = {
    "requirements.lock": PROJECT["dependencies"],
    "requirements-dev.lock": PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"],
}
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def pins(lock: str) -> dict[str, list[tuple[str, int]]]:
    """Each package of a lock with its versions, one for each marker, and how many hashes each has."""
    found: dict[str, list[tuple[str, int]]] = {}
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        pin = Requirement(HASH.sub("", line).strip())
        (specifier,) = pin.specifier
        assert specifier.operator == "==", line
        hashes = len(HASH.findall(line))
        found.setdefault(canonicalize_name(pin.name), []).append((specifier.version, hashes))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_each_requirement_has_a_pin_within_its_bounds_and_each_pin_its_hashes(lock: str) -> None:
    found = pins(lock)
    assert all(hashes > 0 for versions in found.values() for _, hashes in versions)
    for text in LOCKS[lock]:
        asked = Requirement(text)
        versions = found.get(canonicalize_name(asked.name), [])
        assert versions, f"{lock} lacks {text}: run scripts/lock.sh"
        for version, _ in versions:
            assert version in asked.specifier, (
                f"{lock} has {asked.name} {version} for {text}: run scripts/lock.sh"
            )


def test_tests_run_with_the_versions_that_the_container_installs() -> None:
    tested = pins("requirements-dev.lock")
    for name, versions in pins("requirements.lock").items():
        assert {version for version, _ in versions} == {version for version, _ in tested[name]}, name


def test_locks_name_no_host() -> None:
    assert not any("://" in (ROOT / lock).read_text() for lock in LOCKS)
