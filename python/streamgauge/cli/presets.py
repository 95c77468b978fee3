"""``presets``: the paths that ship."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.markup import escape

from streamgauge.cli.output import heads, say_text, table
from streamgauge.scenario.path import Preset, direction_in_words, find_preset, preset, preset_names

__all__ = ["presets_command"]


def presets_command(name: str | None, as_json: bool) -> None:
    """All of them in a line each, or one with its sources. Raises ScenarioError for an unknown name."""
    chosen = [find_preset(one) for one in ([name] if name else preset_names())]
    if as_json:
        json.dump(
            {"schema": "streamgauge.presets/1", "presets": [_as_json(one) for one in chosen]},
            sys.stdout,
            indent=2,
            ensure_ascii=False,
        )
        print()
    elif name:
        say_text(_shown(chosen[0]))
    else:
        rows = [[one.name, escape(one.title), escape(one.sources[0].cite)] for one in chosen]
        table([heads("name", "title", "source"), *rows], "lww")


def _shown(chosen: Preset) -> str:
    path = preset(chosen.name)
    lines = [chosen.name, f"  {chosen.title}", f"  {chosen.description}"]
    lines += [f"  down: {direction_in_words(path.down)}", f"  up: {direction_in_words(path.up)}"]
    for source in chosen.sources:
        where = f" <{source.url}>" if source.url else ""
        lines.append(f"  source: {source.what}: {source.cite}{where}")
    lines += [f"  assumed: {assumption}" for assumption in chosen.assumed]
    lines.append(f"  in a scenario: path: {{preset: {chosen.name}}}")
    return "\n".join(lines)


def _as_json(chosen: Preset) -> dict[str, Any]:
    return {
        "name": chosen.name,
        "title": chosen.title,
        "description": chosen.description,
        "path": preset(chosen.name).model_dump(mode="json", by_alias=True, exclude_none=True),
        "sources": [
            {"what": source.what, "cite": source.cite, "url": source.url} for source in chosen.sources
        ],
        "assumed": list(chosen.assumed),
    }
