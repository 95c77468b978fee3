"""Scenarios by name, and of one's own, with some of it set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, overload

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.notebook.markup import html_table, text_table
from streamgauge.scenario import OverrideError, Scenario, find, load, override
from streamgauge.scenario.overrides import parse_assignment
from streamgauge.scenario.problems import problems_of

__all__ = ["Asked", "Scenarios", "load_scenario", "scenarios", "settings_of", "targets_of", "wanted"]

Asked = str | Path | Scenario | Iterable[str | Path | Scenario]
"""Scenarios to run: an id, a glob of ids, a file, a `Scenario`, or several of these."""

_GIVE: Final = "give an id, a glob of ids, a file or a Scenario"
_MOST: Final = 60
"""Scenarios that are shown."""


class Scenarios(Sequence[Scenario]):
    """Scenarios, shown as a table."""

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        self._scenarios = tuple(scenarios)

    @overload
    def __getitem__(self, index: int) -> Scenario: ...
    @overload
    def __getitem__(self, index: slice) -> Scenarios: ...
    def __getitem__(self, index: int | slice) -> Scenario | Scenarios:
        return Scenarios(self._scenarios[index]) if isinstance(index, slice) else self._scenarios[index]

    def __len__(self) -> int:
        return len(self._scenarios)

    def _rows(self) -> list[list[str]]:
        return [[one.id, " ".join(one.supported_modes()), one.title] for one in self._scenarios[:_MOST]]

    def __repr__(self) -> str:
        return "\n".join(filter(None, [text_table(["id", "modes", "title"], self._rows()), self._more()]))

    def _repr_html_(self) -> str:
        return html_table(["id", "modes", "title"], self._rows(), after=escape(self._more()))

    def _more(self) -> str:
        return f"and {len(self) - _MOST} more" if len(self) > _MOST else ""


def scenarios(pattern: str | Path = "*", *, set: Mapping[str, Any] | None = None) -> Scenarios:
    """Returns the scenarios of the catalogue that match a glob of ids, or those of a file.

    Args:
        pattern: an id, a glob such as ``"today/demo-*"``, a family such as ``"hessler"``, or a file.
        set: changes in each, such as ``{"path.down.rate": "2 Mbit/s"}``.

    Raises:
        ScenarioError: if there is none, or one makes no sense; with file, line and key.
    """
    return Scenarios(load(pattern, settings=settings_of(set)))


def load_scenario(name: str | Path, *, set: Mapping[str, Any] | None = None) -> Scenario:
    """Returns one scenario, by its id or from a file that holds one; the arguments are those of `scenarios`.

    Raises:
        ScenarioError: as `scenarios`, and if the name matches several.
    """
    found = scenarios(name, set=set)
    if len(found) != 1:
        ids = ", ".join(one.id for one in found[:8]) + (" ..." if len(found) > 8 else "")
        raise ScenarioError(f"'{name}' is {len(found)} scenarios: {ids}", hint="name one, or use scenarios()")
    return found[0]


def settings_of(changes: Mapping[str, Any] | None) -> list[str]:
    """Returns the settings, ``ADDRESS=VALUE`` as on the command line: text as it is, numbers, lists and the
    like as YAML, quantities as they are written, None as null, which removes a key.

    Raises:
        ScenarioError: if it is no mapping from addresses.
    """
    if changes is None:
        return []
    if not isinstance(changes, Mapping) or not all(isinstance(address, str) for address in changes):
        raise ScenarioError(
            f"set is {changes!r}; it is a mapping from addresses to values",
            hint="such as {'path.down.rate': '2 Mbit/s'}",
        )
    return [f"{address}={_written(value)}" for address, value in changes.items()]


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    # Quantities are written as in a scenario's file.
    return json.dumps(value, default=str, ensure_ascii=False) if _is_plain(value) else str(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | list | tuple | dict)


def targets_of(asked: Asked) -> list[str | Path | Scenario]:
    """Returns the requested scenarios, one by one.

    Raises:
        ScenarioError: if it is nothing, or something else.
    """
    # A model of pydantic's is an iterable of its fields.
    found: list[Any] = [asked]
    if isinstance(asked, Iterable) and not isinstance(asked, str | Scenario):
        found = list(asked)
    for one in found:
        if not isinstance(one, str | Path | Scenario):
            raise ScenarioError(f"{one!r} is no scenario", hint=_GIVE)
    if not found:
        raise ScenarioError("there is nothing to run", hint=_GIVE)
    return found


def wanted(asked: Asked, settings: Sequence[str]) -> list[Scenario]:
    """Returns every scenario that is asked for, each id once, with the settings in it.

    Raises:
        ScenarioError: as `streamgauge.scenario.find`.
    """
    found: dict[str, Scenario] = {}
    for one in targets_of(asked):
        for scenario in (
            [_set_in(one, settings)] if isinstance(one, Scenario) else find([one], settings=settings)
        ):
            if found.setdefault(scenario.id, scenario) != scenario:
                raise ScenarioError(f"two scenarios are called '{scenario.id}'; ids are unique in a run")
    return list(found.values())


def _set_in(scenario: Scenario, settings: Iterable[str]) -> Scenario:
    """Returns a scenario made in Python with the settings in it; its errors as those of a file."""
    for address, value, where in _assignments(settings):
        try:
            scenario = override(scenario, {address: value})
        except OverrideError as error:
            raise ScenarioError(error.why, file=where, key=address, hint=error.hint) from None
        except ValidationError as error:
            first = problems_of(error)[0]
            key = ".".join(map(str, first.path)) or address
            raise ScenarioError(first.why, file=where, key=key, hint=first.hint) from None
    return scenario


def _assignments(settings: Iterable[str]) -> Iterator[tuple[str, Any, str]]:
    for setting in settings:
        try:
            address, value = parse_assignment(setting)
        except OverrideError as error:
            raise ScenarioError(error.why, file="--set", hint=error.hint) from None
        yield address, value, f"--set {setting}"
