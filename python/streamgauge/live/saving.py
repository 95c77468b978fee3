"""Steering by hand, as a scenario that runs again."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from ruamel.yaml import YAML

from streamgauge.scenario import Scenario
from streamgauge.scenario.path.changes import changes_of
from streamgauge.units import Time

__all__ = ["as_yaml", "steerable", "steered"]


def steerable(scenario: Scenario) -> Scenario:
    """Returns the scenario with the parts in its path that steering needs. Changes that it has already
    stay."""
    if scenario.path.changes is not None:
        return scenario
    return scenario.model_copy(update={"path": scenario.path.model_copy(update={"changes": ()})})


def steered(
    scenario: Scenario, changed: Iterable[Mapping[str, Any]], until_ns: int, *, ends_ns: int | None = None
) -> Scenario:
    """Returns the scenario with the changes before `until_ns`; with `ends_ns` it ends then.

    Raises ScenarioError or pydantic's ValidationError if no scenario can express it.
    """
    before = scenario.path.changes or ()
    more = changes_of(changed, until_ns)
    changes = tuple(sorted((*before, *more), key=lambda one: one.at.ns))
    update: dict[str, Any] = {"path": scenario.path.model_copy(update={"changes": changes})}
    # They are about the path as it was.
    update["checks"] = {}
    if ends_ns is not None:
        update["until"] = scenario.until.model_copy(update={"time": Time.of(ends_ns)})
    return scenario.model_copy(update=update)


def as_yaml(scenario: Scenario, *, head: str = "") -> str:
    """Returns the scenario as a file, without its defaults."""
    data = scenario.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    data = {"id": scenario.id, "title": scenario.title, **data}
    yaml = YAML()
    yaml.width = 118
    text = io.StringIO()
    yaml.dump(_plain(data), text)
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return comment + text.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
