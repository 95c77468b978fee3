"""Special cases of RFC 9743: queues that manage themselves, paths that change, media beside it, words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from streamgauge.evaluate.network import CENTRE, EvaluatedNetwork
from streamgauge.evaluate.question import (
    AuthorWords,
    CriterionQuestion,
    SameAs,
    SeedReadings,
    Value,
    ValueEnds,
)
from streamgauge.evaluate.trials import MINE, ControlBed, flow_of
from streamgauge.metrics.friendly import tfrc_rate
from streamgauge.systems.tcp import MARKS

__all__ = ["media_questions", "special_questions", "word_questions"]

_SLOW: Final = replace(CENTRE, rate_bps=20e6, seconds=30.0)


def _cited(title: str) -> str:
    return f'RFC 9743, "{title}"'


def _steps(*steps: tuple[float, str], key: str) -> dict[str, Any]:
    return {"steps": [{"at": f"{at:g} s", key: value} for at, value in steps]}


def special_questions(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Yields each kind of path by one condition or more; goodput is compared with CUBIC's on the same
    path."""
    for criterion, source, words, network in _paths():
        if quick and not words.startswith("*"):
            continue
        yield _use(bed, criterion, source, network, words.lstrip("*"))
    yield from _queues(bed, quick=quick)
    yield _breaker(bed)
    yield from _changes(bed, quick=quick)


def _paths() -> Iterator[tuple[str, str, str, EvaluatedNetwork]]:
    """Yields criterion, source, special feature, network; a star marks the one of a quick look."""
    wireless, varying = "RFC 9743 section 6.4", _cited("Paths with Varying Delay")
    half = f"{round(_SLOW.rtt_s * 500)} ms"
    yield "Wireless paths", wireless, "*1 % random loss", replace(_SLOW, down={"loss": "1 %"})
    bursts = {"gilbert": {"good": "500 packets", "bad": "5 packets"}}
    yield "Wireless paths", wireless, "losses in bursts of 5", replace(_SLOW, down={"loss": bursts})
    for trace in ("lte-driving", "wifi-lossy"):
        network = replace(_SLOW, rate_bps=5e6, buffer_bdp=8.0, down={"rate": {"trace": trace}})
        yield "Wireless paths", wireless, f"rate by the trace {trace}", network
    jitter = {"constant": half, "jitter": {"normal": "5 ms"}}
    yield "Varying delay", varying, "*jitter of 5 ms", replace(_SLOW, down={"delay": jitter})
    steps = _steps((0, "10 ms"), (12, "100 ms"), key="delay")
    long = replace(_SLOW, down={"delay": steps}, up={"delay": steps}, begin_s=13.0)
    yield "Varying delay", varying, "the round trip changes from 20 to 200 ms at 12 s", long
    high = _cited("Paths with High Delay")
    for rtt in (0.6, 0.3):
        network = replace(CENTRE, rate_bps=20e6, rtt_s=rtt, seconds=45.0, begin_s=20.0)
        yield "High delay", high, f"{'*' if rtt == 0.6 else ''}round trip of {1e3 * rtt:g} ms", network
    misbehaving = _cited("Misbehaving Nodes")
    yield (
        "Lost acknowledgements",
        misbehaving,
        "*20 % of acknowledgements are lost",
        replace(_SLOW, up={"loss": "20 %"}),
    )
    thin = {"rate": "150 kbit/s", "queue": "droptail 10 kB"}
    yield (
        "Thinned acknowledgements",
        misbehaving,
        "acknowledgements congest 150 kbit/s",
        replace(_SLOW, up=thin),
    )
    bunched = {
        "rate": {"square": {"first": "0 bit/s", "second": "100 Mbit/s", "period": "30 ms"}},
        "queue": "droptail 1000 packets",
    }
    yield (
        "Bunched acknowledgements",
        misbehaving,
        "acknowledgements pass for 15 of each 30 ms",
        replace(_SLOW, up=bunched),
    )
    reorder = {"reorder": {"probability": "2 %", "extra": "15 ms"}}
    yield (
        "Reordering",
        _cited("Extreme Packet Reordering"),
        "*2 % of packets come 15 ms late",
        replace(_SLOW, down=reorder),
    )
    outage = _steps((0, "20 Mbit/s"), (12, "0 bit/s"), (15, "20 Mbit/s"), key="rate")
    network = replace(_SLOW, down={"rate": outage}, begin_s=15.0, seconds=27.0)
    yield "Transient events", _cited("Transient Events"), "*an outage from 12 to 15 s", network


def _use_of(network: EvaluatedNetwork) -> Value:
    return lambda reads: 100 * reads[0].total("goodput", MINE) / network.rate_bps


def _queue_ms(network: EvaluatedNetwork) -> Value:
    return lambda reads: 1e3 * (reads[0].mean("path_delay_p95", MINE) - network.rtt_s / 2)


def _goodput_over(network: EvaluatedNetwork) -> Callable[[Sequence[SeedReadings]], float]:
    def value(reads: Sequence[SeedReadings]) -> float:
        ours, theirs = (read("goodput.mine1") for read in reads)
        return 100 * (ours - theirs) / theirs

    return value


def _use(
    bed: ControlBed, criterion: str, source: str, network: EvaluatedNetwork, words: str
) -> CriterionQuestion:
    trials = (bed.trial(network, bed.mine()), bed.trial(network, bed.place(bed.reference)))
    return CriterionQuestion(
        criterion,
        source,
        f"{network.words()}; {words}; goodput of one flow alone less {bed.reference}'s",
        SameAs(10.0, "more", f"{bed.reference} in its place"),
        trials,
        _goodput_over(network),
        "%",
    )


def _queues(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    source = _cited("Active Queue Management")
    for queue in ("fq_codel",) if quick else ("codel", "pie", "fq_codel", "dualpi2"):
        network = replace(_SLOW, queue=queue)
        trials = (bed.trial(network, bed.mine(2)),)
        yield CriterionQuestion(
            "Use behind AQM",
            source,
            f"{network.words()}; two flows of it; goodput of both over capacity",
            ValueEnds(low=75.0),
            trials,
            _use_of(network),
            "%",
        )
        yield CriterionQuestion(
            "Queue behind AQM",
            source,
            f"{network.words()}; two flows of it; p95 of queueing delay",
            ValueEnds(high=50.0),
            trials,
            _queue_ms(network),
            "ms",
        )
    if quick or bed.mode == "emu":
        return
    marked = replace(_SLOW, queue="codel 1000 packets ecn on")
    ecn = "l4s" if MARKS.get(bed.control) == "counts" else "classic"
    trial = bed.trial(marked, bed.mine(ecn=ecn), read=["mark_rate.mine1"])
    yield CriterionQuestion(
        "Response to marks",
        source,
        f"{marked.words()}; one flow of it with ECN; p95 of queueing delay",
        ValueEnds(high=50.0),
        (trial,),
        _queue_ms(marked),
        "ms",
    )


def _breaker(bed: ControlBed) -> CriterionQuestion:
    network = replace(_SLOW, down={"loss": "2 %"})
    read = ["srtt.mine1", "loss_event_rate.mine1", "throughput.mine1"]

    def value(reads: Sequence[SeedReadings]) -> float:
        rtt, lost, sent = (reads[0](text) for text in read)
        return sent / tfrc_rate(8 * 1448.0, rtt, lost / 100) if lost > 0 else 0.0

    return CriterionQuestion(
        "Circuit breakers",
        _cited("Network Circuit Breakers"),
        f"{network.words()}; 2 % random loss; sending rate over TCP's by RFC 5348's equation",
        ValueEnds(high=10.0, whose="RFC 8083 section 4.3"),
        (bed.trial(network, bed.mine(), read=read),),
        value,
        "times",
    )


def _changes(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    source = _cited("Sudden Changes in the Path")
    fall = replace(
        CENTRE,
        seconds=24.0,
        begin_s=12.0,
        down={"rate": _steps((0, "50 Mbit/s"), (12, "5 Mbit/s"), key="rate")},
    )
    after = "mean(queue_delay.mine1, 12 s to 17 s)"
    trials = tuple(bed.trial(fall, flows, read=[after]) for flows in (bed.mine(), bed.place(bed.reference)))
    yield CriterionQuestion(
        "Rate falls to a tenth",
        source,
        f"{fall.words()}; 5 Mbit/s from 12 s on; mean queueing delay of the next 5 s less {bed.reference}'s",
        SameAs(50.0, "less", f"{bed.reference} in its place"),
        trials,
        lambda reads: 1e3 * (reads[0](after) - reads[1](after)),
        "ms",
    )
    if quick:
        return
    rise = replace(
        CENTRE,
        rate_bps=50e6,
        buffer_bdp=0.5,
        seconds=26.0,
        begin_s=12.0,
        down={"rate": _steps((0, "5 Mbit/s"), (12, "50 Mbit/s"), key="rate")},
    )
    got = "mean(goodput.mine1, 12 s to 22 s)"
    trials = tuple(bed.trial(rise, flows, read=[got]) for flows in (bed.mine(), bed.place(bed.reference)))
    yield CriterionQuestion(
        "Rate rises tenfold",
        source,
        f"{rise.words()}; 5 Mbit/s until 12 s; goodput of the next 10 s over {bed.reference}'s, less 100 %",
        SameAs(10.0, "more", f"{bed.reference} in its place"),
        trials,
        lambda reads: 100 * (reads[0](got) / reads[1](got) - 1),
        "%",
    )


def media_questions(bed: ControlBed, *, quick: bool) -> Iterator[CriterionQuestion]:
    """Yields media by RTP over UDP beside it: the effect on its delay and losses."""
    source = "RFC 9743 section 5.2.2"
    network = replace(CENTRE, rate_bps=4e6, rtt_s=0.05, buffer_bdp=4.0, seconds=30.0)
    media = {"media": flow_of("media")}
    delay, loss = "path_delay_p95.media", "loss.media"
    trials = tuple(
        bed.trial(network, {**flows, **media}, read=[delay, loss])
        for flows in (bed.mine(), bed.place(bed.reference))
    )
    setting = f"{network.words()}; RTP of 550 kbit/s beside one flow of it"
    yield CriterionQuestion(
        "Delay of media",
        source,
        f"{setting}; p95 of the media's one-way delay less that beside {bed.reference}",
        SameAs(10.0, "less", f"{bed.reference} in its place"),
        trials,
        lambda reads: 1e3 * (reads[0](delay) - reads[1](delay)),
        "ms",
    )
    if quick:
        return
    yield CriterionQuestion(
        "Loss of media",
        source,
        f"{setting}; the media's loss less that beside {bed.reference}",
        SameAs(1.0, "less", f"{bed.reference} in its place"),
        trials,
        lambda reads: reads[0](loss) - reads[1](loss),
        "points",
    )


def word_questions() -> Iterator[CriterionQuestion]:
    """Criteria that the author has to write about."""
    for criterion, source, task in (
        (
            "Congestion control principles",
            "RFC 9743 section 5.3.1",
            "explain each departure from RFC 2914 and RFC 7141",
        ),
        (
            "Incremental deployment",
            "RFC 9743 section 5.3.2",
            "state where it may run, and the effects of middleboxes",
        ),
        ("Tunnels", "RFC 9743 section 6.2", "state the fate of its signals in a tunnel"),
        (
            "Constrained nodes",
            _cited("Internet of Things"),
            "state memory, work for each packet and control traffic",
        ),
        (
            "Optimistic receivers",
            _cited("Misbehaving Nodes"),
            "state the gain of a dishonest receiver; every receiver here is honest",
        ),
        (
            "Multipath",
            _cited("Multipath Transport"),
            "state its behaviour on several paths; no flow here has two",
        ),
        ("Data centres", _cited("Data Centers"), "state beside which controls it runs below 2 ms"),
    ):
        yield CriterionQuestion(criterion, source, "not run", AuthorWords(task))
