"""Any server and player, given as command lines. The contract is in docs/adapters.md."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from streamgauge.systems.adapter import (
    ENDS,
    PREFIX,
    Action,
    Adapter,
    Clock,
    Collected,
    CommandLine,
    External,
    FlowSetup,
    Process,
    Program,
    Ready,
    Side,
)
from streamgauge.systems.events import last, read_events
from streamgauge.systems.processes import ProcessError, check_names

LARGEST_COUNT = 2**63
"""No counter of bytes or packets reaches that."""
UNSUPPORTED = 127
"""Exit status of a command that does not support a request."""


def _declared_transport(parameters: Mapping[str, Any]) -> Literal["tcp"] | None:
    """Returns the value of a parameter ``transport: tcp`` of the scenario; None without one."""
    return "tcp" if parameters.get("transport") == "tcp" else None


class CommandAdapter:
    """The adapter of a system written as ``{server: CMD, player: CMD}``."""

    version = 1
    programs: Sequence[Program] = ()
    external: External | None = External(content="file", media_over=_declared_transport)
    of_arrivals: Adapter | None = None

    def ours(self, parameters: Mapping[str, Any]) -> bool:
        return False

    def actions(self, parameters: Mapping[str, Any]) -> tuple[Action, ...]:
        return ENDS

    def processes(self, flow: FlowSetup) -> list[Process]:
        made = []
        for side, lines in flow.commands.items():
            main = main_line(lines)
            made += [self._process(flow, side, line, is_main=line is main) for line in lines]
        return made

    @staticmethod
    def _process(flow: FlowSetup, side: Side, line: CommandLine, *, is_main: bool) -> Process:
        variables = _variables(flow, side, line.name)
        ready = _readiness(side, line, variables, is_main=is_main)
        return Process(
            side=side,
            name=line.name,
            command=split_command(line.command, variables),
            namespace=flow.namespace(side),
            early=side == "server" or ready is not None,
            ready=ready,
            helpers=[Path(helper) for helper in line.helpers],
            environment=flow.environment,
            working_folder=flow.working_folder,
            essential=line.essential,
            # The others have done their part when they end in order; a server is to stay.
            may_end=side == "player" or not is_main,
            acted_on=side == "player",
        )

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        for side, lines in flow.commands.items():
            for line in lines:
                found.events += read_events(flow, side, clock, found.faults, name=line.name)
        packets = self._total(found, "total_packets_received")
        octets = self._total(found, "total_bytes_received")
        if octets is not None:
            found.received_bytes, found.received_what = octets, "bytes that the player reports"
        if packets is not None:
            found.received_packets, found.received_what = packets, "packets that the player reports"
        return found

    @staticmethod
    def _total(found: Collected, name: str) -> int | None:
        """Returns the last of a counter; one that no counter can show is a fault."""
        total = last(found.events, name)
        if total is not None and not 0 <= total < LARGEST_COUNT:
            found.faults.append(f"its {name} is {total:g}, which is no count")
            return None
        return None if total is None else int(total)


def main_line(lines: Sequence[CommandLine]) -> CommandLine | None:
    """Returns the process that ends its side: the last that is essential; None if there is none."""
    return next((line for line in reversed(lines) if line.essential), None)


def _readiness(
    side: Side, line: CommandLine, variables: Mapping[str, str], *, is_main: bool
) -> Ready | Path | None:
    """Returns the sign of a process that it is ready; None if the run does not wait for it.

    A server's main process always does, a player's starts with its flow. Any other one does if the scenario
    has a sign for it, or if its own command uses the file.
    """
    if line.ready is not None:
        return WORDS_OF_READY.get(line.ready) or Path(filled_in(line.ready, variables))
    if is_main:
        return "file or port" if side == "server" else None
    return "file" if READY_VARIABLE in line.command else None


READY_VARIABLE = f"{PREFIX}READY"
WORDS_OF_READY: dict[str, Ready] = {"file": "file", "port": "port", "end": "end"}
"""Words that a scenario may use instead of a path."""


def check_lines(side: Side, lines: Sequence[CommandLine]) -> None:
    """Refuses a side's processes where the scenario itself makes no sense. Raises ProcessError."""
    check_names(side, [line.name for line in lines])
    main = main_line(lines)
    if main is None:
        hint = "leave 'essential' out of the one that is the side's own"
        raise ProcessError((side,), "has no essential process", hint)
    late: CommandLine | None = None
    for line in lines:
        key = (side, *([line.name] if line.name else []))
        if not line.command.strip():
            raise ProcessError((*key, "command") if line.name else key, "an empty command")
        _check_ready(key, side, line, main, late)
        early = side == "server" or _readiness(side, line, {}, is_main=line is main) is not None
        late = late if early else late or line


def _check_ready(
    key: tuple[str, ...], side: Side, line: CommandLine, main: CommandLine, late: CommandLine | None
) -> None:
    ready = line.ready
    if ready is not None and ready not in WORDS_OF_READY and not ready.startswith(("/", "$")):
        close = difflib.get_close_matches(ready, WORDS_OF_READY, n=1)
        hint = f"did you mean '{close[0]}'?" if close else "such as $STREAMGAUGE_SHARED/live.m3u8"
        expected = f"expected {', '.join(WORDS_OF_READY)} or an absolute path"
        raise ProcessError((*key, "ready"), f"'{ready}' is no sign of being ready; {expected}", hint)
    if ready == "end" and line is main:
        why = f"the {side}'s main process is to stay, and cannot be ready by its end"
        raise ProcessError((*key, "ready"), why, "'end' is for one that prepares something")
    if side == "player" and ready is not None and line is main:
        why = "the player's main process starts with its flow, so nobody waits until it is ready"
        raise ProcessError((*key, "ready"), why, "leave 'ready' out")
    if late is not None and _readiness(side, line, {}, is_main=line is main) is not None:
        why = f"is to be ready before the trial, but stands behind '{late.name}', which starts with the flow"
        raise ProcessError(key, why, f"put it before '{late.name}'")


def _variables(flow: FlowSetup, side: Side, name: str = "") -> dict[str, str]:
    """Returns the values of variables: the contract's, with the additions and replacements of `env`."""
    own = {name: value for name, value in flow.environment.items() if name.startswith(PREFIX)}
    return flow.variables(side, name) | own


def programs_path() -> str:
    """Returns ``PATH`` for commands: the caller's, and last the folder that has `streamgauge`."""
    own = Path(sys.executable).parent
    return os.pathsep.join([os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), str(own)])


# A shell's `$$` is its process number: neither it nor the text after it is a name of ours.
_FILLED_IN = re.compile(r"\$(?:\$|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\})")
_USED = re.compile(
    r"\$(?:\$|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?P<then>:?.))"
)
_MAY_BE_UNSET = ("-", "=", "+", "?", ":-", ":=", ":+", ":?")
"""The rest after a name in a shell's ``${NAME:-word}`` and the like."""


def split_command(text: str, variables: Mapping[str, str]) -> list[str]:
    """A command split by a shell's rules of quoting, without a shell; ``$NAME`` and ``${NAME}`` of
    `variables` filled in. Every other dollar stays: it is the program's own, such as a shell's ``$$``.

    Raises ValueError if a quote is missing.
    """

    return [filled_in(part, variables) for part in shlex.split(text)]


def filled_in(text: str, variables: Mapping[str, str]) -> str:
    """Returns ``$NAME`` and ``${NAME}`` of `variables` replaced by their values; every other dollar stays."""
    return _FILLED_IN.sub(lambda found: variables.get(found["bare"] or found["braced"], found[0]), text)


class CommandError(ValueError):
    """A command that is probably a mistake: the reason, and a correction."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"{why} ({hint})")
        self.why, self.hint = why, hint


_UNSPLIT = {
    "No closing quotation": "a quote is opened and never closed",
    "No escaped character": "it ends with a backslash",
}


def check_command(text: str, known: Sequence[str]) -> None:
    """Refuses a command that cannot be split into words, and one that uses a variable which is none of
    `known` (those of the contract and of `env`) but means to be: it begins as ours do, or is nearly one of
    them. Other variables are the program's own, and so are those that the command allows to be unset.

    Raises CommandError.
    """
    if "\0" in text:
        raise CommandError(f"{text!a} contains a zero byte", "leave it out")
    try:
        shlex.split(text)
    except ValueError as error:
        why = _UNSPLIT.get(str(error), str(error))
        hint = "quotes and backslashes are read as a shell reads them"
        raise CommandError(f"{text!r} cannot be split into words: {why}", hint) from None
    for found in _USED.finditer(text):
        name = found["bare"] or found["braced"]
        if name is None or name in known or found["then"] in _MAY_BE_UNSET:
            continue
        if re.search(rf"\b{name}=", text):  # set by the command itself
            continue
        ours = [one for one in known if one.startswith(PREFIX)]
        if name.upper().startswith(PREFIX) or difflib.get_close_matches(name, ours, n=1, cutoff=0.9):
            raise CommandError(f"there is no variable '{name}'", _instead(name, known))


def _instead(name: str, known: Sequence[str]) -> str:
    parameter = f"{PREFIX}PARAM_"
    if name == f"{PREFIX}MEDIA":
        return "the flow plays no clip; add such as 'clip: carphone-550k'"
    if name.startswith(parameter):
        known = [one for one in known if one.startswith(parameter)]
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if name.startswith(parameter):
        own = name.removeprefix(parameter).lower()
        return f"the flow has no such parameter; add 'parameters: {{{own}: ...}}'"
    return f"there are {', '.join(known)}"
