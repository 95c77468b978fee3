"""Control groups of the sides: bounds for all processes of a side together, and for the kernel's memory.

Only root can make them. They are of cgroup v1 (a hierarchy of each controller) or v2, as the machine has
them. Where a kernel or a container refuses them, the sides have their other bounds alone.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ControlGroups"]

_PREFIX = "streamgauge-"
_ENTER = 'for group in $1; do echo 0 >"$group/cgroup.procs" || exit 126; done; shift; exec "$@"'
_FILES = {
    1: {"pids": "pids.max", "memory": "memory.limit_in_bytes"},
    2: {"pids": "pids.max", "memory": "memory.max"},
}
"""Where a bound is written, by version and controller."""
_KILLS = ("memory.oom_control", "memory.events")
_PATIENCE_S = 10.0


@dataclass
class ControlGroups:
    """Those of a trial: a folder of each hierarchy for each name."""

    of: dict[str, list[Path]] = field(default_factory=dict)

    @classmethod
    def make(cls, names: Iterable[str], bounds: Mapping[str, int], at: Path) -> ControlGroups:
        """Makes one for each name, bounded by controller; none where the kernel refuses.

        Hierarchies are mounted below `at`.
        """
        made, names = cls(), list(names)
        trial = Path("/proc/self/ns/pid").stat().st_ino
        with suppress(OSError, subprocess.CalledProcessError):
            for version, controllers, parent in _hierarchies(bounds, at):
                _sweep(parent)
                for name in names:
                    folder = parent / f"{_PREFIX}{trial}-{name}"
                    folder.mkdir()
                    for one in controllers:
                        (folder / _FILES[version][one]).write_text(str(bounds[one]), encoding="ascii")
                    made.of.setdefault(name, []).append(folder)
        return made

    def hold(self, name: str, pid: int) -> None:
        """Moves a process into the group of that name; without it if the kernel refuses."""
        for folder in self.of.get(name, ()):
            try:
                (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
            except OSError:
                self.of.pop(name, None)
                return

    def entering(self, name: str) -> list[str]:
        """Returns the beginning of a command that enters the group first."""
        folders = self.of.get(name)
        return ["sh", "-c", _ENTER, "sh", " ".join(map(str, folders))] if folders else []

    def has_killed(self, name: str) -> bool:
        """Returns whether the kernel ended a process of the group because its memory was used up."""
        for folder in self.of.get(name, ()):
            for file in _KILLS:
                with suppress(OSError):
                    for line in (folder / file).read_text(encoding="ascii").splitlines():
                        if line.startswith("oom_kill ") and line != "oom_kill 0":
                            return True
        return False

    def end(self) -> None:
        """Removes them; their processes have been ended."""
        until = time.monotonic() + _PATIENCE_S
        for folder in (folder for folders in self.of.values() for folder in folders):
            while folder.is_dir() and not _is_removed(folder) and time.monotonic() < until:
                time.sleep(0.01)


def _hierarchies(bounds: Mapping[str, int], at: Path) -> list[tuple[int, list[str], Path]]:
    """Version, controllers, and the folder for the groups, of each hierarchy with any of the controllers."""
    found = []
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, joined, own = line.split(":", 2)
        controllers = [one for one in joined.split(",") if one in bounds]
        if controllers:
            parent = _mounted(at / controllers[0], "cgroup", joined) / own.lstrip("/")
            found.append((1, controllers, parent))
    if missing := [one for one in bounds if not any(one in have for _, have, _ in found)]:
        parent = _mounted(at / "unified", "cgroup2", None)
        offered = (parent / "cgroup.controllers").read_text(encoding="ascii").split()
        controllers = [one for one in missing if one in offered]
        if controllers:
            wanted = " ".join(f"+{one}" for one in controllers)
            (parent / "cgroup.subtree_control").write_text(wanted, encoding="ascii")
            found.append((2, controllers, parent))
    return found


def _mounted(at: Path, kind: str, options: str | None) -> Path:
    at.mkdir(parents=True, exist_ok=True)
    more = ["-o", options] if options else []
    subprocess.run(["mount", "-t", kind, *more, "none", str(at)], check=True, capture_output=True)
    return at


def _sweep(parent: Path) -> None:
    """Removes those of trials that were killed: the kernel keeps any that has processes."""
    for folder in parent.glob(f"{_PREFIX}*"):
        _is_removed(folder)


def _is_removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
