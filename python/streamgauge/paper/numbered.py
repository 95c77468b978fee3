"""Several papers in one run: each numbered claim of each, once, with the result of its checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.campaign import MutantResult, score
from streamgauge.checks import CheckResult
from streamgauge.paper.machines import HERE, mode_json, mode_on
from streamgauge.paper.published import Paper
from streamgauge.scenario import Scenario

__all__ = ["NumberedClaim", "PaperOutcome", "claim_of", "outcomes_of", "stating"]

ClaimVerdict = Literal["pass", "differs in size", "differs", "inconclusive"]
_VERDICTS: tuple[ClaimVerdict, ...] = ("pass", "differs in size", "differs", "inconclusive")
_ORIGINS = ("predicted", "fitted", "input")


@dataclass(frozen=True)
class NumberedClaim:
    """A claim of a paper under a number, with all checks of it."""

    id: str
    """``RV-7``."""
    checks: tuple[CheckResult, ...]
    """Empty if none was judged."""
    mutants: tuple[MutantResult, ...] | None
    """None where not asked for."""
    beside: tuple[CheckResult, ...] = ()
    """Checks of the same statement in experiments that the paper never did; no verdict of the claim."""

    @property
    def verdict(self) -> ClaimVerdict:
        """It differs if any check fails, and is as claimed if all pass. It differs in size if all pass and a
        printed number is further away than its tolerance."""
        verdicts = {one.verdict for one in self.checks}
        if "fail" in verdicts:
            return "differs"
        if verdicts != {"pass"}:
            return "inconclusive"
        return "differs in size" if self.numbers_differ else "pass"

    @property
    def shown(self) -> CheckResult | None:
        """Returns the check that a table shows: the first that is not as published, else the first with a
        number."""
        wrong = [one for one in self.checks if one.verdict != "pass" or one.differs_in_size]
        printed = [one for one in self.checks if one.published]
        return next(iter([*wrong, *printed, *self.checks]), None)

    @property
    def numbers_differ(self) -> int:
        """Checks that pass although a printed number is further away than their tolerance."""
        return sum(one.differs_in_size for one in self.checks)

    @property
    def origins(self) -> list[str]:
        """Returns the origins of its checks; only predicted ones are evidence."""
        found = {one.origin for one in self.checks}
        return [origin for origin in _ORIGINS if origin in found]

    @property
    def caught(self) -> int | None:
        """Checks that fail with their mechanism removed."""
        return None if self.mutants is None else sum(one.killed for one in self.mutants)

    def counts(self) -> dict[str, int]:
        """Checks by verdict."""
        return {
            verdict: sum(one.verdict == verdict for one in self.checks)
            for verdict in ("pass", "fail", "inconclusive")
        }

    @property
    def words(self) -> str:
        """Returns its first check in words, and the number of further ones."""
        if not self.checks:
            return "no check was judged"
        titles = list(dict.fromkeys(one.title or one.that for one in self.checks))
        shown = self.shown
        first = titles[0] if shown is None else shown.title or shown.that
        return first if len(titles) == 1 else f"{first} (and {len(titles) - 1} more)"

    def to_json(self, paper: Paper, machine: str = HERE) -> dict[str, Any]:
        """Returns its place in ``streamgauge.papers/1``; emulated trials ran on `machine`."""
        return {
            "id": self.id,
            "paper": paper.id,
            "verdict": self.verdict,
            "whole": self.verdict == "pass",
            "numbers_differ": self.numbers_differ,
            "origins": self.origins,
            "checks": [
                {
                    "id": one.id,
                    "scenario": one.scenario,
                    **mode_json(mode_on(one.mode, machine)),
                    "title": one.title,
                    "verdict": one.verdict,
                    "origin": one.origin,
                    "strict": one.strict,
                    "differs": one.differs,
                    "why": one.why,
                }
                for one in self.checks
            ],
            "mutants": None
            if self.mutants is None
            else {"caught": self.caught, "of": len(self.mutants)},
        }  # fmt: skip


@dataclass(frozen=True)
class PaperOutcome:
    """Results of a paper's numbered claims."""

    paper: Paper
    claims: tuple[NumberedClaim, ...]
    trials: int

    def counts(self) -> dict[str, int]:
        """Claims by verdict."""
        return {verdict: sum(one.verdict == verdict for one in self.claims) for verdict in _VERDICTS}

    @property
    def checks(self) -> list[CheckResult]:
        """Returns those of its claims."""
        return [check for claim in self.claims for check in claim.checks]

    @property
    def mutants(self) -> list[MutantResult] | None:
        """Returns those of its claims; None where not asked for."""
        found = [one.mutants for one in self.claims]
        return None if any(one is None for one in found) else [each for one in found for each in one or ()]

    @property
    def beside(self) -> list[CheckResult]:
        """Checks in experiments that the paper never did."""
        return [check for claim in self.claims for check in claim.beside]

    def words(self) -> str:
        """Returns ``of 19 claims 12 as claimed, 1 differ in size, 4 differ, 2 undecided; ...``."""
        counts, checks, mutants = self.counts(), self.checks, self.mutants
        predicted = sum(one.origin == "predicted" for one in checks)
        said = (
            f"of {len(self.claims)} claims {counts['pass']} as claimed, "
            f"{counts['differs in size']} differ in size, {counts['differs']} differ, "
            f"{counts['inconclusive']} undecided; {predicted} of {len(checks)} checks predicted"
        )
        if mutants is not None:
            said += f"; {sum(one.killed for one in mutants)} of {len(mutants)} mutants caught"
        if self.beside:
            holds = sum(one.verdict == "pass" for one in self.beside)
            said += f"; beside the paper {holds} of {len(self.beside)} checks hold"
        return said

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``streamgauge.papers/1``."""
        mutants = self.mutants
        return {
            "paper": self.paper.id,
            "citation": self.paper.citation,
            "claims": len(self.claims),
            **{name.replace(" ", "_"): count for name, count in self.counts().items()},
            "beside": {
                "checks": len(self.beside),
                "pass": sum(one.verdict == "pass" for one in self.beside),
            },
            "checks": len(self.checks),
            "predicted": sum(one.origin == "predicted" for one in self.checks),
            "trials": self.trials,
            "mutation_score": None if mutants is None else score(mutants),
        }


def claim_of(paper: Paper, check: str) -> str | None:
    """Returns the numbered claim of a check: ``W-24`` of ``W-24-none``."""
    found = re.match(rf"{re.escape(paper.claims.prefix)}-(\d+)(?!\d)", check) if paper.claims else None
    return found[0] if found else None


def _paper_of(scenario: str, papers: Iterable[Paper]) -> Paper | None:
    return next((paper for paper in papers if scenario.startswith(f"{paper.id}/")), None)


def stating(papers: Sequence[Paper], scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Returns the scenarios that have a check of a numbered claim of their paper: extensions are left out."""
    found = []
    for scenario in scenarios:
        paper = _paper_of(scenario.id, papers)
        if paper is not None and any(claim_of(paper, check) for check in scenario.checks):
            found.append(scenario)
    return found


def outcomes_of(
    papers: Sequence[Paper],
    checks: Sequence[CheckResult],
    mutants: Sequence[MutantResult] | None,
    trials: Mapping[str, int],
) -> list[PaperOutcome]:
    """Returns each paper's numbered claims, all that it has, in their order; `trials` are counted by
    scenario."""
    found = []
    for paper in papers:
        if paper.claims is None:
            continue
        mine = [one for one in checks if one.scenario.startswith(f"{paper.id}/")]
        own = [one for one in mine if paper.did(one.scenario)]
        apart = [one for one in mine if not paper.did(one.scenario)]
        gone = None if mutants is None else [
            one for one in mutants if one.scenario.startswith(f"{paper.id}/") and paper.did(one.scenario)
        ]  # fmt: skip
        claims = tuple(
            NumberedClaim(
                name,
                tuple(one for one in own if claim_of(paper, one.id) == name),
                None
                if gone is None
                else tuple(one for one in gone if claim_of(paper, one.check) == name),
                tuple(one for one in apart if claim_of(paper, one.id) == name),
            )
            for name in paper.claims.names
        )  # fmt: skip
        ran = sum(count for scenario, count in trials.items() if scenario.startswith(f"{paper.id}/"))
        found.append(PaperOutcome(paper, claims, ran))
    return found
