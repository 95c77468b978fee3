"""Like with like: the conditions of a scenario's trials, and the subject in it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["conditions_of", "differences", "key_of", "neighbours_of", "path_without", "under_test"]

Json = Mapping[str, Any]

_TESTED = ("system", "traffic", "parameters", "congestion_control", "ecn", "sim", "emu", "role")
"""Parts of a subject flow; the rest of it, its clip and its times, are conditions."""


def conditions_of(scenario: Json) -> dict[str, Any]:
    """Returns the conditions that must be equal for two scenarios (normalised) to be like with like: the path
    but for its queues, the flows beside the subjects, the media and its times, the duration, and the
    metrics.

    Subject flows are called by their place, so that another name is no other condition.
    """
    flows: Json = scenario.get("flows") or {}
    renamed = _places(flows)
    told: dict[str, Any] = {
        "path": _without_queues(scenario.get("path")),
        "until": scenario.get("until"),
        "relays": scenario.get("relays") or None,
        "population": scenario.get("population"),
        "randomize": scenario.get("randomize") or None,
        "host_jitter": scenario.get("host_jitter"),
        "start_phase": scenario.get("start_phase"),
        "measure": {key: (scenario.get("measure") or {}).get(key) for key in ("window", "layer")},
        "flows": {
            name: {key: value for key, value in flow.items() if name not in renamed or key not in _TESTED}
            for name, flow in flows.items()
        },
    }
    return {key: _renamed(value, renamed) for key, value in told.items() if value is not None}


def under_test(scenario: Json) -> dict[str, Any]:
    """Returns the subject of a scenario: the subject flows but for their conditions, and the queues."""
    flows: Json = scenario.get("flows") or {}
    renamed = _places(flows)
    told = {
        renamed[name]: {key: flow[key] for key in _TESTED if flow.get(key) and key != "role"}
        for name, flow in flows.items()
        if name in renamed
    }
    return {**told, "queues": [list(at) for at in _queues(scenario.get("path"))]}


def neighbours_of(scenario: Json) -> dict[str, Any]:
    """Returns the common conditions of the neighbours' own trials and those beside a subject flow."""
    flows: Json = scenario.get("flows") or {}
    kept = (
        "traffic",
        "system",
        "parameters",
        "congestion_control",
        "ecn",
        "clip",
        "arrivals",
        "from",
        "direction",
    )
    return {
        "path": path_without(scenario.get("path"), set(_places(flows))),
        "flows": {
            name: {key: flow.get(key) for key in kept}
            for name, flow in flows.items()
            if name not in _places(flows)
        },
    }


def path_without(path: Any, flows: Collection[str]) -> Any:
    """Returns a path (normalised) without its settings of single flows, such as their own delays; empty keys
    are removed."""
    if isinstance(path, Mapping):
        found = {}
        for key, value in path.items():
            if key == "flows" and isinstance(value, Mapping):
                value = {name: told for name, told in value.items() if name not in flows}
                if not value:
                    continue
            found[key] = path_without(value, flows)
        return found
    return [path_without(one, flows) for one in path] if isinstance(path, list | tuple) else path


def key_of(told: Json) -> str:
    """Returns a name that equal conditions share."""
    return json.dumps(told, sort_keys=True, ensure_ascii=False)


def differences(ours: Json, theirs: Json) -> list[tuple[str, str, str]]:
    """Returns where conditions differ: (address, ours, theirs), ``nothing`` where one has it not."""
    mine, other = dict(_leaves(ours, ())), dict(_leaves(theirs, ()))
    return [
        (".".join(address), mine.get(address, "nothing"), other.get(address, "nothing"))
        for address in dict.fromkeys([*mine, *other])
        if mine.get(address) != other.get(address)
    ]


def _places(flows: Json) -> dict[str, str]:
    """Returns subject flows by name, with the name of each among conditions."""
    tested = [name for name, flow in flows.items() if flow.get("role", "subject") == "subject"]
    if len(tested) == 1:
        return {tested[0]: "the subject"}
    return {name: f"subject {place}" for place, name in enumerate(tested, 1)}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """With subject flows by their places, as keys and in references such as ``video.start + 10 s``."""
    if isinstance(value, Mapping):
        return {_in_text(str(key), names): _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(inner, names) for inner in value]
    return _in_text(value, names) if isinstance(value, str) else value


def _in_text(text: str, names: Mapping[str, str]) -> str:
    if text in names:
        return names[text]
    for name, place in names.items():
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?=\.(start|stop)\b)", place, text)
    return text


def _without_queues(path: Any) -> Any:
    if isinstance(path, Mapping):
        return {key: _without_queues(value) for key, value in path.items() if key != "queue"}
    return [_without_queues(one) for one in path] if isinstance(path, list | tuple) else path


def _queues(path: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yields every queue of a path: where, and which."""
    pairs: Sequence[tuple[Any, Any]] = ()
    if isinstance(path, Mapping):
        pairs = list(path.items())
    elif isinstance(path, list | tuple):
        pairs = [
            (one.get("name", place) if isinstance(one, Mapping) else place, one)
            for place, one in enumerate(path)
        ]
    for key, value in pairs:
        if key == "queue":
            yield ".".join(at), json.dumps(value, sort_keys=True, ensure_ascii=False)
        else:
            yield from _queues(value, (*at, str(key)))


def _leaves(value: Any, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*at, str(key)))
    elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
        for place, inner in enumerate(value):
            name = inner.get("name", place) if isinstance(inner, Mapping) else place
            yield from _leaves(inner, (*at, str(name)))
    elif value is not None and value not in ({}, [], ()):
        yield at, ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
