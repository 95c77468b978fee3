"""Scenario files: YAML with variants, every error placed at its file, line and key."""

from __future__ import annotations

import copy
import io
import itertools
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.flow import Command
from streamgauge.scenario.media_files import anchor_clip, media_problems
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.overrides import OverrideError, apply_override, override, parse_assignment
from streamgauge.scenario.problems import problems_of
from streamgauge.systems.adapter import SIDES, CommandLine, FlowSetup, Side
from streamgauge.systems.command import CommandError, check_command
from streamgauge.systems.processes import ProcessError, check_helpers

__all__ = ["ScenarioErrors", "from_text", "load_file"]

Key = tuple[str | int, ...]
_LABEL = "label"


class ScenarioErrors(ScenarioError):
    """Several errors of one file, in order of line. Its text is one line for each."""

    def __init__(self, errors: Sequence[ScenarioError]) -> None:
        first = errors[0]
        super().__init__(first.message, file=first.file, line=first.line, key=first.key, hint=first.hint)
        self.errors = tuple(errors)
        self.args = ("\n".join(str(error) for error in errors),)


class _Document:
    """A file's data with the line of every key. Overrides carry the place that they were written at."""

    def __init__(self, data: dict[str, Any], file: str, places: dict[Key, tuple[str, int | None]]) -> None:
        self.data = data
        self.file = file
        self.places = places

    def copy(self) -> _Document:
        return _Document(copy.deepcopy(self.data), self.file, dict(self.places))

    def place(self, key: Key) -> tuple[str, int | None]:
        """File and line of ``key``, or of the nearest thing around it."""
        for end in range(len(key), 0, -1):
            if key[:end] in self.places:
                return self.places[key[:end]]
        return self.file, 1

    def set(self, address: str, value: Any, place: tuple[str, int | None]) -> None:
        """Applies an override. Raises ScenarioError placed where it was written."""
        try:
            paths = apply_override(self.data, address, value)
        except OverrideError as error:
            raise ScenarioError(
                error.why, file=place[0], line=place[1], key=address, hint=error.hint
            ) from None
        for path in paths:
            for key in [key for key in self.places if key[: len(path)] == path]:
                del self.places[key]
            self.places[path] = place


def _plain(node: Any, at: Key, file: str, places: dict[Key, tuple[str, int | None]]) -> Any:
    """YAML nodes as plain data; fills ``places``."""
    if isinstance(node, CommentedMap):
        made: dict[str, Any] = {}
        for key, value in node.items():
            name = str(_plain(key, at, file, places))
            where = (*at, name)
            line = node.lc.data[key][0] + 1 if key in node.lc.data else node.lc.line + 1
            places[where] = (file, line)
            made[name] = _plain(value, where, file, places)
        return made
    if isinstance(node, CommentedSeq):
        items = []
        for index, value in enumerate(node):
            where = (*at, index)
            line = node.lc.data[index][0] + 1 if index in node.lc.data else node.lc.line + 1
            places[where] = (file, line)
            items.append(_plain(value, where, file, places))
        return items
    if isinstance(node, bool):
        return bool(node)
    if isinstance(node, str):
        # "\ud83d\ude00" in quotes comes as two halves of a character.
        return node.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(node, float):
        return float(node)
    return int(node) if isinstance(node, int) else node


def _parse(text: str, file: str) -> _Document:
    return _parsed(text, file).copy()


@lru_cache(maxsize=64)
def _parsed(text: str, file: str) -> _Document:
    """A file of many variants is asked for each of them, and for their ids; reading YAML is the slow part."""
    yaml = YAML(typ="rt", pure=True)
    try:
        node = yaml.load(io.StringIO(text))
    except DuplicateKeyError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        key = str(error.problem).partition('"')[2].partition('"')[0]
        raise ScenarioError(
            f"the key '{key}' stands here a second time; every name is given once",
            file=file,
            line=line,
            key=key,
        ) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        why = " ".join(str(error.problem or error.context or "not YAML").split())
        raise ScenarioError(
            f"not YAML: {why}", file=file, line=line, hint="check indentation, brackets, commas and quotes"
        ) from None
    except YAMLError as error:
        raise ScenarioError(f"not YAML: {' '.join(str(error).split())}", file=file) from None
    if not isinstance(node, CommentedMap):
        raise ScenarioError(
            "a scenario is a mapping of keys such as 'id:', 'path:' and 'flows:'", file=file, line=1
        )
    places: dict[Key, tuple[str, int | None]] = {}
    data = _plain(node, (), file, places)
    return _Document(data, file, places)


def _expand(document: _Document) -> list[_Document]:
    """One document for each variant, or itself."""
    if "variants" not in document.data:
        return [document]
    variants = document.data.pop("variants")
    axes = variants if isinstance(variants, list) else [variants]
    roots: list[Key] = (
        [("variants", index) for index in range(len(axes))] if isinstance(variants, list) else [("variants",)]
    )
    for axis, root in zip(axes, roots, strict=True):
        if (
            not isinstance(axis, dict)
            or not axis
            or not all(isinstance(v, dict | None) for v in axis.values())
        ):
            file, line = document.place(root)
            raise ScenarioError(
                "expected a mapping from the end of an id to what changes, or a list of such mappings",
                file=file,
                line=line,
                key="variants",
                hint="such as 'variants: {heavy: {flows.cross.parameters.rate: 150 packets/s}}'",
            )
    made = []
    for choice in itertools.product(*(axis.items() for axis in axes)):
        one = document.copy()
        labels = []
        for (suffix, changes), root in zip(choice, roots, strict=True):
            one.data["id"] = f"{one.data.get('id', '')}-{suffix}"
            for address, value in (changes or {}).items():
                if address == _LABEL:
                    labels.append(str(value))
                    continue
                one.set(address, value, document.place((*root, suffix, address)))
        if labels:
            one.data["title"] = f"{one.data.get('title', '')}: {', '.join(labels)}"
        made.append(one)
    return made


def _key_text(path: Key) -> str:
    return ".".join(str(part) for part in path)


def _messages(error: ValidationError, document: _Document) -> list[ScenarioError]:
    """A model's errors, each at its place."""
    found: list[ScenarioError] = []
    for problem in problems_of(error):
        file, line = document.place(_existing(problem.path, document))
        key = _key_text(problem.path) or None
        found.append(ScenarioError(problem.why, file=file, line=line, key=key, hint=problem.hint))
    return found


def _existing(path: Key, document: _Document) -> Key:
    """Python's field names as the file spells them (``entry`` is ``from`` there)."""
    renamed = {"entry": "from", "values": "try"}
    return tuple(renamed.get(part, part) if isinstance(part, str) else part for part in path)


def _build(document: _Document) -> Scenario:
    try:
        return Scenario.model_validate(document.data)
    except ValidationError as error:
        found = _messages(error, document)
    # Many variants would repeat an error of their common part; a file's own order is the reader's.
    found.sort(key=lambda one: (one.line or 0, one.key or ""))
    raise found[0] if len(found) == 1 else ScenarioErrors(found)


def _mutants_stand(scenario: Scenario, document: _Document) -> None:
    """Each ``breaks`` and each ``assumed`` alternative must itself be a scenario that makes sense."""
    tries: list[tuple[Key, dict[str, Any]]] = [
        (("checks", name, "breaks"), check.breaks) for name, check in scenario.checks.items() if check.breaks
    ]
    for address, assumed in scenario.assumed.items():
        tries += [
            (("assumed", address, "try", index), {address: value})
            for index, value in enumerate(assumed.values)
        ]
    for where, changes in tries:
        try:
            override(scenario, changes, drop_checks=True)
        except ValidationError as error:
            file, line = document.place(where)
            inner = _messages(error, document)[0]
            raise ScenarioError(
                f"makes a scenario that cannot run: {inner.key}: {inner.message}",
                file=file,
                line=line,
                key=_key_text(where),
                hint=inner.hint,
            ) from None


def _anchor(document: _Document, folder: Path) -> None:
    """Makes the paths that a file names relative to where it lies absolute."""
    from streamgauge.scenario.path.trace import shipped_traces

    path = document.data.get("path")
    for direction in path.values() if isinstance(path, dict) else ():
        if not isinstance(direction, dict):
            continue
        stages = direction.get("stages")
        for stage in (direction, *(stages if isinstance(stages, list) else ())):
            rate = stage.get("rate") if isinstance(stage, dict) else None
            if not isinstance(rate, dict):
                continue
            for key in ("trace", "csv"):
                holder, at = (rate[key], "file") if isinstance(rate.get(key), dict) else (rate, key)
                file = holder.get(at)
                if isinstance(file, str) and file not in shipped_traces():
                    holder[at] = str(folder / Path(file).expanduser())
    population = document.data.get("population")
    clips = population.get("clips") if isinstance(population, dict) else None
    for clip in clips if isinstance(clips, list) else ():
        anchor_clip(clip, folder)
    flows = document.data.get("flows")
    for flow in flows.values() if isinstance(flows, dict) else ():
        for place in (flow, flow.get("sim"), flow.get("emu")) if isinstance(flow, dict) else ():
            if not isinstance(place, dict):
                continue
            anchor_clip(place.get("clip"), folder)
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


def _processes(system: Any) -> list[dict[str, Any]]:
    """The processes of a system given as commands that are written as mappings, as the file has them."""
    sides = [system.get(side) for side in SIDES] if isinstance(system, dict) else []
    listed = [
        list(side.values()) if isinstance(side, dict) else side if isinstance(side, list) else []
        for side in sides
    ]
    return [process for side in listed for process in side if isinstance(process, dict)]


def _media_files_sound(scenario: Scenario, document: _Document) -> None:
    found = []
    for problem in media_problems(scenario):
        file, line = document.place(problem.path)
        key = _key_text(problem.path)
        found.append(ScenarioError(problem.why, file=file, line=line, key=key, hint=problem.hint))
    if found:
        found.sort(key=lambda one: one.line or 0)
        raise found[0] if len(found) == 1 else ScenarioErrors(found)


def _commands_sound(scenario: Scenario, document: _Document) -> None:
    for name, whole in scenario.flows.items():
        flow = whole.in_mode("emu")  # sim runs no commands
        if not isinstance(flow.system, Command):
            continue
        stands_in = whole.emu is not None and whole.emu.system is not None
        known = FlowSetup.variable_names(flow.parameters, has_clip=flow.clip is not None)
        at: Key = ("flows", name, *(("emu",) if stands_in else ()), "system")
        for side in SIDES:
            for number, line in enumerate(flow.system.lines(side)):
                key = (*at, side)
                if line.name:
                    listed = (*at, side, number)
                    key = listed if listed in document.places else (*at, side, line.name)
                _command_sound(line, side, key, [*known, *flow.system.env], document)


def _command_sound(line: CommandLine, side: Side, key: Key, known: list[str], document: _Document) -> None:
    """Raises ScenarioError for a command or a path with a slip in it, and for helpers that are not there."""

    def refuse(why: str, hint: str | None, *inner: str) -> ScenarioError:
        file, lineno = document.place((*key, *inner))
        return ScenarioError(why, file=file, line=lineno, key=_key_text((*key, *inner)), hint=hint)

    spelt_out = ("command",) if (*key, "command") in document.places else ()
    for text, inner in ((line.command, spelt_out), (line.ready or "", ("ready",))):
        try:
            check_command(text, known)
        except CommandError as error:
            raise refuse(error.why, error.hint, *inner) from None
    try:
        check_helpers(side, line.name, [Path(helper) for helper in line.helpers])
    except ProcessError as error:
        hint = error.hint or "paths are relative to the scenario's file"
        raise refuse(error.why, hint, "helpers") from None


def from_text(
    text: str,
    *,
    file: str = "<text>",
    folder: Path | None = None,
    settings: Iterable[str] = (),
    only: str | None = None,
) -> list[Scenario]:
    """Every scenario of a YAML text, its variants expanded and ``settings`` (``ADDRESS=VALUE``) applied.

    ``folder`` is what paths in it are relative to. ``only`` keeps the one with that id. Raises ScenarioError
    with file, line and key.
    """
    made = []
    seen: dict[str, int] = {}
    for document in _expand(_parse(text, file)):
        if only is not None and document.data.get("id") != only:
            continue
        for setting in settings:
            place = (f"--set {setting}", None)
            try:
                address, value = parse_assignment(setting)
            except OverrideError as error:
                raise ScenarioError(error.why, file="--set", hint=error.hint) from None
            document.set(address, value, place)
        if folder is not None:
            _anchor(document, folder)
        scenario = _build(document)
        _media_files_sound(scenario, document)
        _commands_sound(scenario, document)
        _mutants_stand(scenario, document)
        if scenario.id in seen:
            raise ScenarioError(f"two variants are called '{scenario.id}'", file=file, key="variants")
        seen[scenario.id] = 1
        made.append(scenario)
    return made


def load_file(path: Path, *, settings: Iterable[str] = (), only: str | None = None) -> list[Scenario]:
    """Every scenario of a file; see `from_text`."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError("there is no such file", file=path) from None
    except IsADirectoryError:
        raise ScenarioError("is a folder, not a scenario file", file=path) from None
    except UnicodeDecodeError as error:
        raise ScenarioError(f"is not UTF-8 text (byte {error.start})", file=path) from None
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror}", file=path) from None
    folder = path.resolve().parent
    return from_text(text, file=str(path), folder=folder, settings=settings, only=only)


def declared_ids(text: str, *, file: str) -> list[str]:
    """Ids that a file declares, without validating it."""
    return [str(document.data.get("id")) for document in _expand(_parse(text, file))]
