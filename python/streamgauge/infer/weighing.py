"""Weighs the points of a search: how plausible each value is, which claims pull where, which exclude
others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from streamgauge.infer.blocks import draw_halves
from streamgauge.infer.search import Aim, Search

__all__ = [
    "Exclusion",
    "Marginal",
    "Pull",
    "SplitOutcome",
    "further_splits",
    "marginals",
    "never_together",
    "pulls",
]

_TEMPERATURE: Final = 1.0
"""A point that explains one claim fewer weighs 1/e as much."""
_LEAST_HELD: Final = 10
_LEAST_EXPECTED: Final = 3.0
"""Least expected number of joint holds of two claims that never hold together: 5 % of the time none is seen
where three are expected."""
_LEAST_POINTS, _LEAST_PULL = 8, 0.25


@dataclass(frozen=True)
class Marginal:
    """How plausible the values of one unknown are."""

    unknown: str
    prior: tuple[float, ...]
    posterior: tuple[float, ...]
    """Both by value, the source's first; each sums to 1."""
    points: tuple[int, ...]
    """Points tried with each value."""

    @property
    def shift(self) -> float:
        """Returns the total variation distance from the prior, 0 (nothing learnt) to 1."""
        pairs = zip(self.prior, self.posterior, strict=True)
        return 0.5 * sum(abs(after - before) for before, after in pairs)


@dataclass(frozen=True)
class Pull:
    """A claim that holds more often, or less, where an unknown has a value."""

    unknown: str
    value: str
    claim: str
    with_it: float
    without: float
    """Shares of points at which the claim is whole."""


@dataclass(frozen=True)
class Exclusion:
    """Two claims that each held at many points and never at the same one."""

    claims: tuple[str, str]
    held: tuple[int, int]
    expected: float
    """Points at which both would hold if they had nothing to do with one another."""


@dataclass(frozen=True)
class SplitOutcome:
    """One more split, weighed by the points that were tried."""

    seed: int
    fitted: float
    held_out: float
    sources: float
    """Shares of claims that are whole: of those fitted, of those held out, and of all under `sources`."""


def marginals(search: Search, aim: Aim) -> list[Marginal]:
    """Returns the posterior of each unknown over all points tried.

    A point weighs exp(-D), with D the claims that it misses and a share of their distances; a value's
    posterior is its prior times the mean weight of the points that have it, so that how often a search
    tried it counts nothing.
    """
    every = list(search.tried.values())
    apart = np.array([search.distance(one, aim) for one in every])
    weights = np.exp(-(apart - apart.min()) / _TEMPERATURE)
    found = []
    for place, unknown in enumerate(search.unknowns.each):
        prior = search.prior(place)
        having = np.array([one.point[place] for one in every])
        counts = tuple(int(np.sum(having == index)) for index in range(len(prior)))
        likely = [
            p * float(weights[having == index].mean()) if counts[index] else 0.0
            for index, p in enumerate(prior)
        ]
        total = sum(likely) or 1.0
        posterior = tuple(one / total for one in likely)
        found.append(Marginal(unknown.name, tuple(prior), posterior, counts))
    return found


def pulls(search: Search) -> list[Pull]:
    """Claims that an unknown's value makes hold, or not; the strongest first."""
    every = list(search.tried.values())
    held = [search.whole(one) for one in every]
    found = []
    for place, unknown in enumerate(search.unknowns.each):
        for index, value in enumerate(unknown.values):
            mine = [one.point[place] == index for one in every]
            count = sum(mine)
            if min(count, len(mine) - count) < _LEAST_POINTS:
                continue
            for claim in search.checks.claims:
                having = sum(claim in one for one, has in zip(held, mine, strict=True) if has)
                rest = sum(claim in one for one in held) - having
                inside, outside = having / count, rest / (len(mine) - count)
                if abs(inside - outside) >= _LEAST_PULL:
                    found.append(Pull(unknown.name, value.label, claim, inside, outside))
    return sorted(found, key=lambda one: -abs(one.with_it - one.without))


def never_together(search: Search) -> list[Exclusion]:
    """Returns pairs of claims that each held at ten points or more, while no point holds both and chance
    alone would give some."""
    held = [search.whole(one) for one in search.tried.values()]
    counts = {claim: sum(claim in one for one in held) for claim in search.checks.claims}
    found = []
    for a, b in combinations(search.checks.claims, 2):
        expected = counts[a] * counts[b] / len(held) if held else 0.0
        if min(counts[a], counts[b]) < _LEAST_HELD or expected < _LEAST_EXPECTED:
            continue
        if not any(a in one and b in one for one in held):
            found.append(Exclusion((a, b), (counts[a], counts[b]), expected))
    return sorted(found, key=lambda one: -one.expected)


def held_counts(search: Search) -> Mapping[str, int]:
    """At how many points each claim is whole."""
    held = [search.whole(one) for one in search.tried.values()]
    return {claim: sum(claim in one for one in held) for claim in search.checks.claims}


def further_splits(
    search: Search, blocks: Sequence[Sequence[str]], seeds: Sequence[int]
) -> list[SplitOutcome]:
    """Returns further splits, without running anything: the best point by one half, judged by the other, both
    ways. The points were bred on all claims, which flatters the held-out half."""
    every = list(search.tried.values())
    source = search.tried[search.source]
    found = []
    for seed in seeds:
        halves = draw_halves(blocks, seed)
        fitted, held_out = 0, 0
        for name, other in (("A", "B"), ("B", "A")):
            aim = Aim(name, halves[name])
            best = min(every, key=lambda one: search.cost(one, aim))
            fitted += len(search.whole(best, halves[name]))
            held_out += len(search.whole(best, halves[other]))
        total = sum(map(len, halves.values()))
        now = len(search.whole(source, [claim for half in halves.values() for claim in half]))
        found.append(SplitOutcome(seed, fitted / total, held_out / total, now / total))
    return found
