"""The keys of a scenario; `semantics` checks it as a whole."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streamgauge.scenario.expect import (
    AssumedValue,
    Check,
    Figure,
    Limits,
    Measure,
    Population,
    Repetitions,
    Source,
    Until,
)
from streamgauge.scenario.flow import Flow
from streamgauge.scenario.path import Path
from streamgauge.scenario.relay import Relay
from streamgauge.scenario.values import Model, Uniform
from streamgauge.units import Time

__all__ = ["BasedOn", "Shape"]


class BasedOn(Model):
    """Parent of a scenario by ``extends``."""

    scenario: str
    """The other's id."""
    changes: tuple[str, ...] = ()
    """Addresses at which the experiment is another one."""


class Shape(Model):
    """A scenario's keys with their types and defaults; `Scenario` is one that makes sense as a whole."""

    id: str
    """Unique: lower-case words joined by ``-``, ``.`` or ``/``."""
    title: str
    """Title, in one line."""
    question: str | None = None
    """The question of a reader, in plain words; the report answers it first."""
    source: Source | None = None
    """Paper or standard of its origin."""
    path: Path
    """Path of the packets."""
    flows: dict[str, Flow] = Field(min_length=1)
    """The flows by name."""
    relays: dict[str, Relay] = Field(default_factory=dict)
    """Machines that flows go through at one side of the path, by name."""
    until: Until
    """When a trial ends."""
    measure: Measure = Field(default_factory=Measure)
    """Settings of metrics."""
    repetitions: Repetitions = Field(default_factory=Repetitions)
    """How many trials in each mode."""
    limits: Limits = Field(default_factory=Limits)
    """Upper bounds of the cost of a trial in sim."""
    modes: tuple[Literal["sim", "emu"], ...] = ("sim", "emu")
    """Modes it is meant for, the first by default; it runs in those that all its flows can."""
    randomize: dict[str, Uniform] = Field(default_factory=dict)
    """Drawn anew for each seed: ``flow.start`` is delayed by it, any other address is set to it."""
    host_jitter: Time = Field(default=Time("100 us"))
    """Longest lateness of a simulated host, keeping the order."""
    start_phase: Time = Field(default=Time("20 ms"))
    """Most by which a seed delays each flow's start that ``randomize`` does not name."""
    population: Population | None = None
    """Many trials drawn from a population of clips and paths."""
    assumed: dict[str, AssumedValue] = Field(default_factory=dict)
    """Values that the source does not state, by address, with alternatives."""
    checks: dict[str, Check] = Field(default_factory=dict)
    """Expectations, by id."""
    figures: tuple[Figure, ...] = ()
    """Figures of the report besides its usual ones."""
    based_on: BasedOn | None = None
    """The scenario that was extended; it changes nothing any more."""
