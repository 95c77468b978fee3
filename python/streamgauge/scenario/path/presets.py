"""Paths that ship: access links as public measurements describe them, and the beds of the papers."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ruamel.yaml import YAML

from streamgauge.errors import ScenarioError
from streamgauge.scenario.values import nearest

__all__ = ["Preset", "PresetSource", "expand", "find_preset", "preset_names"]


@dataclass(frozen=True, kw_only=True)
class PresetSource:
    """Where some of a preset's figures come from."""

    what: str
    """Which figures, as the source states them."""
    cite: str
    """Author, title, year or number."""
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A path with a name."""

    name: str
    title: str
    description: str
    sources: tuple[PresetSource, ...]
    assumed: tuple[str, ...]
    """Figures that no source gives, and why they were chosen."""
    data: dict[str, Any]
    """``down`` and ``up`` as a scenario writes them."""


@cache
def _files() -> dict[str, Any]:
    folder = resources.files("streamgauge") / "presets"
    return {
        entry.name.removesuffix(".yaml"): entry
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".yaml")
    }


def preset_names() -> list[str]:
    """Returns every preset's name."""
    return list(_files())


@cache
def find_preset(name: str) -> Preset:
    """Returns the preset of that name with its sources. Raises ScenarioError with the nearest spelling."""
    files = _files()
    if name not in files:
        close = nearest(name, files)
        raise ScenarioError(
            f"there is no preset '{name}'; expected one of {', '.join(files)}",
            hint=f"did you mean '{close}'?" if close else None,
        )
    data = YAML(typ="safe", pure=True).load(files[name].read_text(encoding="utf-8"))
    return Preset(
        name=name,
        title=data["title"],
        description=data["description"].strip(),
        sources=tuple(PresetSource(**source) for source in data["sources"]),
        assumed=tuple(data.get("assumed", ())),
        data=data["path"],
    )


def expand(data: dict[str, Any]) -> dict[str, Any]:
    """Returns a path that names a ``preset``, with the preset's keys filled in where it has none of its own.

    A direction of its own with ``stages`` replaces the preset's; a key that is null takes the preset's away.
    Raises ScenarioError for an unknown preset.
    """
    made = copy.deepcopy(find_preset(str(data["preset"])).data)
    made["based_on"] = data["preset"]
    for key, own in data.items():
        if key == "preset":
            continue
        if key not in ("down", "up") or not isinstance(own, dict) or "stages" in own:
            made[key] = own
            continue
        base = made.get(key, {})
        if "stages" in base and own:
            names = ", ".join(str(stage.get("name")) for stage in base["stages"])
            raise ScenarioError(
                f"the preset '{data['preset']}' has the stages {names} there; give 'stages' of your own",
                key=key,
            )
        merged = {**base, **own}
        if own.get("rate", "") is None:
            merged.update(queue=own.get("queue"), shaper=own.get("shaper"))
        made[key] = {name: value for name, value in merged.items() if value is not None}
    return made
