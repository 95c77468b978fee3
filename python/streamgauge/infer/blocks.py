"""Blocks of claims, which no split cuts, and the two halves of a paper's claims.

Two claims are in one block when any of their checks read the same number: the same metric of the same flow
in the same run, which is a cell of a table or a curve of a figure. A split is drawn once by a seed, before
anything is fitted, and kept in ``catalogue/PAPER/split.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamgauge.claims.expression import parse
from streamgauge.claims.syntax import Reference
from streamgauge.errors import ScenarioError
from streamgauge.input_files import UnfitInputError, read_input
from streamgauge.paper import Paper
from streamgauge.paper.numbered import claim_of
from streamgauge.scenario import Scenario
from streamgauge.scenario.document import parse_document
from streamgauge.scenario.shipped import SPLIT_FILE, catalogue_folder

__all__ = ["Split", "blocks_of", "draw_halves", "load_split", "split_file", "split_text"]

_LARGEST: Final = 100_000
HALVES: Final = ("A", "B")


@dataclass(frozen=True)
class Split:
    """Two halves of a paper's claims, made of whole blocks."""

    seed: int
    blocks: tuple[tuple[str, ...], ...]
    halves: Mapping[str, tuple[str, ...]]
    """``A`` and ``B``."""

    def other(self, half: str) -> tuple[str, ...]:
        """Returns the claims that are held out while `half` is fitted."""
        return self.halves["B" if half == "A" else "A"]


def blocks_of(paper: Paper, scenarios: Iterable[Scenario]) -> list[tuple[str, ...]]:
    """Returns the blocks of a paper's numbered claims: the largest first, each in the paper's order. A claim
    without a check is in none."""
    reads: dict[str, set[tuple[str, str, str]]] = {}
    for scenario in scenarios:
        for name, check in scenario.checks.items():
            claim = claim_of(paper, name)
            if claim is not None:
                numbers = reads.setdefault(claim, set())
                for node in parse(check.that).root.walk():
                    if isinstance(node, Reference):
                        numbers.add((node.scenario or scenario.id, node.metric, node.subject or ""))
    order = [] if paper.claims is None else [name for name in paper.claims.names if name in reads]
    leader = {claim: claim for claim in order}

    def lead(claim: str) -> str:
        while leader[claim] != claim:
            claim = leader[claim]
        return claim

    for index, claim in enumerate(order):
        for other in order[:index]:
            if reads[claim] & reads[other]:
                leader[lead(claim)] = lead(other)
    groups: dict[str, list[str]] = {}
    for claim in order:
        groups.setdefault(lead(claim), []).append(claim)
    return sorted((tuple(group) for group in groups.values()), key=lambda group: -len(group))


def draw_halves(blocks: Sequence[Sequence[str]], seed: int) -> dict[str, tuple[str, ...]]:
    """Returns two halves of as many claims as whole blocks allow: in random order of equal blocks, the
    largest first, each joins the half with fewer claims, and a random one where both have as many."""
    rng = np.random.Generator(np.random.PCG64(seed))
    halves: dict[str, list[str]] = {name: [] for name in HALVES}
    order = sorted(rng.permutation(len(blocks)), key=lambda index: -len(blocks[index]))
    for index in order:
        a, b = (len(halves[name]) for name in HALVES)
        name = HALVES[int(rng.integers(2))] if a == b else HALVES[0 if a < b else 1]
        halves[name] += blocks[index]
    claims = [claim for block in blocks for claim in block]
    return {name: tuple(sorted(found, key=lambda c: _number(c, claims))) for name, found in halves.items()}


def _number(claim: str, claims: Sequence[str]) -> tuple[int, int]:
    """Claims by their numbers: ``HW-10`` after ``HW-9``."""
    end = claim.rpartition("-")[2]
    return (int(end) if end.isdigit() else len(claims), claims.index(claim))


def split_file(paper: str) -> Path:
    """Returns the file of a paper's split."""
    return catalogue_folder() / paper / SPLIT_FILE


def split_text(paper: str, blocks: Sequence[Sequence[str]], seed: int) -> str:
    """Returns the file of a split."""
    halves = draw_halves(blocks, seed)
    lines = [
        f"# Two halves of the claims of {paper}, drawn by this seed before anything was fitted: a fit to one",
        "# is judged by the other. Claims of a block read the same numbers, and no split cuts a block.",
        f"seed: {seed}",
        "blocks:",
        *(f"  - [{', '.join(block)}]" for block in blocks),
        "halves:",
        *(f"  {name}: [{', '.join(found)}]" for name, found in halves.items()),
    ]
    return "\n".join(lines) + "\n"


def load_split(file: Path, blocks: Sequence[Sequence[str]]) -> Split:
    """Reads a split, and compares it with the blocks of the claims as they are now.

    Raises ScenarioError for a file that is no split, and for one that cuts a block or misses a claim.
    """
    remedy = "draw one by 'streamgauge infer PAPER --draw-split SEED' before anything is fitted"
    try:
        text = read_input(file, _LARGEST)
    except (OSError, UnicodeDecodeError, UnfitInputError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(f"cannot be read: {why}", file=file, hint=remedy) from None
    document = parse_document(text, str(file))
    data: Mapping[str, Any] = document.data
    halves, seed = data.get("halves"), data.get("seed")
    if set(data) != {"seed", "blocks", "halves"} or not isinstance(seed, int) or isinstance(seed, bool):
        raise ScenarioError("expected 'seed', 'blocks' and 'halves'", file=file, line=1, hint=remedy)
    if (
        not isinstance(halves, dict)
        or list(halves) != list(HALVES)
        or not all(isinstance(listed, list) and listed for listed in halves.values())
    ):
        line = document.place(("halves",))[1]
        raise ScenarioError(
            "expected 'A' and 'B', each a list of claims", file=file, line=line, key="halves", hint=remedy
        )
    found = {name: tuple(map(str, halves[name])) for name in HALVES}
    for block in blocks:
        if not any(set(block) <= set(half) for half in found.values()):
            line = document.place(("halves",))[1]
            raise ScenarioError(
                f"the claims {', '.join(block)} read the same numbers and must be in one half",
                file=file,
                line=line,
                key="halves",
                hint=remedy,
            )
    known = {claim for block in blocks for claim in block}
    every = [claim for half in found.values() for claim in half]
    for claim in every:
        if claim not in known or every.count(claim) > 1:
            why = "stands here twice" if claim in known else "has no check"
            line = document.place(("halves",))[1]
            raise ScenarioError(f"the claim {claim} {why}", file=file, line=line, key="halves", hint=remedy)
    return Split(seed, tuple(tuple(block) for block in blocks), found)
