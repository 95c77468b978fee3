"""RFC 9331's requirements on an L4S sender, as far as the network sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from streamgauge.evaluate.beside import ratio
from streamgauge.evaluate.network import CENTRE, EvaluatedNetwork
from streamgauge.evaluate.question import AuthorWords, CriterionQuestion, SeedReadings, ValueEnds
from streamgauge.evaluate.trials import MINE, ControlBed, long_flows
from streamgauge.systems.tcp import MARKS

__all__ = ["l4s_questions"]

_NET: Final = replace(CENTRE, rate_bps=40e6, rtt_s=0.02, queue="dualpi2", seconds=20.0)
_MARKED: Final = "marked_packets.mine1"
_SRTT: Final = "srtt.mine1"


def l4s_questions(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Rows of section 4 and of RFC 9332; of a control that counts no marks, why there are none."""
    if bed.mode == "emu" or MARKS.get(bed.control, "either") == "echo":
        why = "Linux here sends no ECT(1)" if bed.mode == "emu" else f"{bed.control} counts no marks"
        yield CriterionQuestion(
            "L4S",
            "RFC 9331 section 4",
            f"not run: {why}, which L4S requires",
            AuthorWords("give it feedback of each mark"),
        )
        return
    mine = bed.mine(ecn="l4s")
    yield from _scalable(bed, mine, quick=quick)
    yield from _beside(bed, mine, quick=quick)
    yield from _others(bed, mine, quick=quick)
    yield CriterionQuestion(
        "Bleached ECN",
        "RFC 9331 section 4.2",
        "not run: no path here washes ECN",
        AuthorWords("show that it stops"),
    )


def _per_round(network: EvaluatedNetwork, read: SeedReadings) -> float:
    begin, end = network.measured_s
    return read(_MARKED) * read(_SRTT) / (end - begin)


def _scalable(bed: ControlBed, mine: dict[str, Any], *, quick: bool) -> Iterator[CriterionQuestion]:
    source = "RFC 9331 section 4.3"
    rates = (10e6, 40e6, 80e6)
    networks = [replace(_NET, rate_bps=rate, seconds=30.0, begin_s=15.0) for rate in rates]
    trials = tuple(bed.trial(network, mine, read=[_MARKED, _SRTT]) for network in networks)
    middle = networks[1]
    yield CriterionQuestion(
        "Marks per round trip",
        source,
        f"{middle.words()}; one flow of it alone",
        ValueEnds(low=0.5, high=6.0),
        (trials[1],),
        lambda reads: _per_round(middle, reads[0]),
        "marks",
    )
    if quick:
        return

    def change(reads: Sequence[SeedReadings]) -> float:
        first, _, last = (_per_round(network, read) for network, read in zip(networks, reads, strict=True))
        return last / first if first > 0 else math.nan

    yield CriterionQuestion(
        "Marks per round trip at 8 times the rate",
        source,
        "10 and 80 Mbit/s, 20 ms, dualpi2; their ratio",
        ValueEnds(low=0.5, high=2.0),
        trials,
        change,
        "times",
    )


def _beside(bed: ControlBed, mine: dict[str, Any], *, quick: bool) -> Iterator[CriterionQuestion]:
    rival = long_flows("rival", "cubic")
    yield CriterionQuestion(
        "Classic flow in the other queue",
        "RFC 9332 section 2.1",
        f"{_NET.words()}; beside one CUBIC over an equal path",
        ValueEnds(low=50.0, high=300.0),
        (bed.trial(_NET, mine | rival),),
        lambda reads: ratio(reads[0]),
        "%",
    )
    classic = replace(_NET, queue="codel 1000 packets ecn on")
    marked = long_flows("rival", "cubic", ecn="classic")
    yield CriterionQuestion(
        "Falls back at a classic ECN queue",
        "RFC 9331 section 4.3",
        f"{classic.words()}; beside one CUBIC with classic ECN",
        ValueEnds(low=25.0, high=400.0),
        (bed.trial(classic, mine | marked),),
        lambda reads: ratio(reads[0]),
        "%",
    )
    if quick:
        return
    tail = replace(_NET, queue="droptail")
    yield CriterionQuestion(
        "Answers losses as Reno does",
        "RFC 9331 section 4.3",
        f"{tail.words()}; beside one Reno, no marks",
        ValueEnds(low=25.0, high=400.0),
        (bed.trial(tail, mine | long_flows("rival", "reno")),),
        lambda reads: ratio(reads[0]),
        "%",
    )


def _others(bed: ControlBed, mine: dict[str, Any], *, quick: bool) -> Iterator[CriterionQuestion]:
    source = "RFC 9331 section 4.3"
    yield CriterionQuestion(
        "Queue of L4S packets",
        "RFC 9330 section 1",
        f"{_NET.words()}; p95 of queueing delay of one flow of it",
        ValueEnds(high=2.0),
        (bed.trial(_NET, mine),),
        lambda reads: 1e3 * (reads[0]("path_delay_p95.mine1") - _NET.rtt_s / 2),
        "ms",
    )
    if quick:
        return
    far = {"delay": {"constant": "2500 us", "flows": {"mine2": "7500 us"}}}
    apart = replace(_NET, down=far, up={"delay": "2500 us"})
    two = bed.mine(2, ecn="l4s")
    yield CriterionQuestion(
        "Independence of short round trips",
        source,
        "40 Mbit/s, dualpi2; two of it over 5 and 12.5 ms; the nearer's goodput over the farther's",
        ValueEnds(high=2.0),
        (bed.trial(apart, two),),
        lambda reads: reads[0]("goodput.mine1") / reads[0]("goodput.mine2"),
        "times",
    )
    reordered = replace(_NET, down={"reorder": {"probability": "5 %", "extra": "3 ms"}})
    yield CriterionQuestion(
        "Finds losses by time",
        source,
        f"{_NET.words()}; 5 % of packets come 3 ms late; goodput over that in order",
        ValueEnds(low=90.0),
        (bed.trial(reordered, mine), bed.trial(_NET, mine)),
        lambda reads: 100 * reads[0].total("goodput", MINE) / reads[1].total("goodput", MINE),
        "%",
    )
    first = "max(queue_delay.mine1)"
    yield CriterionQuestion(
        "Bursts",
        source,
        f"{_NET.words()}; the longest wait in a sample of 100 ms after start-up",
        ValueEnds(high=5.0),
        (bed.trial(_NET, mine, read=[first], sample="100 ms"),),
        lambda reads: 1e3 * reads[0](first),
        "ms",
    )
