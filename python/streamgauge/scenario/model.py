"""The scenario: one experiment as data."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any, Self

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from streamgauge.scenario.expect import RENAMED, Limits
from streamgauge.scenario.semantics import problems, unsupported
from streamgauge.scenario.shape import Shape
from streamgauge.scenario.values import issue
from streamgauge.scenario.words import in_words
from streamgauge.systems.registry import Mode

__all__ = ["MODES", "Scenario"]

MODES: tuple[Mode, ...] = ("sim", "emu")
_ID = re.compile(r"[a-z0-9_]+(?:[-./][a-z0-9_]+)*")
_LONGEST_ID = 200
"""Its folder's name has a slash as %2F, and more beside it; file systems take 255 bytes."""
# The result of a trial does not depend on these: an edit of a check's wording must not void a night's work.
_NOT_RUN = (
    "title", "question", "source", "assumed", "checks", "figures", "repetitions", "measure", "modes",
    "based_on", "limits",
)  # fmt: skip


class Scenario(Shape):
    """One experiment: a path, its flows, a duration, and expectations.

    Built in Python by keywords or loaded from YAML by `streamgauge.scenario.load`; the two compare equal.
    Every problem is found here, before anything starts: pydantic's ValidationError from Python,
    `ScenarioError` with file and line from a file.
    """

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not _ID.fullmatch(self.id):
            raise issue(f"{self.id!r} is not an id; expected lower-case words joined by -, . or /", "id")
        if len(self.id) + 2 * self.id.count("/") > _LONGEST_ID:
            why = f"an id of {len(self.id)} characters; records need one of {_LONGEST_ID} at most"
            raise issue(f"{why}, where / counts as 3", "id")
        found = problems(self)
        if found:
            raise PydanticCustomError(
                "issues", "{why}", {"why": "; ".join(p.why for p in found), "issues": found}
            )
        return self

    def in_mode(self, mode: Mode) -> Scenario:
        """As it runs in ``mode``: stand-ins in their places."""
        flows = {name: flow.in_mode(mode) for name, flow in self.flows.items()}
        # Not validated again: a mutant may address keys that the stand-in does not have.
        return self.model_copy(update={"flows": flows})

    def normalised(self) -> dict[str, Any]:
        """Returns all of it as JSON data in one form, every default filled in. Loads again to an equal
        scenario."""
        data = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.relays:
            # Without relays, the key is as before relays existed: trials from then are not run again.
            del data["relays"]
        if self.limits == Limits():
            # As before there were any: digests of records hold it.
            del data["limits"]
        return data

    def essence(self, mode: Mode) -> str:
        """Returns the canonical JSON of all that decides a trial's packets and events in ``mode``: the base
        of the resume key."""
        data = self.in_mode(mode).normalised()
        sampled = data["measure"]["tcp_sample"]
        for key in _NOT_RUN:
            data.pop(key, None)
        data["tcp_sample"] = sampled
        if "population" in data:
            # Uses the former names of its keys: they draw the same values, and the trials are the same.
            was = {now: was for was, now in RENAMED.items()}
            data["population"] = {was.get(key, key): value for key, value in data["population"].items()}
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def unsupported(self, mode: Mode) -> str | None:
        """Returns why it cannot run in ``mode`` on any machine; ``None`` if it can."""
        return unsupported(self, mode)

    def supported_modes(self) -> list[Mode]:
        """Returns the modes that it can run in, in its order of preference."""
        return [mode for mode in self.modes if self.unsupported(mode) is None]

    def __repr__(self) -> str:
        return f"<Scenario {self.id}: {self.title}>"

    def __str__(self) -> str:
        """In words, as ``streamgauge show`` has it."""
        return "\n".join(in_words(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As IPython shows it where there is no HTML."""
        printer.text(repr(self) if cycle else str(self))

    def _repr_html_(self) -> str:
        """As a notebook shows it; colours are those of the page around it."""
        head, *rest = in_words(self)
        told = ""
        for line in rest:
            # A line's indent decides its parent.
            words = line.lstrip()
            told += f'<div style="padding-left:{(len(line) - len(words)) / 2}em">{escape(words)}</div>'
        return (
            f'<div class="streamgauge" style="line-height:1.45;max-width:60em">'
            f"<strong>{escape(head)}</strong>{told}</div>"
        )
