"""Parts that other installed packages bring: metrics, systems and figures, by Python entry points.

A package names them in its pyproject.toml (docs/extending.md shows one whole)::

    [project.entry-points."streamgauge.metrics"]
    longest_outage = "my_package.outages:LONGEST_OUTAGE"

They join the tables of our own at the first use of a name that is not ours, or when a table is read as a
whole. A package that cannot be used is an error which names it: results would lack its parts silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from streamgauge.errors import CannotRunError

__all__ = ["FIGURES", "METRICS", "SYSTEMS", "InstalledPart", "JoinedTable", "names", "parts"]

METRICS, SYSTEMS, FIGURES = "streamgauge.metrics", "streamgauge.systems", "streamgauge.figures"
"""The groups of entry points."""

Part = TypeVar("Part")


@dataclass(frozen=True)
class InstalledPart:
    """One entry point of another package, not loaded yet."""

    entry: EntryPoint

    @property
    def name(self) -> str:
        """Returns the entry point's name."""
        return self.entry.name

    @property
    def package(self) -> str:
        """Returns the package with its version: ``my-metrics 1.2``."""
        found = self.entry.dist
        return self.entry.value if found is None else f"{found.name} {found.version}"

    def load(self) -> Any:
        """Returns the object that it names.

        Raises:
            CannotRunError: if it cannot be imported; names the package.
        """
        try:
            return self.entry.load()
        except Exception as error:
            raise self.unfit(f"{type(error).__name__}: {error}") from error

    def unfit(self, why: str) -> CannotRunError:
        """Returns the error for a part that cannot be used."""
        name = "the package" if self.entry.dist is None else self.entry.dist.name
        return CannotRunError(
            f"package {self.package}, entry point {self.entry.group}: {self.name} = {self.entry.value}: "
            f"{why}. Mend it, or remove it (`pip uninstall {name}`)."
        )


@cache
def parts(group: str) -> tuple[InstalledPart, ...]:
    """Returns the parts of a group, by their names; those of one name in the order of Python's path."""
    return tuple(map(InstalledPart, sorted(entry_points(group=group), key=lambda entry: entry.name)))


def names(group: str) -> tuple[str, ...]:
    """Returns the names of a group's parts, without loading them."""
    return tuple(dict.fromkeys(part.name for part in parts(group)))


class JoinedTable(Mapping[str, Part]):
    """Our own parts by name, and after them those of other packages."""

    def __init__(
        self,
        group: str,
        own: Callable[[], Mapping[str, Part]],
        read: Callable[[str, Any], Mapping[str, Part]],
        chosen: Callable[[Part], bool] = lambda part: True,
    ) -> None:
        """Args:
        group: the entry points.
        own: gives our own parts; called at the first use.
        read: gives the parts of a loaded object by name, from its entry point's name and the object. Raises
            ValueError with the fault.
        chosen: which of all parts belong here. Names are unique among all.
        """
        self._group, self._give, self._read, self._chosen = group, own, read, chosen

    @cached_property
    def _own(self) -> Mapping[str, Part]:
        return {name: part for name, part in self._give().items() if self._chosen(part)}

    @cached_property
    def _others(self) -> Mapping[str, tuple[Part, str]]:
        """Returns the parts of other packages, each with its package."""
        origins = dict.fromkeys(self._give(), "streamgauge itself")
        found: dict[str, tuple[Part, str]] = {}
        for one in parts(self._group):
            loaded = one.load()
            try:
                read = self._read(one.name, loaded)
            except ValueError as error:
                raise one.unfit(str(error)) from None
            for name, part in read.items():
                if name in origins:
                    raise one.unfit(f"'{name}' is a name of {origins[name]}; choose another")
                origins[name] = one.package
                if self._chosen(part):
                    found[name] = part, one.package
        return found

    def package_of(self, name: str) -> str:
        """Returns the package with its version that brings a part; empty for our own."""
        return self._others[name][1] if name not in self._own and name in self._others else ""

    def packages(self) -> tuple[str, ...]:
        """Returns the packages with their versions that bring parts to the table."""
        return tuple(sorted({package for _, package in self._others.values()}))

    def known_names(self) -> tuple[str, ...]:
        """Returns the names of our own parts and of all entry points of the group, without loading these."""
        return tuple(dict.fromkeys([*self._own, *names(self._group)]))

    def __getitem__(self, name: str) -> Part:
        return self._own[name] if name in self._own else self._others[name][0]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._others

    def __len__(self) -> int:
        return len(self._own) + len(self._others)
