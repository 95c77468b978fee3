"""Short transfers that arrive at random: the start and the size of each, drawn by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any

from streamgauge.scenario.draws import draw
from streamgauge.scenario.flow import Arrivals

__all__ = ["MOST", "expected", "transfers"]

MOST = 100_000
"""Transfers of a flow in a trial that are expected at most."""

_UNIFORM = 1 << 53
_CONTEXT = Context(prec=20)
"""Logarithms are the same on every machine: `Decimal.ln` is correctly rounded. A day in ns has 14 digits."""


def expected(arrivals: Arrivals, begin_ns: int, end_ns: int) -> float:
    """Returns how many arrive on average between two times."""
    return arrivals.rate.per_s * max(0, end_ns - begin_ns) / 1e9


def transfers(arrivals: Arrivals, seed: int, flow: str, begin_ns: int, end_ns: int) -> list[dict[str, int]]:
    """Returns those that arrive in [begin, end), as the plan has them.

    Gaps are exponential with mean 1 / rate, from `begin_ns` on. Each gap and each size is drawn by the seed,
    the flow's name and the transfer's number alone: a later end, other sizes or another flow change no other
    draw.
    """
    return list(
        itertools.takewhile(lambda one: one["at"] < end_ns, _without_end(arrivals, seed, flow, begin_ns))
    )


def _without_end(arrivals: Arrivals, seed: int, flow: str, begin_ns: int) -> Iterator[dict[str, Any]]:
    mean_ns = _CONTEXT.divide(Decimal(10**9), arrivals.rate.amount)
    at = Decimal(begin_ns)
    for number in itertools.count():
        at = _CONTEXT.add(at, _exponential(mean_ns, seed, flow, f"arrival {number}"))
        size = Decimal(arrivals.size.bytes)
        if arrivals.sizes == "exponential":
            size = _exponential(size, seed, flow, f"size {number}")
        yield {"at": int(at), "bytes": max(1, round(size))}


def _exponential(mean: Decimal, seed: int, flow: str, purpose: str) -> Decimal:
    # In (0, 1], so that its logarithm is finite.
    uniform = _CONTEXT.divide(Decimal(draw(seed, flow, purpose, 1, _UNIFORM)), Decimal(_UNIFORM))
    return _CONTEXT.multiply(-_CONTEXT.ln(uniform), mean)
