"""The points of a sweep: every combination of its axes' values, each refused or left out, if it must be,
before anything runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from streamgauge.campaign.machine import choose_mode
from streamgauge.errors import ScenarioError, StreamGaugeError
from streamgauge.scenario import Scenario, find, lower, override
from streamgauge.scenario.loading import ScenarioErrors
from streamgauge.scenario.over import Axis
from streamgauge.scenario.overrides import OverrideError, parse_assignment
from streamgauge.scenario.problems import problems_of
from streamgauge.systems.registry import Mode

__all__ = ["MOST", "ImpossiblePoint", "SweepPoint", "SweepPoints", "Target", "points_of"]

Target = str | Path | Scenario
"""An id, a glob of ids, a file, or a scenario that was built in Python."""
MOST = 100_000
"""Points: more are a slip in a range."""


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One scenario with one combination of values; compared by identity."""

    scenario: Scenario
    mode: Mode
    at: tuple[int, ...]
    """The place of its value on each axis."""
    settings: tuple[str, ...]
    """All that is set in it, ``ADDRESS=VALUE``, that of the axes last."""


@dataclass(frozen=True)
class ImpossiblePoint:
    """A combination of values that no trial can have, each valid beside others."""

    at: tuple[int, ...]
    """The place of its value on each axis."""
    why: str


class SweepPoints(tuple[SweepPoint, ...]):
    """The points of a sweep, and the combinations left out of it."""

    left_out: tuple[ImpossiblePoint, ...]

    def __new__(cls, points: Iterable[SweepPoint], left_out: Iterable[ImpossiblePoint] = ()) -> Self:
        made = super().__new__(cls, points)
        made.left_out = tuple(left_out)
        return made


def points_of(
    targets: Sequence[Target],
    axes: Sequence[Axis],
    *,
    settings: Sequence[str] = (),
    mode: Mode | None = None,
    way: str | None = None,
    seed: int = 1,
    told: Callable[[int, int], None] | None = None,
) -> SweepPoints:
    """Returns every point, each scenario's in the order of its axes, the last varying fastest. A combination
    that makes no sense is left out where each of its values does beside others.

    Args:
        targets: the swept scenarios.
        axes: the addresses, each with its values.
        settings: common settings of all of them, ``ADDRESS=VALUE``.
        mode: in which all of them run; the first that the scenarios support and the machine can do if
            ``None``.
        way: emu's.
        seed: the first repetition's, planned as a test of its trial.
        told: receives the number of checked points, and of all.

    Raises ScenarioError that names ``--over`` with the values that make no sense, CannotRunError if the
    machine cannot run one.
    """
    count = 1
    for axis in axes:
        count *= len(axis)
    if count > MOST:
        raise ScenarioError(
            f"{count:,} points are more than {MOST:,}", file="--over", hint="give fewer values"
        )
    # The swept value may be the missing one, but then at no point.
    wrong = _why_not(targets, settings, mutants=True)
    by_scenario: dict[str, list[SweepPoint]] = {}
    refused: list[tuple[tuple[int, ...], ScenarioError]] = []
    for done, at in enumerate(itertools.product(*(range(len(axis)) for axis in axes))):
        if told is not None:
            told(done, count)
        chosen = [axis.settings[place] for axis, place in zip(axes, at, strict=True)]
        try:
            scenarios = _found(targets, [*settings, *chosen])
            # All in one mode: in one table they are compared.
            mode = mode or _mode_of(scenarios, way)
            for scenario in scenarios:
                if by_scenario and (why := scenario.unsupported(mode)) is not None:
                    said = f"{scenario.id} cannot run in {mode}, in which the other points run: {why}"
                    raise ScenarioError(said, hint="--mode chooses one that all have")
                lower(scenario, choose_mode(scenario, mode, way=way).mode, seed)
        except ScenarioError as error:
            if wrong is not None and str(wrong) == str(error):
                raise wrong from None
            refused.append((at, error))
            continue
        for scenario in scenarios:
            point = SweepPoint(scenario, mode, at, (*settings, *chosen))
            by_scenario.setdefault(scenario.id, []).append(point)
    points = [point for mine in by_scenario.values() for point in mine]
    possible = [{point.at[place] for point in points} for place in range(len(axes))]
    for at, reason in refused:
        apart = all(place in mine for place, mine in zip(at, possible, strict=True))
        if not points or not (reason.depends or apart):
            chosen = [axis.settings[place] for axis, place in zip(axes, at, strict=True)]
            raise _explained(reason, targets, settings, chosen)
    return SweepPoints(points, (ImpossiblePoint(at, reason.message) for at, reason in refused))


def _mode_of(scenarios: Sequence[Scenario], way: str | None) -> Mode:
    """Returns the first mode of the first scenario in which all can run here. Raises ScenarioError or
    CannotRunError for the first that can run in none of them."""
    refused: StreamGaugeError | None = None
    for mode in scenarios[0].modes:
        try:
            for scenario in scenarios:
                choose_mode(scenario, mode, way=way)
        except StreamGaugeError as error:
            refused = refused or error
        else:
            return mode
    assert refused is not None, "a scenario has a mode"
    raise refused


def _found(targets: Sequence[Target], settings: Sequence[str], *, mutants: bool = False) -> list[Scenario]:
    """Returns the scenarios with their settings. Raises ScenarioError."""
    found: dict[str, Scenario] = {}
    for target in targets:
        several = (
            [_overridden(target, settings)]
            if isinstance(target, Scenario)
            else find([target], settings=settings, mutants=mutants)
        )
        for scenario in several:
            if found.setdefault(scenario.id, scenario) != scenario:
                raise ScenarioError(f"two scenarios are called '{scenario.id}'; ids are unique in a sweep")
    return list(found.values())


def _overridden(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    for setting in settings:
        try:
            address, value = parse_assignment(setting)
            scenario = override(scenario, {address: value})
        except OverrideError as error:
            raise ScenarioError(error.why, file=f"--set {setting}", hint=error.hint) from None
        except ValidationError as error:
            problem = problems_of(error)[0]
            key = ".".join(str(part) for part in problem.path)
            raise ScenarioError(
                problem.why,
                file=f"--set {setting}",
                key=key,
                hint=problem.hint,
                depends=problem.depends,
            ) from None
    return scenario


def _explained(
    error: ScenarioError, targets: Sequence[Target], settings: Sequence[str], chosen: Sequence[str]
) -> ScenarioError:
    """Returns the error as one of ``--over``: of the one value that makes no sense by itself, else of the
    point."""
    first = error.errors[0] if isinstance(error, ScenarioErrors) else error
    of_axis = [setting for setting in chosen if first.file == f"--set {setting}"]
    alone = [one for one in chosen if len(chosen) > 1 and _why_not(targets, [*settings, one])]
    whole = [*of_axis, *(one for one in chosen if one not in of_axis)]
    where = " ".join(f"--over {setting}" for setting in (alone if len(alone) == 1 else whole))
    if first.file is None or of_axis:
        return ScenarioError(first.message, file=where, key=first.key, hint=first.hint)
    return ScenarioError(
        first.message, file=f"{where}: {first.file}", line=first.line, key=first.key, hint=first.hint
    )


def _why_not(
    targets: Sequence[Target], settings: Sequence[str], *, mutants: bool = False
) -> ScenarioError | None:
    """Returns the fault of the scenarios with these settings."""
    try:
        _found(targets, settings, mutants=mutants)
    except ScenarioError as error:
        return error
    return None
