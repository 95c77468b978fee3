"""A control by itself: collapse, queues, losses, fairness among its own, short flows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from streamgauge.evaluate.network import CENTRE, EvaluatedNetwork
from streamgauge.evaluate.question import CriterionQuestion, SameAs, SeedReadings, Value, ValueEnds
from streamgauge.evaluate.trials import MINE, ControlBed, flow_of, long_flows
from streamgauge.metrics.fairness import jain

__all__ = ["alone_questions"]

CUBIC: Final = "cubic"
_CUT: Final = 10.0
_SILENT: Final = (15.0, 45.0)


def alone_questions(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Yields the questions of section 5.1 and of short flows beside long ones."""
    yield from _collapse(bed, quick=quick)
    yield from _queues(bed, quick=quick)
    yield from _losses(bed, quick=quick)
    yield from _fairness(bed, quick=quick)
    yield from _short_flows(bed, quick=quick)


def _collapse(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    source = "RFC 9743 section 5.1.1"
    begin, end = _SILENT
    silent = EvaluatedNetwork(
        rate_bps=10e6,
        rtt_s=0.1,
        seconds=end,
        begin_s=begin,
        up={
            "block": {
                "protocol": "tcp",
                "switch": [{"at": "0 s", "to": "off"}, {"at": f"{_CUT:g} s", "to": "on"}],
            }
        },
    )
    sent = "sent_packets.mine1"
    yield CriterionQuestion(
        "Feedback stops",
        source,
        f"{silent.words()}; no acknowledgement from {_CUT:g} s on; packets sent from {begin:g} to {end:g} s",
        ValueEnds(high=16.0),
        (bed.trial(silent, bed.mine(), read=[sent]),),
        lambda reads: reads[0](sent),
        "packets",
    )
    if not quick:
        lossy = EvaluatedNetwork(rate_bps=10e6, rtt_s=0.1, seconds=40.0, down={"loss": "50 %"})
        yield CriterionQuestion(
            "Persistent loss",
            source,
            f"{lossy.words()}; half of all packets are lost; sending rate over capacity",
            ValueEnds(high=10.0),
            (bed.trial(lossy, bed.mine()),),
            lambda reads: 100 * reads[0]("throughput.mine1") / lossy.rate_bps,
            "%",
        )
    crowded = EvaluatedNetwork(rate_bps=2e6, rtt_s=0.1, seconds=30.0)
    flows = bed.mine(16)
    yield CriterionQuestion(
        "Crowded bottleneck",
        source,
        f"{crowded.words()}; 16 flows of it; share of their sent bytes that is lost",
        ValueEnds(high=20.0),
        (bed.trial(crowded, flows),),
        lambda reads: reads[0].mean("loss", MINE),
        "%",
    )


def _queue_s(network: EvaluatedNetwork) -> Callable[[SeedReadings], float]:
    """Returns the 95th percentile of packets' waits, s: delay beyond that of an empty path."""
    empty = network.rtt_s / 2
    return lambda read: max(0.0, read.mean("path_delay_p95", MINE) - empty)


def _queue_more(network: EvaluatedNetwork) -> Value:
    """Returns how much longer it is than the reference's, in round trips."""
    queued = _queue_s(network)
    return lambda reads: (queued(reads[0]) - queued(reads[1])) / network.rtt_s


def _queues(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    source = "RFC 9743 section 5.1.2"
    for buffer in (4.0,) if quick else (0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        network = replace(CENTRE, buffer_bdp=buffer, seconds=20.0 if buffer <= 4 else 30.0)
        trials = (bed.trial(network, bed.mine()), bed.trial(network, bed.place(bed.reference)))
        yield CriterionQuestion(
            "Standing queue",
            source,
            f"{network.words()}; one flow alone; p95 of its queueing less {bed.reference}'s, in round trips",
            SameAs(0.1, "less", f"{bed.reference} in its place"),
            trials,
            _queue_more(network),
            "round trips",
        )
    alone = replace(CENTRE, seconds=20.0)
    yield CriterionQuestion(
        "Use of the link",
        "RFC 9743 section 6.3",
        f"{alone.words()}; one flow alone; goodput over capacity",
        ValueEnds(low=70.0),
        (bed.trial(alone, bed.mine()),),
        lambda reads: 100 * reads[0]("goodput.mine1") / alone.rate_bps,
        "%",
    )


def _losses(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    for count in (4,) if quick else (1, 4, 16):
        network = replace(CENTRE, buffer_bdp=0.5, seconds=16.0)
        yield CriterionQuestion(
            "Losses in a short buffer",
            "RFC 9743 section 5.1.3",
            f"{network.words()}; {count} flow{'s' if count > 1 else ''} of it; packets lost",
            ValueEnds(high=5.0),
            (bed.trial(network, bed.mine(count)),),
            lambda reads: reads[0].mean("loss", MINE),
            "%",
        )


def _fairness(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    source = "RFC 9743 section 5.1.4"
    for count in (4,) if quick else (2, 4, 8, 16):
        network = replace(CENTRE, seconds=30.0)
        yield CriterionQuestion(
            "Fairness among its own",
            source,
            f"{network.words()}; {count} flows of it; Jain's index of goodput",
            ValueEnds(low=0.8),
            (bed.trial(network, bed.mine(count)),),
            _jain,
            "1",
        )
    if quick:
        return
    far = replace(
        CENTRE,
        seconds=30.0,
        down={"delay": {"constant": "10 ms", "flows": {"mine2": "60 ms"}}},
        up={"delay": "10 ms"},
    )
    yield CriterionQuestion(
        "Fairness between round-trip times",
        source,
        f"{CENTRE.words()}; two of it over 20 and 80 ms; the longer path's goodput over the shorter's",
        ValueEnds(low=100 * (20 / 80) ** 2, whose="our bound, Reno's by the square of round-trip times"),
        (bed.trial(far, bed.mine(2)),),
        lambda reads: 100 * reads[0]("goodput.mine2") / reads[0]("goodput.mine1"),
        "%",
    )
    late = replace(CENTRE, seconds=40.0, begin_s=25.0)
    flows: dict[str, Any] = bed.mine(2)
    flows["mine2"] = flows["mine2"] | {"start": "10 s"}
    yield CriterionQuestion(
        "A late flow's share",
        source,
        f"{late.words()}; a second of it begins at 10 s; goodput from 25 s on over half the capacity",
        ValueEnds(low=50.0),
        (bed.trial(late, flows),),
        lambda reads: 200 * reads[0]("goodput.mine2") / late.rate_bps,
        "%",
    )


def _jain(reads: Sequence[SeedReadings]) -> float:
    rates = reads[0].each("goodput", MINE)
    return jain(rates) if rates and np.isfinite(rates).all() else math.nan


def _short_flows(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Yields completion times, with CUBIC in the control's place as the reference."""
    network = replace(CENTRE, rate_bps=20e6, seconds=30.0, begin_s=5.0)
    short = flow_of("short")
    theirs = {"short": {**short, "congestion_control": CUBIC}}
    yield _completion(
        bed,
        "Short flows of CUBIC as cross traffic",
        "RFC 9743 section 5.2.3",
        network,
        "short",
        bed.mine() | theirs,
        bed.place(bed.reference) | theirs,
        "one long flow of it",
    )
    if quick:
        return
    rival = long_flows("rival", CUBIC)
    yield _completion(
        bed,
        "Its short flows beside long CUBIC",
        "RFC 9743 section 5.2.3",
        network,
        "mine",
        {"mine": {**short, "congestion_control": bed.control}} | rival,
        {"mine": {**short, "congestion_control": bed.reference}} | rival,
        "one long CUBIC",
    )
    yield _completion(
        bed,
        "Its short flows among its own",
        "RFC 9743 section 5.1.5",
        network,
        "mine",
        {"mine": {**short, "congestion_control": bed.control}}
        | {"rival1": flow_of("long", congestion_control=bed.control)},
        {"mine": {**short, "congestion_control": bed.reference}} | rival,
        "one long flow of it",
    )
    up = {**short, "congestion_control": CUBIC, "direction": "up"}
    both = replace(network, up={"rate": "20 Mbit/s", "queue": f"droptail {network.queue_bytes} B"})
    yield _completion(
        bed,
        "Short flows of CUBIC the other way",
        "RFC 9743 section 5.2.3",
        both,
        "short",
        bed.mine() | {"short": up},
        bed.place(bed.reference) | {"short": up},
        "one long flow of it the one way",
    )


def _completion(
    bed: ControlBed,
    criterion: str,
    source: str,
    network: EvaluatedNetwork,
    name: str,
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    beside: str,
) -> CriterionQuestion:
    read = f"completion_time.{name}"
    trials = (bed.trial(network, ours, read=[read]), bed.trial(network, theirs, read=[read]))
    return CriterionQuestion(
        criterion,
        source,
        f"{network.words()}; 4 of 60 kB a second beside {beside}; completion time over {bed.reference}'s",
        SameAs(10.0, "less", f"{bed.reference} in its place"),
        trials,
        lambda reads: 100 * (reads[0](read) / reads[1](read) - 1),
        "%",
    )
