"""Several papers in one run: each numbered claim of each, once, with what its checks came to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.campaign import MutantResult, score
from streamgauge.checks import CheckResult
from streamgauge.paper.machines import HERE, in_order, mode_json, mode_on, words_of
from streamgauge.paper.published import Paper
from streamgauge.scenario import Scenario
from streamgauge.terminal import lay_out

__all__ = ["NumberedClaim", "PaperOutcome", "numbered_json", "numbered_text", "outcomes_of", "stating"]

ClaimVerdict = Literal["pass", "differs", "inconclusive"]
_ORIGINS = ("predicted", "fitted", "input")


@dataclass(frozen=True)
class NumberedClaim:
    """What a paper states under a number, in all checks of it."""

    id: str
    """``RV-7``."""
    checks: tuple[CheckResult, ...]
    """Empty if none was judged."""
    mutants: tuple[MutantResult, ...] | None
    """None where not asked for."""

    @property
    def verdict(self) -> ClaimVerdict:
        """It differs if any check fails; it is as claimed if all pass."""
        verdicts = {one.verdict for one in self.checks}
        if "fail" in verdicts:
            return "differs"
        return "pass" if verdicts == {"pass"} else "inconclusive"

    @property
    def numbers_differ(self) -> int:
        """Checks that pass although a printed number is further away than their tolerance."""
        return sum(one.verdict == "pass" and one.differs is not None for one in self.checks)

    @property
    def origins(self) -> list[str]:
        """Where its checks come from; only what was predicted is evidence."""
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
        """What its first check says, and how many say more."""
        if not self.checks:
            return "no check was judged"
        titles = list(dict.fromkeys(one.title or one.that for one in self.checks))
        # What differs is what one wants to read.
        wrong = [one.title or one.that for one in self.checks if one.verdict != "pass"]
        first = wrong[0] if wrong else titles[0]
        return first if len(titles) == 1 else f"{first} (and {len(titles) - 1} more)"

    def to_json(self, paper: Paper, machine: str = HERE) -> dict[str, Any]:
        """Its place in ``streamgauge.papers/1``; emulated trials ran on `machine`."""
        return {
            "id": self.id,
            "paper": paper.id,
            "verdict": self.verdict,
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
    """What came of a paper's numbered claims."""

    paper: Paper
    claims: tuple[NumberedClaim, ...]
    trials: int

    def counts(self) -> dict[str, int]:
        """Claims by verdict."""
        return {
            verdict: sum(one.verdict == verdict for one in self.claims)
            for verdict in ("pass", "differs", "inconclusive")
        }

    @property
    def checks(self) -> list[CheckResult]:
        """Those of its claims."""
        return [check for claim in self.claims for check in claim.checks]

    @property
    def mutants(self) -> list[MutantResult] | None:
        """Those of its claims; None where not asked for."""
        found = [one.mutants for one in self.claims]
        return None if any(one is None for one in found) else [each for one in found for each in one or ()]

    def words(self) -> str:
        """``darwin: of 19 claims 12 as claimed, 5 differ, 2 undecided; of 41 checks 36 predicted.``"""
        counts, checks, mutants = self.counts(), self.checks, self.mutants
        predicted = sum(one.origin == "predicted" for one in checks)
        said = (
            f"{self.paper.id}: of {len(self.claims)} claims {counts['pass']} as claimed, "
            f"{counts['differs']} differ, {counts['inconclusive']} undecided; "
            f"{predicted} of {len(checks)} checks predicted"
        )
        if mutants is not None:
            said += f"; {sum(one.killed for one in mutants)} of {len(mutants)} mutants caught"
        return said

    def to_json(self) -> dict[str, Any]:
        """Its place in ``streamgauge.papers/1``."""
        mutants = self.mutants
        return {
            "paper": self.paper.id,
            "citation": self.paper.citation,
            "claims": len(self.claims),
            **self.counts(),
            "checks": len(self.checks),
            "predicted": sum(one.origin == "predicted" for one in self.checks),
            "trials": self.trials,
            "mutation_score": None if mutants is None else score(mutants),
        }


def _claim_of(paper: Paper, check: str) -> str | None:
    """The numbered claim of a check: ``W-24`` of ``W-24-none``."""
    found = re.match(rf"{re.escape(paper.claims.prefix)}-(\d+)(?!\d)", check) if paper.claims else None
    return found[0] if found else None


def _paper_of(scenario: str, papers: Iterable[Paper]) -> Paper | None:
    return next((paper for paper in papers if scenario.startswith(f"{paper.id}/")), None)


def stating(papers: Sequence[Paper], scenarios: Iterable[Scenario]) -> list[Scenario]:
    """The scenarios that have a check of a numbered claim of their paper: what goes beyond is left out."""
    found = []
    for scenario in scenarios:
        paper = _paper_of(scenario.id, papers)
        if paper is not None and any(_claim_of(paper, check) for check in scenario.checks):
            found.append(scenario)
    return found


def outcomes_of(
    papers: Sequence[Paper],
    checks: Sequence[CheckResult],
    mutants: Sequence[MutantResult] | None,
    trials: Mapping[str, int],
) -> list[PaperOutcome]:
    """Each paper's numbered claims, all that it has, in their order; `trials` are counted by scenario."""
    found = []
    for paper in papers:
        if paper.claims is None:
            continue
        mine = [one for one in checks if one.scenario.startswith(f"{paper.id}/")]
        gone = None if mutants is None else [
            one for one in mutants if one.scenario.startswith(f"{paper.id}/")
        ]  # fmt: skip
        claims = tuple(
            NumberedClaim(
                name,
                tuple(one for one in mine if _claim_of(paper, one.id) == name),
                None
                if gone is None
                else tuple(one for one in gone if _claim_of(paper, one.check) == name),
            )
            for name in paper.claims.names
        )  # fmt: skip
        ran = sum(count for scenario, count in trials.items() if scenario.startswith(f"{paper.id}/"))
        found.append(PaperOutcome(paper, claims, ran))
    return found


def numbered_text(outcomes: Sequence[PaperOutcome], columns: int | None = None, machine: str = HERE) -> str:
    """The table of all claims for a terminal, no wider than `columns`, and a line for each paper; emulated
    trials ran on `machine`."""
    has_mutants = any(one.mutants for one in outcomes)
    head = ["claim", "paper", "verdict", "checks", "origin"] + (["mutants"] if has_mutants else []) + ["what"]
    rows = [head]
    for outcome in outcomes:
        for claim in outcome.claims:
            counts = claim.counts()
            verdict = claim.verdict + (" ≠" if claim.verdict == "pass" and claim.numbers_differ else "")
            cells = [claim.id, outcome.paper.id, verdict, f"{counts['pass']} of {len(claim.checks)}"]
            cells.append(", ".join(claim.origins) or "–")
            if has_mutants:
                told = claim.mutants or ()
                cells.append(f"{claim.caught} of {len(told)}" if told else "–")
            rows.append([*cells, claim.words])
    laid = lay_out(rows, f"lllrl{'r' if has_mutants else ''}w", columns=columns, keys=2, indent=2)
    total = sum(len(one.claims) for one in outcomes)
    modes = in_order(mode_on(check.mode, machine) for one in outcomes for check in one.checks)
    ran = f" in {' and '.join(words_of(mode, modes) for mode in modes)}" if modes else ""
    said = [f"{total} claims of {len(outcomes)} papers{ran}", *(text.plain for text in laid)]
    if any(claim.numbers_differ for one in outcomes for claim in one.claims):
        said.append("  ≠ a printed number is further away than the check's tolerance")
    return "\n".join([*said, "", *(f"{one.words()}." for one in outcomes)])


def numbered_json(outcomes: Sequence[PaperOutcome], machine: str = HERE) -> dict[str, Any]:
    """``papers`` and ``claims`` of ``streamgauge.papers/1``; emulated trials ran on `machine`."""
    return {
        "papers": [one.to_json() for one in outcomes],
        "claims": [claim.to_json(one.paper, machine) for one in outcomes for claim in one.claims],
    }
