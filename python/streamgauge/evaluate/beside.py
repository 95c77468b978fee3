"""How a control shares a bottleneck with others: a Latin hypercube, and each axis alone about its centre."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from streamgauge.evaluate.network import AXES, CENTRE, EvaluatedNetwork, along, hypercube
from streamgauge.evaluate.question import CriterionQuestion, SameAs, SeedReadings, SuiteTrial, ValueEnds
from streamgauge.evaluate.trials import MINE, ControlBed, long_flows
from streamgauge.metrics.fairness import harm

__all__ = ["axis_questions", "hypercube_questions", "ratio", "worst"]

GENERAL: Final = "RFC 9743 section 5.2.1"
_SHARE: Final = (25.0, 400.0)
_IN: Final = 95.0
_COUNTS: Final = (1, 2, 4, 8, 16)


def ratio(read: SeedReadings) -> float:
    """Returns the goodput of the control over that of its cross traffic, per flow, in percent."""
    mine, rival = read.mean("goodput", MINE), read.mean("goodput", "rival")
    return 100 * mine / rival if rival > 0 else math.inf


def _bounded(share: float) -> float:
    """Returns a share without a bound: the cross traffic got no byte."""
    return min(share, 1e6) if not math.isnan(share) else math.nan


def worst(reads: Sequence[SeedReadings]) -> float:
    """Returns the least of the smaller flow's goodput over the larger one's, in percent."""
    shares = [_bounded(ratio(read)) for read in reads]
    return min(min(share, 1e4 / share) if share > 0 else 0.0 for share in shares)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def _harm(metric: str, alone: SeedReadings, beside: SeedReadings) -> float:
    """Returns the harm to the cross traffic, in percent; nothing where no flow fares worse."""
    ours, theirs = beside.mean(metric, "rival"), alone.mean(metric, "rival")
    more = metric == "goodput"
    if not more and ours <= theirs:
        return 0.0
    return 100 * harm(theirs, ours, more_is_better=more)


def hypercube_questions(bed: ControlBed, rival: str, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Starvation, harm and shares over the hypercube; of one condition where it is quick."""
    networks = [CENTRE] if quick else hypercube()
    count = len(networks)
    where = "the centre, " + CENTRE.words() if quick else f"{count} conditions of a Latin hypercube"
    beside = f"{where}; one flow beside one {rival}"
    theirs = long_flows("rival", rival)
    mixed = tuple(bed.trial(network, bed.mine() | theirs) for network in networks)

    def share_of(holds: Callable[[float], bool]) -> Callable[[Sequence[SeedReadings]], float]:
        return lambda reads: 100 * _mean([float(holds(_bounded(ratio(read)))) for read in reads])

    bound = ValueEnds(low=_IN)
    yield CriterionQuestion(
        f"No starvation of {rival}",
        GENERAL,
        f"{beside}: in how many it gets at most {_SHARE[1]:g} % of {rival}'s",
        bound,
        mixed,
        share_of(lambda value: value <= _SHARE[1]),
        "%",
    )
    yield CriterionQuestion(
        f"No starvation by {rival}",
        GENERAL,
        f"{beside}: in how many it gets at least {_SHARE[0]:g} % of {rival}'s",
        bound,
        mixed,
        share_of(lambda value: value >= _SHARE[0]),
        "%",
    )
    if rival not in ("reno", "cubic", bed.reference):
        return
    yield from _comparisons(bed, rival, networks, mixed, beside)


def _comparisons(
    bed: ControlBed,
    rival: str,
    networks: Sequence[EvaluatedNetwork],
    mixed: tuple[SuiteTrial, ...],
    beside: str,
) -> Iterator[CriterionQuestion]:
    """Yields comparisons with CUBIC in its place, as Ware et al. compare harm with that of the status quo."""
    theirs = long_flows("rival", rival)
    reference = tuple(bed.trial(network, bed.place(bed.reference) | theirs) for network in networks)
    alone = tuple(bed.trial(network, theirs) for network in networks)
    count = len(networks)

    def difference(metric: str) -> Callable[[Sequence[SeedReadings]], float]:
        def value(reads: Sequence[SeedReadings]) -> float:
            ours, theirs, solo = reads[:count], reads[count : 2 * count], reads[2 * count :]
            return _mean(
                [
                    _harm(metric, c, a) - _harm(metric, c, b)
                    for a, b, c in zip(ours, theirs, solo, strict=True)
                ]
            )

        return value

    trials = (*mixed, *reference, *alone)
    for metric, words, margin in (
        ("goodput", "rate", 5.0),
        ("path_delay_p95", "delay (p95)", 5.0),
        ("loss", "loss", 10.0),
    ):
        yield CriterionQuestion(
            f"Harm to {rival}: {words}",
            GENERAL,
            f"{beside}, less the harm that {bed.reference} does in its place",
            SameAs(margin, "less", f"{bed.reference} in its place"),
            trials,
            difference(metric),
            "points",
        )

    def shares(reads: Sequence[SeedReadings]) -> float:
        pairs = zip(reads[:count], reads[count : 2 * count], strict=True)
        return _mean([a.mean("max_min_share", "rival") - b.mean("max_min_share", "rival") for a, b in pairs])

    yield CriterionQuestion(
        f"Max-min share of {rival}",
        GENERAL,
        f"{beside}, less its share beside {bed.reference}",
        SameAs(5.0, "more", f"{bed.reference} in its place"),
        trials[: 2 * count],
        shares,
        "points",
    )


def axis_questions(bed: ControlBed, rival: str, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Yields the worst share along each axis, all else as at the centre."""
    bound = ValueEnds(low=_SHARE[0])
    for axis in AXES:
        if quick and axis != "queue discipline":
            continue
        section = "RFC 9743 section 7.1" if axis == "queue discipline" else "RFC 9743 section 6.1"
        networks = along(axis)[-1:] if quick else along(axis)
        trials = tuple(bed.trial(network, bed.mine() | long_flows("rival", rival)) for network in networks)
        yield CriterionQuestion(
            f"Share beside {rival} by {axis}",
            section,
            f"{_ends(axis, networks)}; the smaller goodput over the larger",
            bound,
            trials,
            worst,
            "%",
        )
    if quick:
        return
    counted = tuple(
        bed.trial(replace(CENTRE, seconds=16.0), bed.mine(count) | long_flows("rival", rival, count))
        for count in _COUNTS
    )
    yield CriterionQuestion(
        f"Share beside {rival} by number of flows",
        "RFC 9743 section 6.1",
        f"{CENTRE.words()}; 1, 2, 4, 8 and 16 of each; the smaller mean goodput over the larger",
        bound,
        counted,
        worst,
        "%",
    )


def _ends(axis: str, networks: Sequence[EvaluatedNetwork]) -> str:
    if len(networks) == 1:
        return networks[0].words()
    if axis == "queue discipline":
        return f"{CENTRE.words()}, CoDel, PIE, FQ-CoDel and DualPI2, the worst"
    ends = sorted(networks, key=lambda one: (one.rate_bps, one.rtt_s, one.buffer_bdp))
    return f"{len(networks)} conditions from {ends[0].words()} to {ends[-1].words()}, the worst"
