"""Sentences on the necessary conditions of a paper's experiments, each with its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streamgauge.infer.inferring import Ablation, Inferred
from streamgauge.infer.unknowns import Unknown

__all__ = ["Sentence", "listed_claims", "sentences"]

_MOST: Final = 10
_LEARNT: Final = 0.15
"""A posterior further than this from its prior is informative."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, its evidence, and the evidence's place on the page."""

    text: str
    basis: str
    evidence: str


def listed_claims(claims: Sequence[str]) -> str:
    """Returns ``HW-1, HW-2 and HW-4``."""
    if len(claims) < 2:
        return "".join(claims)
    return f"{', '.join(claims[:-1])} and {claims[-1]}"


def sentences(found: Inferred) -> list[Sentence]:
    """Returns ten sentences at most: the explanation of the claims, condition by condition, and the excluded
    conditions."""
    counts = found.counts()
    of = counts["claims"]
    said = [
        Sentence(
            f"{counts['described']} of {of} claims hold under the conditions below, {counts['sources']} by "
            "public sources alone.",
            f"{found.asked.confirm} fresh seeds, 95 % intervals; {counts['undecided']} are undecided",
            "counts",
        )
    ]
    conditions = sorted(found.ablations, key=lambda one: (-len(one.lost), -len(one.nearer)))
    by_name = {one.name: one for one in found.question.unknowns.each}
    for one in conditions[: _MOST - 4]:
        said.append(_condition(by_name[one.unknown], one))
    said.append(_held_out(found))
    said.append(_control(found))
    if found.never:
        a, b = found.never[0].claims
        more = f", and {len(found.never) - 1} more pairs" if len(found.never) > 1 else ""
        said.append(
            Sentence(
                f"{a} and {b} cannot hold together{more}.",
                f"{found.never[0].held[0]} and {found.never[0].held[1]} of {len(found.search.tried)} points "
                f"hold them, none both; {found.never[0].expected:.0f} would by chance",
                "together",
            )
        )
    never = [claim for claim, count in found.held.items() if count == 0]
    if never:
        said.append(
            Sentence(
                f"No condition that was tried explains {listed_claims(never)}.",
                f"none of {len(found.search.tried)} points holds {'it' if len(never) == 1 else 'them'}",
                "claims",
            )
        )
    if len(said) < _MOST and (open_ := _open(found)) is not None:
        said.append(open_)
    return said[:_MOST]


def _condition(unknown: Unknown, one: Ablation) -> Sentence:
    """Returns one departure from the sources."""
    what = f"{unknown.what[0].upper()}{unknown.what[1:]}"
    text = f"{what}: {one.value} explains more than {one.source}."
    if one.lost:
        basis = f"With {one.source} in its place {listed_claims(one.lost)} would not hold"
    else:
        basis = f"{listed_claims(one.nearer)} come nearer with it"
    if one.gained:
        basis += f"; {listed_claims(one.gained)} would"
    return Sentence(text, f"{basis}. {unknown.why}", f"unknown-{unknown.name}")


def _held_out(found: Inferred) -> Sentence:
    counts = found.counts()
    return Sentence(
        f"Fitted to one half of the claims, conditions explain {counts['held_out']} of {counts['claims']} "
        "claims of the other half.",
        f"split by seed {found.question.split.seed}, drawn before anything was fitted; "
        f"{counts['sources']} hold by the sources",
        "claims",
    )


def _control(found: Inferred) -> Sentence:
    counts = found.counts()
    real = counts["described_by_means"] - counts["sources_by_means"]
    lots = counts["control_fitted"] - counts["control_sources"]
    return Sentence(
        f"The same search gains {lots} claims where what they state is permuted, and {real} where it is not.",
        f"by means; permuted {counts['control_sources']} before and {counts['control_fitted']} after, real "
        f"{counts['sources_by_means']} before and {counts['described_by_means']} after",
        "counts",
    )


def _open(found: Inferred) -> Sentence | None:
    """Returns the unknowns on which the claims carry no information."""
    unknowns = found.question.unknowns.each
    still = [
        one.what
        for one, marginal, moves in zip(unknowns, found.marginals, found.search.moving, strict=True)
        if not moves or marginal.shift < _LEARNT
    ]
    fixed = sum(not moves for moves in found.search.moving)
    if not still:
        return None
    return Sentence(
        f"The claims say next to nothing of {len(still)} of {len(unknowns)} unknowns.",
        f"{fixed} move no claim; among those of which nothing was learnt: {'; '.join(still[:4])}",
        "unknowns",
    )
