"""Scenario files: YAML with variants, every error placed at its file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.anchoring import anchor
from streamgauge.scenario.document import Document, Key, key_text, read_text
from streamgauge.scenario.extending import documents
from streamgauge.scenario.flow import Command
from streamgauge.scenario.functions import function_problems
from streamgauge.scenario.media_files import media_problems
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.mutation import mutants_of
from streamgauge.scenario.overrides import OverrideError, override, parse_assignment
from streamgauge.scenario.paper_readings import READING, readings_of
from streamgauge.scenario.problems import problems_of
from streamgauge.scenario.values import PATHS
from streamgauge.systems.adapter import SIDES, CommandLine, FlowSetup, Side
from streamgauge.systems.command import CommandError, check_command
from streamgauge.systems.processes import ProcessError, check_helpers, check_reach

__all__ = ["ScenarioErrors", "from_text", "load_file"]


class ScenarioErrors(ScenarioError):
    """Several errors of one file, in order of line. Its text is one line for each."""

    def __init__(self, errors: Sequence[ScenarioError]) -> None:
        first = errors[0]
        super().__init__(
            first.message,
            file=first.file,
            line=first.line,
            key=first.key,
            hint=first.hint,
            depends=all(error.depends for error in errors),
        )
        self.errors = tuple(errors)
        self.args = ("\n".join(str(error) for error in errors),)


def _messages(error: ValidationError, document: Document) -> list[ScenarioError]:
    """Returns a model's errors, each at its place."""
    found: list[ScenarioError] = []
    for problem in problems_of(error):
        file, line = document.place(_existing(problem.path, document))
        key = key_text(problem.path) or None
        found.append(
            ScenarioError(
                problem.why, file=file, line=line, key=key, hint=problem.hint, depends=problem.depends
            )
        )
    return found


def _existing(path: Key, document: Document) -> Key:
    """Python's field names as the file spells them (``entry`` is ``from`` there)."""
    renamed = {"entry": "from", "values": "try"}
    return tuple(renamed.get(part, part) if isinstance(part, str) else part for part in path)


def _build(document: Document) -> Scenario:
    try:
        return Scenario.model_validate(document.data)
    except ValidationError as error:
        found = _messages(error, document)
    # Many variants would repeat an error of their common part; a file's own order is the reader's.
    found.sort(key=lambda one: (one.line or 0, one.key or ""))
    raise found[0] if len(found) == 1 else ScenarioErrors(found)


def _mutants_stand(scenario: Scenario, document: Document) -> None:
    """Each ``breaks``, ``without`` and ``assumed`` alternative must itself be a scenario that makes sense."""
    tries: list[tuple[Key, dict[str, Any]]] = [
        (("checks", name, key), changes)
        for name, check in scenario.checks.items()
        for key, changes in mutants_of(check).items()
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
                key=key_text(where),
                hint=inner.hint,
            ) from None


def _media_files_sound(scenario: Scenario, document: Document) -> None:
    found = []
    for problem in (*media_problems(scenario), *function_problems(scenario.flows)):
        file, line = document.place(problem.path)
        key = key_text(problem.path)
        found.append(ScenarioError(problem.why, file=file, line=line, key=key, hint=problem.hint))
    if found:
        found.sort(key=lambda one: one.line or 0)
        raise found[0] if len(found) == 1 else ScenarioErrors(found)


def _commands_sound(scenario: Scenario, document: Document) -> None:
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


def _command_sound(line: CommandLine, side: Side, key: Key, known: list[str], document: Document) -> None:
    """Raises ScenarioError for a command or a path with a slip in it, and for helpers that are not there."""

    def refuse(why: str, hint: str | None, *inner: str) -> ScenarioError:
        file, lineno = document.place((*key, *inner))
        return ScenarioError(why, file=file, line=lineno, key=key_text((*key, *inner)), hint=hint)

    spelt_out = ("command",) if (*key, "command") in document.places else ()
    for text, inner in ((line.command, spelt_out), (line.ready or "", ("ready",))):
        try:
            check_command(text, known)
        except CommandError as error:
            raise refuse(error.why, error.hint, *inner) from None
    try:
        helpers = [Path(helper) for helper in line.helpers]
        check_helpers(side, line.name, helpers)
        check_reach(side, line.name, helpers, Path(document.place((*key, "helpers"))[0]).parent)
    except ProcessError as error:
        hint = error.hint or PATHS
        raise refuse(error.why, hint, "helpers") from None


def from_text(
    text: str,
    *,
    file: str = "<text>",
    folder: Path | None = None,
    settings: Iterable[str] = (),
    only: str | None = None,
    mutants: bool = True,
) -> list[Scenario]:
    """Returns every scenario of a YAML text, its variants expanded and ``settings`` (``ADDRESS=VALUE``)
    applied. The setting ``reading=NAME`` applies a reading of its paper
    (`streamgauge.scenario.paper_readings`).

    ``folder`` is the base of relative paths in it; paths in settings are relative to the working directory.
    ``only`` keeps the one with that id. ``mutants`` also validates the mutants of its checks and the
    alternatives of ``assumed``, which takes most of the time. Raises ScenarioError with file, line and key.
    """
    made = []
    settings = list(settings)
    seen: dict[str, int] = {}
    for document in documents(text, file=file, folder=folder, only=only):
        if only is not None and document.data.get("id") != only:
            continue
        assigned = [(setting, *_assigned(setting)) for setting in settings]
        # A setting by hand overrides a reading, wherever it is.
        for _, _, name in (one for one in assigned if one[1] == READING):
            readings_of(str(document.data.get("id", "")).partition("/")[0]).apply(str(name), document)
        if folder is not None:
            anchor(document, folder)
        for setting, address, value in assigned:
            if address != READING:
                document.set(address, value, (f"--set {setting}", None))
        if settings:
            # The file's own paths are absolute by now: only paths in settings change here.
            anchor(document, Path.cwd())
        scenario = _build(document)
        _media_files_sound(scenario, document)
        _commands_sound(scenario, document)
        # A setting may remove the mechanism that a mutant removes; callers that ask for mutants get the error
        # then.
        if mutants and not settings:
            _mutants_stand(scenario, document)
        if scenario.id in seen:
            raise ScenarioError(f"two variants are called '{scenario.id}'", file=file, key="variants")
        seen[scenario.id] = 1
        made.append(scenario)
    return made


def _assigned(setting: str) -> tuple[str, Any]:
    try:
        return parse_assignment(setting)
    except OverrideError as error:
        raise ScenarioError(error.why, file="--set", hint=error.hint) from None


def load_file(
    path: Path, *, settings: Iterable[str] = (), only: str | None = None, mutants: bool = True
) -> list[Scenario]:
    """Returns every scenario of a file; see `from_text`."""
    text = read_text(path)
    folder = path.resolve().parent
    return from_text(text, file=str(path), folder=folder, settings=settings, only=only, mutants=mutants)
