"""The search over a paper's unknowns: screening, a random half, then crossover and mutation of the best.

Nothing here reads a clock or an unseeded generator: the same seed tries the same points in the same order,
after any interruption, and a search that was cut short resumes in its place.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from streamgauge.infer.misses import ClaimedChecks
from streamgauge.infer.points import Point, Readings
from streamgauge.infer.unknowns import Unknowns
from streamgauge.metrics.grid import Floats

__all__ = ["Aim", "Search", "TriedPoint"]

MISS_WEIGHT: Final = 0.3
"""Weight of a whole miss of a claim beside the claim itself."""
_BATCH: Final = 12
"""Points that are drawn at once; they do not depend on one another."""
_PARENTS: Final = 10
_FINALISTS: Final = 3
_MOVED: Final = 0.02
"""An unknown moves a claim where a check's miss changes by more."""
_KEEP_PLAIN, _KEEP_DEAR, _DEAR = 0.5, 0.85, 0.1
"""Probability that a random point keeps the source's value: for an unknown, and for one with a price of
`_DEAR`."""
SHARED: Final = ("sources", "screening", "random")
"""Phases without a target among the claims; every aim may build on their points."""


@dataclass(frozen=True)
class TriedPoint:
    """A point that has run."""

    point: Point
    phase: str
    misses: Floats
    """Misses of the paper's checks, [check]."""
    control: Floats
    """Misses of the permuted checks, [check]."""


@dataclass(frozen=True)
class Aim:
    """Criterion of a fit."""

    name: str
    claims: tuple[str, ...]
    control: bool = False
    """Aims at the permuted checks."""

    @property
    def visible(self) -> tuple[str, ...]:
        """Returns the phases with points that it builds on: never those that other aims have bred."""
        return (*SHARED, self.name)


class Search:
    """Tries points and remembers them.

    Args:
        unknowns: of the paper.
        checks: the checks of its claims.
        control: the same, permuted.
        run: gives the readings of points, ``None`` of one that cannot be.
        again: the same over further seeds.
        seed: of the lots.
    """

    def __init__(
        self,
        unknowns: Unknowns,
        checks: ClaimedChecks,
        control: ClaimedChecks,
        run: Callable[[Sequence[Point]], Sequence[Readings | None]],
        again: Callable[[Sequence[Point]], Sequence[Readings | None]],
        seed: int,
    ) -> None:
        self.unknowns, self.checks, self.control = unknowns, checks, control
        self.tried: dict[Point, TriedPoint] = {}
        self.phases: dict[str, list[Point]] = {}
        self.moving = [True] * len(unknowns)
        self._run, self._again, self._seed = run, again, seed
        self._impossible: set[Point] = set()

    @cached_property
    def source(self) -> Point:
        """Returns the point of the reading `sources`."""
        return (0,) * len(self.unknowns)

    def cost(self, tried: TriedPoint, aim: Aim) -> float:
        """Returns how badly a point explains the aim's claims: claims that are not whole, a share of their
        misses, and the price of its departures."""
        return self.distance(tried, aim) + self.unknowns.price(tried.point)

    def distance(self, tried: TriedPoint, aim: Aim) -> float:
        """Returns the cost without the price."""
        found = self.of(tried, control=aim.control)
        return sum((found[claim] > 0) + MISS_WEIGHT * found[claim] for claim in aim.claims)

    def of(self, tried: TriedPoint, *, control: bool = False) -> dict[str, float]:
        """Returns each claim's miss at a point."""
        checks, misses = (self.control, tried.control) if control else (self.checks, tried.misses)
        return checks.by_claim(misses)

    def whole(
        self, tried: TriedPoint, claims: Iterable[str] | None = None, *, control: bool = False
    ) -> set[str]:
        """Returns the claims that are whole at a point."""
        found = self.of(tried, control=control)
        return {claim for claim in (found if claims is None else claims) if found[claim] == 0}

    def visible(self, aim: Aim) -> list[TriedPoint]:
        """Returns the points that a fit to the aim may choose from, each once."""
        points = dict.fromkeys(point for phase in aim.visible for point in self.phases.get(phase, ()))
        return [self.tried[point] for point in points]

    def best(self, aim: Aim) -> TriedPoint:
        """Returns the point that explains the aim's claims best; of equals the first that was tried."""
        return min(self.visible(aim), key=lambda one: self.cost(one, aim))

    def try_points(self, points: Sequence[Point], phase: str) -> list[TriedPoint]:
        """Runs points, those that were tried before not again; points that cannot be are left out."""
        fresh = [
            one for one in dict.fromkeys(points) if one not in self.tried and one not in self._impossible
        ]
        for first in range(0, len(fresh), 2 * _BATCH):
            part = fresh[first : first + 2 * _BATCH]
            for point, readings in zip(part, self._run(part), strict=True):
                if readings is None:
                    self._impossible.add(point)
                    continue
                misses, control = self.checks.misses(readings), self.control.misses(readings)
                self.tried[point] = TriedPoint(point, phase, misses, control)
        mine = [one for one in dict.fromkeys(points) if one in self.tried]
        self.phases.setdefault(phase, []).extend(mine)
        return [self.tried[one] for one in mine]

    def screen(self) -> list[bool]:
        """Tries each other value of each unknown alone; an unknown that moves no check is fixed at the
        source's value from here on."""
        (source,) = self.try_points([self.source], "sources")
        alone = {
            (*self.source[:place], index, *self.source[place + 1 :]): place
            for place, unknown in enumerate(self.unknowns.each)
            for index in range(1, len(unknown.values))
        }
        self.moving = [False] * len(self.unknowns)
        for one in self.try_points(list(alone), "screening"):
            apart = max(
                float(np.max(np.abs(one.misses - source.misses), initial=0.0)),
                float(np.max(np.abs(one.control - source.control), initial=0.0)),
            )
            if apart > _MOVED:
                self.moving[alone[one.point]] = True
        return self.moving

    def random(self, count: int) -> None:
        """Tries points from the prior."""
        rng = self._rng("random")
        self._fill(
            "random", count, lambda: tuple(self._draw(rng, place) for place in range(len(self.moving)))
        )

    def evolve(self, aim: Aim, count: int) -> TriedPoint:
        """Breeds points from the best, takes back each departure that the aim can do without, and returns the
        point that is best over further seeds."""
        rng = self._rng(aim.name)
        done = 0
        self.phases.setdefault(aim.name, [])
        while done < count:
            ranked = sorted(self.visible(aim), key=lambda one: self.cost(one, aim))[:_PARENTS]
            batch = min(_BATCH, count - done)
            if not self._fill(aim.name, batch, lambda ranked=ranked: self._child(rng, ranked)):  # type: ignore[misc]
                break
            done += batch
        self.simplified(aim)
        return self.final(aim)

    def final(self, aim: Aim) -> TriedPoint:
        """Returns the best of the finalists over further seeds: the best of many by one seed is in part
        luck."""
        finalists = sorted(self.visible(aim), key=lambda one: self.cost(one, aim))[:_FINALISTS]
        points = [one.point for one in finalists]
        found = [
            TriedPoint(point, aim.name, self.checks.misses(readings), self.control.misses(readings))
            for point, readings in zip(points, self._again(points), strict=True)
            if readings is not None
        ]
        best = min(found, key=lambda one: self.cost(one, aim))
        return self.tried[best.point]

    def simplified(self, aim: Aim) -> TriedPoint:
        """Returns the best point without the departures that cost more than they explain, the dearest
        first."""
        best = self.best(aim)
        while True:
            shorter = [
                (*best.point[:place], 0, *best.point[place + 1 :])
                for place, index in enumerate(best.point)
                if index
            ]
            self.try_points(shorter, aim.name)
            found = self.best(aim)
            if found.point == best.point:
                return best
            best = found

    def _rng(self, phase: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self._seed, zlib.crc32(phase.encode())]))

    def _fill(self, phase: str, count: int, draw: Callable[[], Point]) -> int:
        """Tries `count` points that are new to the search, fewer where draws bring none; returns how many."""
        known = (
            set(self.phases.get(phase, ()))
            | self._impossible
            | {point for shared in SHARED for point in self.phases.get(shared, ())}
        )
        points: list[Point] = []
        for _ in range(50 * count):
            if len(points) == count:
                break
            if (point := draw()) not in known:
                known.add(point)
                points.append(point)
        for first in range(0, len(points), _BATCH):
            self.try_points(points[first : first + _BATCH], phase)
        return len(points)

    def prior(self, place: int) -> list[float]:
        """Returns the prior of an unknown's values: that of the source first."""
        unknown = self.unknowns.each[place]
        if not self.moving[place]:
            return [1.0] + [0.0] * (len(unknown.values) - 1)
        kept = _KEEP_DEAR if unknown.price >= _DEAR else _KEEP_PLAIN
        others = len(unknown.values) - 1
        return [kept] + [(1 - kept) / others] * others

    def _draw(self, rng: np.random.Generator, place: int) -> int:
        weights = self.prior(place)
        return int(rng.choice(len(weights), p=weights))

    def _child(self, rng: np.random.Generator, ranked: Sequence[TriedPoint]) -> Point:
        """Returns a child of two of the best: each unknown from one of them, and some drawn anew."""
        first, second = (ranked[int(rng.integers(len(ranked)))].point for _ in range(2))
        child = [first[i] if rng.integers(2) else second[i] for i in range(len(first))]
        moving = [place for place, moves in enumerate(self.moving) if moves]
        for place in moving:
            if rng.random() < 1.5 / len(moving):
                child[place] = self._draw(rng, place)
        return tuple(child)
