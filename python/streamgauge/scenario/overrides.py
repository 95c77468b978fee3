"""Addresses into a scenario, as ``--set``, ``variants``, ``breaks``, ``assumed`` and ``randomize`` use them.

An address is the keys from the top, joined by dots: ``flows.tcp.congestion_control``, ``path.down.rate``. A
stage of the long form is addressed by its name: ``path.down.dsl.rate``. A flow's parameter may be set whether
or not the file mentions it. A ``*`` in a flow's name matches anything: ``flows.tcp*.congestion_control`` is
that of every flow with such a name, if its system has it. The value ``null`` takes a key away.
"""

from __future__ import annotations

import copy
import fnmatch
import io
from typing import Any, TypeVar

from streamgauge.errors import ScenarioError
from streamgauge.scenario.expect import Limits, Measure, Population, Repetitions, Until
from streamgauge.scenario.flow import Clip, Command, Flow, StandIn
from streamgauge.scenario.limits import MOST_DEPTH, LimitError, check_text
from streamgauge.scenario.path import Direction, Path
from streamgauge.scenario.path.commas import queue_in_full
from streamgauge.scenario.path.presets import expand
from streamgauge.scenario.path.queue import QUEUES
from streamgauge.scenario.path.text import spelt_out
from streamgauge.scenario.shape import Shape
from streamgauge.scenario.values import nearest
from streamgauge.systems.registry import SYSTEMS, TRAFFIC, System

__all__ = [
    "OverrideError",
    "apply_override",
    "check_address",
    "has_address",
    "leads_anywhere",
    "override",
    "parse_assignment",
    "switch_kind",
]

Data = dict[str, Any]
S = TypeVar("S", bound=Shape)


class OverrideError(ValueError):
    """An address that leads nowhere."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(f"{why} ({hint})" if hint else why)
        self.why = why
        self.hint = hint


def _no_such(part: str, known: list[str], trail: list[str]) -> OverrideError:
    inside = f" in '{'.'.join(trail)}'" if trail else ""
    close = nearest(part, known)
    spelt = ".".join([*trail, close]) if close else None
    return OverrideError(
        f"there is no '{part}'{inside}; expected one of {', '.join(known)}",
        f"did you mean '{spelt}'?" if spelt else None,
    )


def _keys_at(trail: list[str]) -> list[str] | None:
    """Returns the valid keys at this place of a scenario; ``None`` where any may be."""
    match trail:
        case []:
            return Shape.keys()
        case ["path"]:
            return [*Path.keys(), "preset"]
        case ["path", _]:
            return Direction.keys()
        case ["until"]:
            return Until.keys()
        case ["measure"]:
            return Measure.keys()
        case ["limits"]:
            return Limits.keys()
        case ["repetitions"]:
            return Repetitions.keys()
        case ["population"]:
            return Population.keys()
        case ["flows", _]:
            return Flow.keys()
        case ["flows", _, "parameters"]:
            return None
        case ["flows", _, "clip"]:
            return Clip.keys()
        case ["flows", _, "system"]:
            return Command.keys()
        case ["flows", _, "sim" | "emu"]:
            return StandIn.keys()
    return None


def _entry(flow: Data) -> System | None:
    name = flow.get("system") or flow.get("traffic")
    return (SYSTEMS.get(name) or TRAFFIC.get(name)) if isinstance(name, str) else None


def _parameter_names(flow: Data) -> list[str] | None:
    entry = _entry(flow)
    return list(entry.parameters) if entry else None


def locate(data: Data, address: str) -> tuple[Any, str | int, tuple[str | int, ...]]:
    """Returns the container in ``data`` that holds the value at ``address``, the key there, and the whole
    path.

    Missing mappings on the way are made. Raises `OverrideError`.
    """
    parts = address.split(".")
    if not all(parts):
        raise OverrideError(
            f"'{address}' is not an address; expected keys joined by dots, such as path.down.rate"
        )
    _fill_in_preset(data, parts)
    here: Any = data
    trail: list[str] = []
    path: list[str | int] = []
    while True:
        in_direction = len(trail) == 2 and trail[0] == "path"
        key: str | int
        if isinstance(here, list):
            part = parts.pop(0)
            here, key = _stage(here, part, trail)
        elif isinstance(here, dict):
            part = _whole_key(here, parts, trail)
            stages = here.get("stages") if in_direction else None
            if isinstance(stages, list) and part not in Direction.keys():  # noqa: SIM118
                path.append("stages")
                here, key = _stage(stages, part, trail)
            elif in_direction and stages is None and part == "bottleneck" and parts:
                continue  # the shorthand's stage has a name too: path.down.bottleneck.rate
            else:
                key = _key(here, part, trail, bool(parts), data)
        else:
            raise OverrideError(f"'{'.'.join(trail)}' is {here!r}, which has no '{parts[0]}' in it")
        path.append(key)
        trail.append(part)
        if not parts:
            return here, key, tuple(path)
        if isinstance(here, dict) and here.get(str(key)) is None:
            here[str(key)] = {}
        if isinstance(here, dict) and trail[0] == "path" and isinstance(here[str(key)], str):
            # `queue: codel 100 packets` has a target too: path.down.queue.codel.target.
            here[str(key)] = spelt_out(str(key), here[str(key)], parts)
        here = here[key]


def _fill_in_preset(data: Data, parts: list[str]) -> None:
    """Sets values below ``path`` in the preset's path; setting a preset replaces the whole path."""
    path = data.get("path")
    if parts[0] != "path" or len(parts) < 2 or not isinstance(path, dict):
        return
    if parts[1] == "preset":
        path.clear()
    elif "preset" in path:
        try:
            data["path"] = expand(path)
        except ScenarioError as error:
            raise OverrideError(error.message, error.hint) from None


def _whole_key(here: Data, parts: list[str], trail: list[str]) -> str:
    """Takes the next key off ``parts``. Ids of checks and addresses have dots of their own."""
    for length in range(len(parts), 1, -1):
        if ".".join(parts[:length]) in here:
            key = ".".join(parts[:length])
            del parts[:length]
            return key
    if parts[0] not in here and trail in (["assumed"], ["randomize"]):
        key = ".".join(parts)
        parts.clear()
        return key
    return parts.pop(0)


def _stage(stages: list[Any], part: str, trail: list[str]) -> tuple[list[Any], int]:
    if part.isdigit() and int(part) < len(stages):
        return stages, int(part)
    names = [
        str(stage.get("name")) if isinstance(stage, dict) else str(index)
        for index, stage in enumerate(stages)
    ]
    if part not in names:
        raise _no_such(part, names, trail)
    return stages, names.index(part)


def _key(here: Data, part: str, trail: list[str], more: bool, data: Data) -> str:
    known = _keys_at(trail)
    if trail[:1] == ["flows"] and len(trail) == 3 and trail[2] == "parameters":
        known = _parameter_names(data["flows"][trail[1]])
    elif trail in (["flows"], ["checks"]):
        # A whole flow or check may be added; a part of one that is not there is a slip.
        known = list(here) if more else None
    if known is not None and part not in known and part not in here:
        raise _no_such(part, known, trail)
    return part


def _each(data: Data, address: str) -> list[str]:
    """Returns the addresses that one with ``*`` in a flow's name matches; any other matches itself.

    Flows whose system lacks the rest of the address are left out. ``*`` alone may therefore match none: one
    setting fits many scenarios. Raises `OverrideError`.
    """
    parts = address.split(".")
    if len(parts) < 2 or parts[0] != "flows" or "*" not in parts[1]:
        return [address]
    flows = data.get("flows")
    known = {str(name): flow for name, flow in flows.items()} if isinstance(flows, dict) else {}
    names = [name for name in known if fnmatch.fnmatchcase(name, parts[1])]
    if not names:
        raise OverrideError(f"no flow's name is like '{parts[1]}'; the flows are {', '.join(known)}")
    keys = parts[2:]
    _check_keys(keys, parts[:2])
    fitting = [name for name in names if not keys or _fits(known[name], keys)]
    if not fitting and parts[1] != "*":
        raise OverrideError(f"none of the flows {', '.join(names)} has '{'.'.join(keys)}'")
    return [".".join(["flows", name, *keys]) for name in fitting]


def _check_keys(keys: list[str], trail: list[str]) -> None:
    """Raises `OverrideError` for keys that no flow could have."""
    if keys and keys[0] not in Flow.keys():  # noqa: SIM118
        raise _no_such(keys[0], Flow.keys(), trail)
    if len(keys) == 2 and keys[0] == "parameters":
        entries = [*SYSTEMS.values(), *TRAFFIC.values()]
        known = dict.fromkeys(name for entry in entries for name in entry.parameters)
        if keys[1] not in known:
            close = nearest(keys[1], known)
            hint = f"did you mean '{'.'.join([*trail, keys[0], close])}'?" if close else None
            raise OverrideError(f"no system has a parameter '{keys[1]}'", hint)


def _fits(flow: Any, keys: list[str]) -> bool:
    """Returns whether a flow's system has the value at these keys."""
    entry = _entry(flow) if isinstance(flow, dict) else None
    if entry is None:
        return True
    given = flow.get("parameters")
    if keys[0] == "parameters":
        return len(keys) == 1 or keys[1] in entry.parameters
    if keys[0] in ("congestion_control", "ecn"):
        return entry.over_tcp(given if isinstance(given, dict) else {})
    return keys[0] != "clip" or (entry.plays and entry.clips)


def apply_override(data: Data, address: str, value: Any) -> list[tuple[str | int, ...]]:
    """Sets (or, with ``None``, removes) the value at ``address`` in ``data``, in place; returns paths."""
    if address.count(".") >= MOST_DEPTH:
        raise OverrideError(f"'{address[:40]}...' has more than {MOST_DEPTH} parts", "no scenario is as deep")
    return [_apply(data, one, value) for one in _each(data, address)]


def _apply(data: Data, address: str, value: Any) -> tuple[str | int, ...]:
    container, key, path = locate(data, address)
    if value is None:
        if isinstance(container, dict):
            container.pop(str(key), None)
        else:
            del container[int(key)]
    else:
        container[key] = _queue_in_full(container, address, value) if key == "queue" else copy.deepcopy(value)
        switch_kind(container, key)
    return path


def _queue_in_full(container: Any, address: str, value: Any) -> Any:
    """A queue that is set by its limit alone, ``path.down.queue=10kB``, is drop-tail, as in `link`.

    Raises `OverrideError` where the queue has another discipline: the address is then ambiguous.
    """
    if not address.startswith("path.") or not isinstance(value, str) or not isinstance(container, dict):
        return copy.deepcopy(value)
    whole = queue_in_full(value.strip())
    here = container.get("queue")
    if whole == value.strip() or here is None:
        return whole
    name = here.split()[0] if isinstance(here, str) and here.split() else next(iter(here), None)
    if name in QUEUES and name != "droptail":
        raise OverrideError(
            f"'{value}' is a limit alone, and the queue is {name}", f"write '{name} {value}' or '{whole}'"
        )
    return whole


def switch_kind(container: Any, key: str | int) -> None:
    """A flow has a system or traffic: setting the one removes the other, and the keys that only it had."""
    if key not in ("system", "traffic") or not isinstance(container, dict):
        return
    container.pop("traffic" if key == "system" else "system", None)
    names = _parameter_names(container)
    if names is not None and isinstance(container.get("parameters"), dict):
        container["parameters"] = {k: v for k, v in container["parameters"].items() if k in names}
    if key == "traffic":
        container.pop("clip", None)


def check_address(scenario: Shape, address: str) -> None:
    """Raises `OverrideError` if ``address`` leads nowhere in ``scenario``."""
    # No other key is on the way.
    first = address.partition(".")[0]
    data = _bare(scenario, without=set(type(scenario).model_fields) - {first})
    for one in _each(data, address):
        locate(data, one)


def has_address(scenario: Shape, address: str) -> bool:
    """Returns whether ``address`` leads anywhere in ``scenario``: a ``*`` to one flow at least."""
    # No other key is on the way, and a scenario's population is long.
    first = address.partition(".")[0]
    return leads_anywhere(_bare(scenario, without=set(type(scenario).model_fields) - {first}), address)


def leads_anywhere(data: Data, address: str) -> bool:
    """Runs `has_address` on a scenario's data."""
    first = address.partition(".")[0]
    data = {first: copy.deepcopy(data[first])} if first in data else {}
    try:
        found = _each(data, address)
        for one in found:
            locate(data, one)
    except OverrideError:
        return False
    return bool(found)


def _bare(scenario: Shape, without: set[str] | None = None) -> Data:
    return scenario.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=without)


def override(scenario: S, changes: dict[str, Any], *, id: str | None = None, drop_checks: bool = False) -> S:
    """Returns the scenario with some addresses set to other values, validated anew.

    Raises `OverrideError` for an address that leads nowhere, pydantic's ValidationError for a value that
    makes no sense.
    """
    # Deleted parts are not written out first: a population is large.
    without = {key for key in ("population",) if key in changes and changes[key] is None}
    data = _bare(scenario, without | ({"checks", "assumed"} if drop_checks else set()))
    for address, value in changes.items():
        if address not in without:
            apply_override(data, address, value)
    if id is not None:
        data["id"] = id
    return type(scenario).model_validate(data)


def parse_assignment(text: str) -> tuple[str, Any]:
    """Returns ``path.down.rate=300kbit/s`` as (address, value); the value may be any YAML. Raises
    `OverrideError`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    address, equals, value = text.partition("=")
    if not equals or not address.strip() or not value.strip():
        raise OverrideError(f"'{text}' is not an assignment; expected such as path.down.rate=300kbit/s")
    try:
        check_text(value)
        parsed = YAML(typ="safe", pure=True).load(io.StringIO(value))
    except LimitError as error:
        raise OverrideError(f"the value of {address.strip()} {error.why}") from None
    except (YAMLError, RecursionError):
        raise OverrideError(
            f"'{value}' is not a value; expected a quantity, a word or YAML in one line"
        ) from None
    return address.strip(), parsed
