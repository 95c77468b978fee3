"""The negative control: a paper's claims, with their statements permuted within their kind.

Bounds change places with bounds of the same kind (a lower bound of a rate with another lower bound of a
rate), and orders between measured values are turned round or not, by lot. A search that explains these as
well as the real claims has learnt nothing from the paper.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamgauge.claims.syntax import (
    Binary,
    Call,
    Chain,
    Logical,
    Negation,
    Negative,
    Predicate,
    Reference,
    Relation,
    Share,
    Term,
)
from streamgauge.claims.typing import dimension_of
from streamgauge.infer.misses import ClaimedChecks

__all__ = ["permuted"]

_TURNED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}


@dataclass(frozen=True)
class _Slot:
    """A bound that may change its place: which check, which relation in it, and which side."""

    check: int
    relation: int
    side: str


def permuted(checks: ClaimedChecks, seed: int) -> ClaimedChecks:
    """Returns the checks with bounds permuted within their kinds, and orders turned round by lot."""
    rng = np.random.Generator(np.random.PCG64(seed))
    units: dict[tuple[str, ...], list[tuple[_Slot, ...]]] = {}
    bounds: dict[_Slot, Term] = {}
    turned: set[tuple[int, int]] = set()
    for number, check in enumerate(checks.each):
        for group in _groups(check.root):
            slots = []
            for place, relation in group:
                side = next((name for name in ("right", "left") if _is_bound(getattr(relation, name))), None)
                if side is not None:
                    slots.append(_Slot(number, place, side))
                    bounds[slots[-1]] = getattr(relation, side)
                elif relation.operator in _TURNED and rng.integers(2):
                    turned.add((number, place))
            if slots:
                kind = tuple(part for slot in slots for part in _kind(dict(group)[slot.relation], slot.side))
                units.setdefault(kind, []).append(tuple(slots))
    taken: dict[_Slot, Term] = {}
    for kind in sorted(units):
        mine = units[kind]
        for unit, index in zip(mine, rng.permutation(len(mine)), strict=True):
            for slot, other in zip(unit, mine[int(index)], strict=True):
                taken[slot] = bounds[other]
    changed = []
    for number, check in enumerate(checks.each):
        counter = itertools.count()
        changed.append(replace(check, root=_rebuilt(check.root, number, counter, taken, turned)))
    return ClaimedChecks(tuple(changed))


def _groups(node: Predicate) -> Iterator[list[tuple[int, Relation]]]:
    """Yields the relations of a statement by their places: those of a chain, an interval, together."""
    places = itertools.count()

    def visit(node: Predicate) -> Iterator[list[tuple[int, Relation]]]:
        match node:
            case Relation():
                yield [(next(places), node)]
            case Chain():
                yield [(next(places), link) for link in node.links]
            case Negation():
                yield from visit(node.operand)
            case Logical():
                yield from visit(node.left)
                yield from visit(node.right)

    yield from visit(node)


def _rebuilt(
    node: Predicate,
    number: int,
    counter: Iterator[int],
    taken: dict[_Slot, Term],
    turned: set[tuple[int, int]],
) -> Predicate:
    match node:
        case Relation():
            place = next(counter)
            if (slot := _Slot(number, place, "right")) in taken:
                return replace(node, right=taken[slot])
            if (slot := _Slot(number, place, "left")) in taken:
                return replace(node, left=taken[slot])
            if (number, place) in turned:
                return replace(node, operator=_TURNED[node.operator])
            return node
        case Chain():
            return replace(node, links=tuple(_each(node.links, number, counter, taken, turned)))
        case Negation():
            return replace(node, operand=_rebuilt(node.operand, number, counter, taken, turned))
        case Logical():
            left = _rebuilt(node.left, number, counter, taken, turned)
            return replace(node, left=left, right=_rebuilt(node.right, number, counter, taken, turned))
    raise TypeError(f"{type(node).__name__} is no predicate")


def _each(
    links: Sequence[Relation],
    number: int,
    counter: Iterator[int],
    taken: dict[_Slot, Term],
    turned: set[tuple[int, int]],
) -> Iterator[Relation]:
    for link in links:
        found = _rebuilt(link, number, counter, taken, turned)
        assert isinstance(found, Relation)
        yield found


def _is_bound(node: Term) -> bool:
    """Returns whether nothing in it is measured."""
    return not any(isinstance(part, Reference) for part in node.walk())


def _kind(relation: Relation, side: str) -> tuple[str, ...]:
    """Returns the dimension, which side of the measured value is bounded, and the kind of value that is
    measured."""
    other = relation.left if side == "right" else relation.right
    operator = relation.operator if side == "right" else _TURNED.get(relation.operator, relation.operator)
    measured = "value"
    if any(isinstance(part, Share) for part in other.walk()):
        measured = "share of trials"
    elif isinstance(other, Call) and other.function in ("spearman", "jain", "correlation"):
        measured = other.function
    elif isinstance(other, Binary | Negative):
        measured = "sum or ratio"
    return (str(dimension_of(getattr(relation, side))), operator[0], measured)
