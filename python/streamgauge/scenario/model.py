"""The scenario: one experiment as data."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from streamgauge.scenario.expect import (
    AssumedValue,
    Check,
    Figure,
    Measure,
    Population,
    Repetitions,
    Source,
    Until,
)
from streamgauge.scenario.flow import Flow
from streamgauge.scenario.path import Path
from streamgauge.scenario.values import Model, Uniform, issue
from streamgauge.systems.registry import Mode
from streamgauge.units import Time

__all__ = ["MODES", "Scenario"]

MODES: tuple[Mode, ...] = ("sim", "emu")
_ID = re.compile(r"[a-z0-9_]+(?:[-./][a-z0-9_]+)*")
# What a trial leaves does not depend on these: an edit of a check's wording must not void a night's work.
_NOT_RUN = ("title", "question", "source", "assumed", "checks", "figures", "repetitions", "measure", "modes")


class Scenario(Model):
    """One experiment: a path, the flows on it, for how long, and what is expected.

    Built in Python by keywords or loaded from YAML by `streamgauge.scenario.load`; the two compare equal.
    Every problem is found here, before anything starts: pydantic's ValidationError from Python,
    `ScenarioError` with file and line from a file.
    """

    id: str
    """Unique: lower-case words joined by ``-``, ``.`` or ``/``."""
    title: str
    """What is done, in one line."""
    question: str | None = None
    """What a reader wants to know, in plain words; the report answers it first."""
    source: Source | None = None
    """The paper or standard that it comes from."""
    path: Path
    """What packets cross."""
    flows: dict[str, Flow] = Field(min_length=1)
    """The flows by name."""
    until: Until
    """When a trial ends."""
    measure: Measure = Field(default_factory=Measure)
    """What metrics look at."""
    repetitions: Repetitions = Field(default_factory=Repetitions)
    """How many trials in each mode."""
    modes: tuple[Literal["sim", "emu"], ...] = ("sim", "emu")
    """Modes it is meant for, the first by default; it runs in those that all its flows can."""
    randomize: dict[str, Uniform] = Field(default_factory=dict)
    """Drawn anew for each seed: ``flow.start`` is delayed by it, any other address is set to it."""
    host_jitter: Time = Field(default=Time("100 us"))
    """Most that a simulated host is late with what it does, keeping the order."""
    start_phase: Time = Field(default=Time("20 ms"))
    """Most by which a seed delays each flow's start that ``randomize`` does not name."""
    population: Population | None = None
    """Many trials drawn from a population of clips and paths."""
    assumed: dict[str, AssumedValue] = Field(default_factory=dict)
    """What the source does not say, by address, with what else it might be."""
    checks: dict[str, Check] = Field(default_factory=dict)
    """What is expected to hold, by id."""
    figures: tuple[Figure, ...] = ()
    """What the report draws besides its usual figures."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not _ID.fullmatch(self.id):
            raise issue(f"{self.id!r} is not an id; expected lower-case words joined by -, . or /", "id")
        from streamgauge.scenario.semantics import problems

        found = problems(self)
        if found:
            raise PydanticCustomError(
                "issues", "{why}", {"why": "; ".join(p.why for p in found), "issues": found}
            )
        return self

    def in_mode(self, mode: Mode) -> Scenario:
        """As it runs in ``mode``: stand-ins in their places."""
        flows = {name: flow.in_mode(mode) for name, flow in self.flows.items()}
        # Not validated again: a mutant may address what the stand-in does not know.
        return self.model_copy(update={"flows": flows})

    def normalised(self) -> dict[str, Any]:
        """All of it as JSON data in one form, every default filled in. Loads again to an equal scenario."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def essence(self, mode: Mode) -> str:
        """Canonical JSON of what decides a trial's packets and events in ``mode``: the resume key's base."""
        data = self.in_mode(mode).normalised()
        sampled = data["measure"]["tcp_sample"]
        for key in _NOT_RUN:
            data.pop(key, None)
        data["tcp_sample"] = sampled
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def unsupported(self, mode: Mode) -> str | None:
        """Why it cannot run in ``mode`` on any machine; ``None`` if it can."""
        from streamgauge.scenario.semantics import unsupported

        return unsupported(self, mode)

    def supported_modes(self) -> list[Mode]:
        """The modes that it can run in, in its order of preference."""
        return [mode for mode in self.modes if self.unsupported(mode) is None]
