"""Any server and player, given as command lines. The contract is in docs/adapters.md."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from streamgauge.systems.adapter import PREFIX, Clock, Collected, FlowSetup, ProcessSpec, Side
from streamgauge.systems.events import last, read_events

LARGEST_COUNT = 2**63
"""No counter of bytes or packets comes to that."""
UNSUPPORTED = 127
"""Exit status by which a command says that it cannot do what was asked."""


class Command:
    """The adapter of a system written as ``{server: CMD, player: CMD}``."""

    programs: Mapping[str, str] = {}

    def processes(self, flow: FlowSetup) -> list[ProcessSpec]:
        specs = []
        if "server" in flow.commands:
            specs.append(self._process(flow, "server"))
        if "player" in flow.commands:
            specs.append(self._process(flow, "player"))
        return specs

    @staticmethod
    def _process(flow: FlowSetup, side: Side) -> ProcessSpec:
        return ProcessSpec(
            side=side,
            command=split_command(flow.commands[side], _variables(flow, side)),
            namespace=flow.sending_namespace if side == "server" else "client",
            early=side == "server",
            ready="file or port",
            environment=flow.environment,
            working_folder=flow.working_folder,
            may_end=side == "player",
            acted_on=side == "player",
        )

    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        found = Collected()
        sides: tuple[Side, Side] = ("server", "player")
        for side in sides:
            found.events += read_events(flow, side, clock, found.faults)
        packets = self._total(found, "total_packets_received")
        octets = self._total(found, "total_bytes_received")
        if octets is not None:
            found.received_bytes, found.received_what = octets, "bytes that the player reports"
        if packets is not None:
            found.received_packets, found.received_what = packets, "packets that the player reports"
        return found

    @staticmethod
    def _total(found: Collected, name: str) -> int | None:
        """The last of a counter; one that no counter can show is a fault."""
        total = last(found.events, name)
        if total is not None and not 0 <= total < LARGEST_COUNT:
            found.faults.append(f"its {name} is {total:g}, which is no count")
            return None
        return None if total is None else int(total)


def _variables(flow: FlowSetup, side: Side) -> dict[str, str]:
    """What is filled in: the contract's variables, and what `env` adds to them or says in their place."""
    own = {name: value for name, value in flow.environment.items() if name.startswith(PREFIX)}
    return flow.variables(side) | own


def programs_path() -> str:
    """``PATH`` for commands: the caller's, and last the folder that has `streamgauge`."""
    own = Path(sys.executable).parent
    return os.pathsep.join([os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), str(own)])


# A shell's `$$` is its process number: neither it nor what follows is a name of ours.
_FILLED_IN = re.compile(r"\$(?:\$|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\})")
_USED = re.compile(
    r"\$(?:\$|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?P<then>:?.))"
)
_MAY_BE_UNSET = ("-", "=", "+", "?", ":-", ":=", ":+", ":?")
"""What follows a name in a shell's ``${NAME:-word}`` and the like."""


def split_command(text: str, variables: Mapping[str, str]) -> list[str]:
    """A command split by a shell's rules of quoting, without a shell; ``$NAME`` and ``${NAME}`` of
    `variables` filled in. Every other dollar stays: it is the program's own, such as a shell's ``$$``.

    Raises ValueError if a quote is missing.
    """

    def filled_in(found: re.Match[str]) -> str:
        return variables.get(found["bare"] or found["braced"], found[0])

    return [_FILLED_IN.sub(filled_in, part) for part in shlex.split(text)]


class CommandError(ValueError):
    """A command that cannot be what was meant: why, and what to write."""

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
    them. Other variables are the program's own, and so are those that the command says may be unset.

    Raises CommandError.
    """
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
