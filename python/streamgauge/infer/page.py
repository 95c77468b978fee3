"""The page of an inference: one HTML file that needs nothing but itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamgauge.documents import write_whole
from streamgauge.infer.inferring import Inferred
from streamgauge.infer.telling import sentences
from streamgauge.report.page import render_page

__all__ = ["render", "write_page"]

_MOST_PULLS = 4


def write_page(found: Inferred, out: Path) -> Path:
    """Writes the page; it appears whole or not at all."""
    return write_whole(out, render(found))


def render(found: Inferred) -> str:
    """Returns the page as text."""
    counts = found.counts()
    return render_page(
        "streamgauge.infer",
        "infer.html.j2",
        title=f"What must have been true of {found.question.name}",
        paper=found.question.name,
        sentences=sentences(found),
        points=len(found.search.tried),
        readings=[
            ("public sources alone", counts["sources"]),
            ("described: fitted to all claims", counts["described"]),
            ("held out: fitted to the other half", counts["held_out"]),
            ("described, by means", counts["described_by_means"]),
            ("permuted claims under the sources, by means", counts["control_sources"]),
            ("permuted claims, fitted, by means", counts["control_fitted"]),
        ],
        claims=_claims(found),
        unknowns=_unknowns(found),
        together=found.together,
        never=found.never,
        further=found.further,
        method=_method(found),
    )


def _claims(found: Inferred) -> list[dict[str, Any]]:
    halves, held_out = found.question.split.halves, found.held_out
    sources, described = (found.confirmed[name].verdicts for name in ("sources", "described"))
    return [
        {
            "claim": claim,
            "half": next(name for name, half in halves.items() if claim in half),
            "verdicts": [sources[claim], described[claim], held_out[claim]],
            "points": found.held[claim],
        }
        for claim in found.question.checks.claims
    ]


def _unknowns(found: Inferred) -> list[dict[str, Any]]:
    described = found.confirmed["described"].point
    told = []
    for place, (unknown, marginal) in enumerate(
        zip(found.question.unknowns.each, found.marginals, strict=True)
    ):
        values = [
            {
                "label": value.label,
                "prior": marginal.prior[index],
                "posterior": marginal.posterior[index],
                "points": marginal.points[index],
                "described": described[place] == index,
                "pulls": _pulls(found, unknown.name, value.label),
            }
            for index, value in enumerate(unknown.values)
        ]
        told.append(
            {
                "name": unknown.name,
                "what": f"{unknown.what[0].upper()}{unknown.what[1:]}",
                "why": unknown.why,
                "moves": found.search.moving[place],
                "rows": values,
            }
        )
    return told


def _pulls(found: Inferred, unknown: str, value: str) -> str:
    mine = [one for one in found.pulls if (one.unknown, one.value) == (unknown, value)]
    said = [f"{one.claim} {100 * one.without:.0f} to {100 * one.with_it:.0f} %" for one in mine]
    return ", ".join(said[:_MOST_PULLS])


def _method(found: Inferred) -> str:
    asked, split = found.asked, found.question.split
    values = sum(len(one.values) - 1 for one in found.question.unknowns.each)
    moving, values_of = sum(found.search.moving), len(found.question.unknowns)
    half, few = asked.points // 2, (asked.confirm + 1) // 2
    return (
        f"Screening: each of {values} other values of {values_of} unknowns alone; {moving} unknowns move a "
        f"claim. Then {half} points by lot, which all searches share, and {half} bred "
        "for each of four aims: all claims, half A, half B, and claims whose statements are permuted within "
        f"their kind. Seeds at a point: {asked.seeds}. The best few are compared over {asked.finals} further "
        f"seeds and confirmed by {asked.confirm} fresh ones, fits to a half and to permuted claims by "
        f"{few}. The halves were drawn by seed {split.seed} before anything was fitted. A "
        "departure from the sources has a price, so that it must explain more than it costs."
    )
