"""How evenly flows share, each flow's part of its due, and the effect of one on another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import NUMBER
from streamgauge.metrics.frame import DOWN, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats
from streamgauge.metrics.rates import lost_bits, sent_bits
from streamgauge.metrics.result import Measured, Series


def jain(rates: Sequence[float] | Floats) -> float:
    """Jain's index J = (Σ x_i)² / (n Σ x_i²) of `rates` in any one unit; 1 is an even share, 1/n one taker.

    Source: Jain, Chiu and Hawe, DEC-TR-301 (1984). NaN if no flow has a rate. The index ignores that flows
    may have different demands. Averages over an experiment use each flow's mean offered rate less its mean
    loss rate, which alone reproduces all nine indices that De Cicco et al. print.

    Raises:
        ValueError: for a negative rate.
    """
    x = np.asarray(rates, dtype=np.float64)
    if (x < 0).any():
        raise ValueError(f"a rate cannot be negative: {x.min()}")
    largest = x.max(initial=0.0)
    if largest == 0:
        return float("nan")
    x = x / largest
    return float(x.sum() ** 2 / (len(x) * (x**2).sum()))


def jain_series(rates: Sequence[Floats], started: Sequence[Floats]) -> Floats:
    """Returns the instantaneous index: one value per sample, over the flows that have started.

    Args:
        rates: per flow, its rate in each sample.
        started: per flow, 1 in the sample of its first packet and after, 0 before.

    Returns:
        One value per sample; NaN where fewer than two flows have started or none has a rate.
    """
    if not rates:
        return np.empty(0)
    x = np.clip(np.stack(rates), 0, None) * np.stack(started)
    count = np.stack(started).sum(axis=0)
    squares = (x**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        index = x.sum(axis=0) ** 2 / (count * squares)
    return np.where((count >= 2) & (squares > 0), index, np.nan)


def spearman(values: Sequence[float] | Floats) -> float:
    """Spearman's rank correlation of values with their order: 1 if each is above the one before, -1 if below.

    Equal values share the mean of their ranks (Spearman 1904; Kendall 1945 for ties). NaN if all are equal.
    """
    x = np.asarray(values, dtype=np.float64)
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    ranks, order = ranks - ranks.mean(), np.arange(len(x)) - (len(x) - 1) / 2
    scale = float(np.sqrt((ranks**2).sum() * (order**2).sum()))
    return float((ranks * order).sum()) / scale if scale else float("nan")


def max_min(capacity: Floats, caps: Floats) -> Floats:
    """Returns the max-min fair allocation of a link among flows that need no more than their caps.

    As water filling gives it: no flow can have more without one that has as much or less having less
    (Bertsekas and Gallager, Data Networks, section 6.5.2). Prudentia (Philip et al., SIGCOMM 2024) measures
    services by the share of this allocation that they reach, with the rate that a service reaches alone as
    the cap. Its example: of 8 Mbit/s a service capped at 10 Mbit/s is due 4 Mbit/s beside a greedy one; of 50
    Mbit/s it is due 10 Mbit/s, the other 40.

    Args:
        capacity: of the link in each sample.
        caps: of each flow in each sample, [flow, sample], in the same unit; infinite for a greedy flow, 0 for
            one that is not there.

    Returns:
        [flow, sample]; the allocations of a sample sum to its capacity, or to all caps if these are less.
    """
    order = np.argsort(caps, axis=0, kind="stable")
    ascending = np.take_along_axis(caps, order, axis=0)
    due = np.empty_like(ascending)
    left = np.array(capacity, dtype=np.float64)
    for place, cap in enumerate(ascending):
        due[place] = np.minimum(cap, left / (len(ascending) - place))
        left = left - due[place]
    allocation = np.empty_like(due)
    np.put_along_axis(allocation, order, due, axis=0)
    return allocation


def harm(alone: float, beside: float, *, more_is_better: bool) -> float:
    """Returns how much of a flow's performance others take: 0 is none, 1 is all.

    Ware, Mukerjee, Seshan and Sherry, Beyond Jain's Fairness Index, HotNets 2019: with x the performance
    alone and y beside others, harm is (x - y) / x where more is better (goodput), and (y - x) / y where less
    is better (delay, loss). Below 0 the flow fares better in company. The same alone and beside, also
    nothing, is no harm; NaN where the quotient divides by zero.

    Raises:
        ValueError: for a negative performance, which has no share.
    """
    if min(alone, beside) < 0:
        raise ValueError(f"a performance cannot be negative: {min(alone, beside)}")
    if alone == beside:
        return 0.0
    if more_is_better:
        return (alone - beside) / alone if alone else float("nan")
    return (beside - alone) / beside if beside else float("nan")


def sharers(trial: Trial) -> tuple[int, ...]:
    """Returns the flows in the direction of the first subject's media, without pings: those that share a
    path."""
    media = {row: info for row, info in enumerate(trial.flows) if not info.is_ping}
    way = next((info.direction for info in media.values() if info.role == "subject"), DOWN)
    return tuple(row for row, info in media.items() if info.direction == way)


def evenness(trial: Trial) -> Measured:
    """Returns M5 over the window, by each flow's mean offered rate less its mean loss rate; and in each
    sample, over the flows that have sent their first packet."""
    rows, grid = trial.once(sharers), trial.grid
    if len(rows) < 2:
        return Measured({"jain": Series(np.full(len(grid), np.nan), np.ones(len(grid)))}, {"jain": None})
    part = grid.slice()
    net = [trial.row(sent_bits, row) - trial.row(lost_bits, row) for row in rows]
    ends, offered = grid.edges_ns[1:] / SECOND_NS, trial.offered[DOWN]
    starts = [
        offered.times_ns[sent[0]] / SECOND_NS if len(sent := offered.of(row)) else np.inf for row in rows
    ]
    started = [(ends > start).astype(np.float64) for start in starts]
    samples = jain_series([bits / grid.widths_s for bits in net], started)
    whole = jain([max(0.0, float(bits[part].sum())) for bits in net])
    return Measured({"jain": Series(samples, np.ones(len(grid)))}, {"jain": whole})


METRICS = (
    Metric(
        "jain",
        NUMBER,
        "trial",
        "Jain's index",
        formula=(
            "(Σ xᵢ)² / (n Σ xᵢ²), xᵢ the mean offered rate of a flow less its mean loss rate; see below"
        ),
        trial=evenness,
        number="M5",
        label="Jain's index",
        section="jain",
        compared=(ComparedBy("neighbour", 40, "Jain's index", Margin(absolute=0.02), better="more"),),
    ),
)
