"""Inference of a paper's unknowns, from start to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.campaign import Progress, with_dependencies
from streamgauge.checks import CheckResult, evaluate_all
from streamgauge.infer.blocks import Split, blocks_of, load_split, split_file
from streamgauge.infer.control import permuted
from streamgauge.infer.misses import ClaimedChecks, claimed_checks
from streamgauge.infer.points import Point, PointRunner, Readings
from streamgauge.infer.search import Aim, Search
from streamgauge.infer.unknowns import Unknowns, unknowns_of
from streamgauge.infer.weighing import (
    Exclusion,
    Marginal,
    Pull,
    SplitOutcome,
    further_splits,
    held_counts,
    marginals,
    never_together,
    pulls,
)
from streamgauge.paper import Paper, outcomes_of, stating
from streamgauge.scenario import Scenario, find
from streamgauge.scenario.paper_readings import SOURCES, readings_of

if TYPE_CHECKING:
    from streamgauge.campaign.cluster import Cluster

__all__ = ["Ablation", "Confirmed", "Inferred", "Question", "SearchSize", "infer", "question_of"]

HOLDS = ("pass", "differs in size")
"""Verdicts of a claim with checks that all hold; in the second a printed number is further away than its
tolerance."""
FINAL_FROM, CONFIRM_FROM = 101, 1001
"""The first of the seeds by which the best few are compared, and of those by which the winner is confirmed; a
search has seeds from 1."""
_FURTHER = tuple(range(1, 11))


@dataclass(frozen=True, kw_only=True)
class SearchSize:
    """How much a search may try."""

    points: int = 120
    """Points of each of the four searches: a half at random, which all share, and a half bred."""
    seeds: int = 1
    """Trials of a scenario at a point."""
    finals: int = 2
    """Further seeds by which the best few points are compared."""
    confirm: int = 10
    """Fresh seeds that confirm the sources and the result; fits to a half and to permuted claims have half as
    many."""
    members: int | None = 16
    """Most members of a population."""
    lot: int = 1
    """The seed of the search's own lots."""


@dataclass(frozen=True)
class Question:
    """Subject of the inference: a paper's scenarios, claims and unknowns."""

    name: str
    scenarios: tuple[Scenario, ...]
    """As `sources` has them: those that state claims, and those that their checks read."""
    judged: frozenset[str]
    """The ids of the former."""
    checks: ClaimedChecks
    unknowns: Unknowns
    split: Split
    verdicts: Callable[[Sequence[CheckResult]], dict[str, str]]
    """Verdict of each claim by its checks (`NumberedClaim.verdict`)."""


@dataclass(frozen=True)
class Confirmed:
    """A point over fresh seeds."""

    name: str
    """``sources``, ``described``, ``A`` and ``B`` (fitted to that half), ``control``."""
    point: Point
    verdicts: dict[str, str]
    """By claim, from 95 % intervals."""
    by_means: frozenset[str]
    """Claims that are whole by the means."""
    control: frozenset[str]
    """Permuted claims that are whole by the means."""

    @property
    def whole(self) -> list[str]:
        """Returns claims with checks that are all confirmed."""
        return [claim for claim, verdict in self.verdicts.items() if verdict in HOLDS]

    def count(self, verdict: str) -> int:
        """Claims of a verdict."""
        return sum(one == verdict for one in self.verdicts.values())


@dataclass(frozen=True)
class Ablation:
    """One departure of the described reading taken back alone."""

    unknown: str
    value: str
    source: str
    lost: tuple[str, ...]
    """Claims that hold with it alone."""
    gained: tuple[str, ...]
    """Claims that hold without it alone."""
    nearer: tuple[str, ...]
    """Claims that miss by less with it, or not at all."""


@dataclass(frozen=True)
class Inferred:
    """Findings of a search."""

    question: Question
    asked: SearchSize
    search: Search
    confirmed: dict[str, Confirmed]
    ablations: list[Ablation]
    marginals: list[Marginal]
    pulls: list[Pull]
    never: list[Exclusion]
    further: list[SplitOutcome]
    held: dict[str, int]
    """At how many points each claim was whole."""
    together: tuple[str, ...]
    """The largest set of claims that were whole at one point."""
    trials: int
    """Run now; those that were there already are not among them."""
    wall_s: float = field(default=0.0, compare=False)

    @property
    def held_out(self) -> dict[str, str]:
        """Returns each claim's verdict under the fit that did not see it."""
        halves = self.question.split.halves
        return {
            claim: self.confirmed[fitted].verdicts[claim]
            for fitted, judged in (("A", "B"), ("B", "A"))
            for claim in halves[judged]
        }

    def counts(self) -> dict[str, int]:
        """Whole claims by reading; of the control whole permuted claims, before and after its search."""
        sources, described = self.confirmed["sources"], self.confirmed["described"]
        return {
            "claims": len(self.question.checks.claims),
            "sources": len(sources.whole),
            "described": len(described.whole),
            "undecided": described.count("inconclusive"),
            "described_in_size": described.count("pass"),
            "held_out": sum(verdict in HOLDS for verdict in self.held_out.values()),
            "sources_by_means": len(sources.by_means),
            "described_by_means": len(described.by_means),
            "held_out_by_means": len(self.held_out_by_means),
            "control_sources": len(sources.control),
            "control_fitted": len(self.confirmed["control"].control),
        }

    @property
    def held_out_by_means(self) -> list[str]:
        """Claims that are whole by the means under the fit that did not see them."""
        halves = self.question.split.halves
        return [
            claim
            for fitted, judged in (("A", "B"), ("B", "A"))
            for claim in halves[judged]
            if claim in self.confirmed[fitted].by_means
        ]

    def to_json(self) -> dict[str, Any]:
        """Returns ``streamgauge.infer/1``."""
        unknowns = self.question.unknowns
        return {
            "schema": "streamgauge.infer/1",
            "paper": self.question.name,
            "counts": self.counts(),
            "points": len(self.search.tried),
            "trials": self.trials,
            "wall_s": self.wall_s,
            "asked": vars(self.asked),
            "split": vars(self.question.split) | {"halves": dict(self.question.split.halves)},
            "held_out": self.held_out,
            "readings": {
                name: {
                    "values": {one.name: value.label for one, value in unknowns.departures(found.point)},
                    "verdicts": found.verdicts,
                    "whole_by_means": sorted(found.by_means),
                }
                for name, found in self.confirmed.items()
            },
            "unknowns": [
                one.to_json()
                | {
                    "moves": moves,
                    "prior": list(marginal.prior),
                    "posterior": list(marginal.posterior),
                    "points": list(marginal.points),
                }
                for one, moves, marginal in zip(
                    unknowns.each, self.search.moving, self.marginals, strict=True
                )
            ],
            "departures": [vars(one) for one in self.ablations],
            "pulls": [vars(one) for one in self.pulls],
            "never_together": [vars(one) for one in self.never],
            "held": self.held,
            "together": list(self.together),
            "further_splits": [vars(one) for one in self.further],
        }


def question_of(paper: Paper) -> Question:
    """Returns the subject of the inference for a shipped paper. Raises ScenarioError for bad unknowns, a bad
    split or none."""
    stated = [one for one in stating([paper], find([f"{paper.id}/*"], mutants=False)) if paper.did(one.id)]
    judged = frozenset(one.id for one in stated)
    scenarios = tuple(readings_of(paper.id).applied(SOURCES, with_dependencies(stated)))
    split = load_split(split_file(paper.id), blocks_of(paper, stated))

    def verdicts(checks: Sequence[CheckResult]) -> dict[str, str]:
        (outcome,) = outcomes_of([paper], checks, None, {})
        return {claim.id: claim.verdict for claim in outcome.claims if claim.checks}

    return Question(
        name=paper.id,
        scenarios=scenarios,
        judged=judged,
        checks=claimed_checks(paper, (one for one in scenarios if one.id in judged)),
        unknowns=unknowns_of(paper.id, scenarios),
        split=split,
        verdicts=verdicts,
    )


def infer(
    question: Question,
    asked: SearchSize,
    out: Path,
    *,
    cluster: Cluster | None = None,
    told: Callable[[str, int, int], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Inferred:
    """Screens, searches, holds out, confirms and weighs.

    Trials of an earlier search in the same folder are taken from there. `told` is called with the phase, the
    finished points and the planned points; `progress` for the trials under way.

    Raises KeyboardInterrupt, with finished results kept, and StreamGaugeError.
    """
    runner = PointRunner(
        question.scenarios,
        question.judged,
        question.unknowns,
        out,
        most_trials=asked.members,
        cluster=cluster,
    )
    phase = "screening"

    def run(points: Sequence[Point]) -> list[Readings | None]:
        tell(phase)
        return runner.run(points, range(1, asked.seeds + 1), progress)

    search = Search(
        question.unknowns,
        question.checks,
        permuted(question.checks, question.split.seed),
        run,
        lambda points: runner.run(points, range(FINAL_FROM, FINAL_FROM + asked.finals), progress),
        asked.lot,
    )
    values = sum(len(one.values) - 1 for one in question.unknowns.each)
    half = max(1, asked.points // 2)
    planned = 1 + values + half + 4 * half

    def tell(phase: str) -> None:
        if told is not None:
            told(phase, len(search.tried), planned)

    search.screen()
    phase = "random"
    search.random(half)
    claims = tuple(question.checks.claims)
    aims = [
        Aim("described", claims),
        Aim("A", question.split.halves["A"]),
        Aim("B", question.split.halves["B"]),
        Aim("control", claims, control=True),
    ]
    best: dict[str, Point] = {"sources": search.source}
    for aim in aims:
        phase = aim.name
        best[aim.name] = search.evolve(aim, half).point
    tell("confirming")
    return Inferred(
        question=question,
        asked=asked,
        search=search,
        confirmed=_confirmed(question, search, runner, best, asked, progress),
        ablations=_ablations(search, aims[0], best["described"]),
        marginals=marginals(search, aims[0]),
        pulls=pulls(search),
        never=never_together(search),
        further=further_splits(search, question.split.blocks, _FURTHER),
        held=dict(held_counts(search)),
        together=_together(search),
        trials=runner.ran,
    )


def _confirmed(
    question: Question,
    search: Search,
    runner: PointRunner,
    best: dict[str, Point],
    asked: SearchSize,
    progress: Callable[[Progress], None] | None,
) -> dict[str, Confirmed]:
    found = {}
    for name, point in best.items():
        count = asked.confirm if name in ("sources", "described") else (asked.confirm + 1) // 2
        seeds = range(CONFIRM_FROM, CONFIRM_FROM + count)
        (readings,) = runner.run([point], seeds, progress)
        assert readings is not None, "a point that was tried before"
        scenarios = [
            made
            for one in question.scenarios
            if one.id in question.judged and (made := runner.scenario_at(one, point)) is not None
        ]
        results = evaluate_all(scenarios, [trial for mine in readings.values() for trial in mine])
        misses = question.checks.by_claim(question.checks.misses(readings))
        control = search.control.by_claim(search.control.misses(readings))
        found[name] = Confirmed(
            name,
            point,
            question.verdicts(results),
            frozenset(claim for claim, miss in misses.items() if miss == 0),
            frozenset(claim for claim, miss in control.items() if miss == 0),
        )
    return found


def _ablations(search: Search, aim: Aim, point: Point) -> list[Ablation]:
    """Returns each departure of a point taken back alone; those points were tried when the point was
    simplified."""
    whole = search.whole(search.tried[point])
    found = []
    for place, index in enumerate(point):
        if not index:
            continue
        without = (*point[:place], 0, *point[place + 1 :])
        search.try_points([without], aim.name)
        if without not in search.tried:
            continue
        unknown, other = search.unknowns.each[place], search.whole(search.tried[without])
        here, there = search.of(search.tried[point]), search.of(search.tried[without])
        in_order = search.checks.claims
        found.append(
            Ablation(
                unknown.name,
                unknown.values[index].label,
                unknown.values[0].label,
                tuple(claim for claim in in_order if claim in whole - other),
                tuple(claim for claim in in_order if claim in other - whole),
                tuple(claim for claim in in_order if here[claim] < there[claim]),
            )
        )
    return found


def _together(search: Search) -> tuple[str, ...]:
    every = [search.whole(one) for one in search.tried.values()]
    largest = max(every, key=len, default=set())
    return tuple(claim for claim in search.checks.claims if claim in largest)
