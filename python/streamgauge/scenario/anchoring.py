"""Paths that a scenario file names are relative to where it lies."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamgauge.errors import ScenarioError
from streamgauge.scenario.document import Document
from streamgauge.scenario.media_files import anchor_clip
from streamgauge.systems.adapter import SIDES
from streamgauge.systems.parameter import function_of
from streamgauge.systems.tcp import bpf_object

__all__ = ["anchor"]


def anchor(document: Document, folder: Path) -> None:
    """Makes the paths that a file names relative to where it lies absolute."""
    path = document.data.get("path")
    for direction in path.values() if isinstance(path, dict) else ():
        if not isinstance(direction, dict):
            continue
        stages = direction.get("stages")
        for stage in (direction, *(stages if isinstance(stages, list) else ())):
            for key in ("rate", "delay", "loss") if isinstance(stage, dict) else ():
                _anchor_trace(stage.get(key), folder)
    population = document.data.get("population")
    clips = population.get("clips") if isinstance(population, dict) else None
    for clip in clips if isinstance(clips, list) else ():
        anchor_clip(clip, folder)
    members = population.get("members") if isinstance(population, dict) else None
    if isinstance(population, dict) and isinstance(members, str):
        members = population["members"] = _members_of(folder / Path(members).expanduser())
    for member in members if isinstance(members, list) else ():
        if isinstance(member, dict):
            anchor_clip(member.get("clip"), folder)
    flows = document.data.get("flows")
    for flow in flows.values() if isinstance(flows, dict) else ():
        for place in (flow, flow.get("sim"), flow.get("emu")) if isinstance(flow, dict) else ():
            if not isinstance(place, dict):
                continue
            anchor_clip(place.get("clip"), folder)
            if (function := function_of(place.get("congestion_control"))) is not None:
                file, name = function
                place["congestion_control"] = f"{folder / Path(file).expanduser()}:{name}"
            _anchor_object(place, folder)
            if isinstance(parameters := place.get("parameters"), dict):
                for key, value in parameters.items():
                    if (function := function_of(value)) is not None:
                        file, name = function
                        parameters[key] = f"{folder / Path(file).expanduser()}:{name}"
            system = place.get("system")
            if isinstance(system, dict) and isinstance(system.get("folder", ""), str):
                # Commands run where their scenario lies, so that `./serve` is beside it.
                system["folder"] = str(folder / Path(system.get("folder", "")).expanduser())
            for process in _processes(system):
                if isinstance(helpers := process.get("helpers"), list):
                    process["helpers"] = [
                        str(folder / Path(one).expanduser()) if isinstance(one, str) else one
                        for one in helpers
                    ]


def _anchor_trace(setting: Any, folder: Path) -> None:
    """Makes the file of a trace absolute; one that ships keeps its name."""
    from streamgauge.scenario.path.trace import shipped_traces

    for key in ("trace", "csv") if isinstance(setting, dict) else ():
        holder, at = (setting[key], "file") if isinstance(setting.get(key), dict) else (setting, key)
        file = holder.get(at)
        if isinstance(file, str) and file not in shipped_traces():
            holder[at] = str(folder / Path(file).expanduser())


def _anchor_object(place: dict[str, Any], folder: Path) -> None:
    """Makes the file of a congestion control that is a BPF object absolute, in either form."""
    control = place.get("congestion_control")
    named = control.get("bpf") if isinstance(control, dict) else control
    if (file := bpf_object(named)) is not None:
        place["congestion_control"] = str(folder / Path(file).expanduser())


def _members_of(file: Path) -> Any:
    """Returns the members of a population from a file of their own. Raises ScenarioError."""
    from ruamel.yaml.error import YAMLError

    try:
        read = copy.deepcopy(_list_of(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).partition("\n")[0]
        raise ScenarioError(
            f"{file} cannot be read: {why}",
            key="population.members",
            hint="name a YAML file with a list of members; paths are relative to the scenario's file",
        ) from None
    if not isinstance(read, list):
        raise ScenarioError(
            f"{file} has no list of members in it",
            key="population.members",
            hint="write such as '- {clip: carphone-550k, rtt: 80 ms, loss: 0.1 %}', a line for each",
        )
    return read


@lru_cache(maxsize=16)
def _list_of(text: str) -> Any:
    """Each variant of a scenario names the same file, which may be long."""
    from ruamel.yaml import YAML

    return YAML(typ="safe").load(text)


def _processes(system: Any) -> list[dict[str, Any]]:
    """Returns the processes of a system given as commands that are written as mappings, as the file has
    them."""
    sides = [system.get(side) for side in SIDES] if isinstance(system, dict) else []
    listed = [
        list(side.values()) if isinstance(side, dict) else side if isinstance(side, list) else []
        for side in sides
    ]
    return [process for side in listed for process in side if isinstance(process, dict)]
