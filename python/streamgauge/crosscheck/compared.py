"""Matter of a crosscheck: cases, quantities and their margins, deliberate faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from streamgauge.campaign.plan import Extra
from streamgauge.scenario import Scenario

__all__ = ["ComparedCase", "ComparedQuantity", "CrosscheckMatter", "Found", "Mutant", "Variant"]

Found = dict[str, float | None]
"""A trial's quantities by name; None where there was nothing to measure."""

Variant = Mapping[str, Any]
"""Changes of a case in sim; `CrosscheckMatter.vary` defines the valid keys."""


@dataclass(frozen=True)
class ComparedQuantity:
    """A row of the comparison, and how near is near enough: the floor of its margin."""

    name: str
    unit: str
    words: str
    relative: float
    """Share of emu's mean."""
    absolute: float = 0.0
    """In the quantity's unit; the larger of the two holds."""
    factor: float = 1.0
    """Shown in `unit` after multiplying by it."""
    fixed: bool = False
    """The floor is the margin, whatever emu's spread."""
    if_any: bool = False
    """It describes losses, with their number in another row, or samples: where most runs of sim or of emu
    have none, there is no row."""


class ComparedCase(Protocol):
    """One comparison: a scenario that runs in both modes, and how often."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def scenario(self) -> Scenario: ...

    @property
    def emu(self) -> int:
        """Valid real trials asked for."""
        ...

    @property
    def sim(self) -> int:
        """Simulated trials."""
        ...

    @property
    def is_mix(self) -> bool:
        """Its outcome varies from run to run: distributions are compared."""
        ...


@dataclass(frozen=True)
class Mutant:
    """The fault, and the cases in which it is tried."""

    name: str
    words: str
    cases: str
    """A glob of ids."""
    variant: Variant


@dataclass(frozen=True, kw_only=True)
class CrosscheckMatter:
    """The own parts of one crosscheck; their use is the same for all. Callables that take a case take one of
    `cases`."""

    name: str
    """As the command has it."""
    schema: str
    """Schema of the document."""
    cases: Callable[[bool], Sequence[Any]]
    """Every case; quick ones if True."""
    such_as: str
    """Globs of cases, as a hint."""
    quantity: Callable[[str], ComparedQuantity]
    """Returns the metric of a row."""
    keeper: Callable[[Any], Extra]
    """Takes a case's quantities from a record."""
    vary: Callable[[Any, Variant], Any]
    """The case with something changed in sim. Raises ScenarioError if sim has no such thing."""
    mutants: Sequence[Mutant]
    switches: Mapping[str, Variant]
    """One mechanism each, that may explain a difference."""
    lacking: Callable[[Any, str | None], str | None] = field(default=lambda case, way: None)
    """Why this machine cannot run a case's real trials in that way; None if it can."""
    prepared: Callable[[Any], Any] = field(default=lambda case: case)
    """The case as it runs against emu: with the media that its real trials play, made on first use."""
    about: Callable[[Any, Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], dict[str, Any]] = field(
        default=lambda case, sim, emu: {}
    )
    """Returns further keys of a case for the document, from its trials in sim and in emu."""
    closing: Callable[[Mapping[str, Any]], Sequence[str]] = field(default=lambda document: ())
    """Sentences that sum up a document, printed at the end."""
    third: Callable[[Sequence[Any], Path], Mapping[str, Sequence[Found]]] | None = None
    """Runs of a third-party simulator, by the case's id."""
    require_third: Callable[[], object] | None = None
    """Raises CannotRunError where that cannot run."""
