"""A bed without a paper: a link whose rate and delay are unknown, and claims that a known truth makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.checks import CheckResult
from streamgauge.infer.blocks import blocks_of, load_split
from streamgauge.infer.inferring import Question, SearchSize
from streamgauge.infer.misses import claimed_checks
from streamgauge.infer.unknowns import load_unknowns
from streamgauge.paper import Paper, outcomes_of
from streamgauge.paper.published import NumberedClaims
from streamgauge.scenario import from_text

PAPER = Paper("toy", "A toy", NumberedClaims("T", 8), (), (), ())
ASKED = SearchSize(points=24, confirm=3, finals=2)
TRUTH = {"rate": "500 kbit/s", "delay": "40 ms"}
SCENARIOS = """
id: toy/link
title: A constant rate on a link
question: How much arrives?
path: {down: {rate: 2 Mbit/s, queue: droptail 10 packets}, up: {}}
flows:
  cross: {role: subject, traffic: cbr, parameters: {rate: 50 packets/s, size: 972 B}}
  ping: {role: rival, traffic: ping}
until: {time: 10 s}
repetitions: {sim: 3}
variants:
  low:
    checks:
      T-1: {title: a, that: loss.cross <= 5 %, origin: predicted, breaks: &any {path.down.rate: 100 kbit/s}}
      T-2: {title: b, that: mean(receiver_rate.cross) == 400 kbit/s +- 8 %, origin: predicted, breaks: *any}
      T-3: {title: c, that: mean(rtt.ping) == 50 ms +- 60 %, origin: predicted, breaks: *any}
  high:
    flows.cross.parameters.rate: 100 packets/s
    checks:
      T-4: {title: d, that: loss.cross == 37 % +- 6 pt, origin: predicted, breaks: *any}
      T-5: {title: e, that: mean(receiver_rate.cross) == 500 kbit/s +- 8 %, origin: predicted, breaks: *any}
      T-6: {title: f, that: mean(rtt.ping) == 200 ms +- 30 %, origin: predicted, breaks: *any}
  more:
    flows.cross.parameters.rate: 200 packets/s
    checks:
      T-7: {title: g, that: loss.cross == 69 % +- 6 pt, origin: predicted, breaks: *any}
      T-8: {title: h, that: loss.cross > loss.cross of toy/link-high, origin: predicted, breaks: *any}
"""
UNKNOWNS = """
unknowns:
  rate:
    what: the rate of the link
    at: {"toy/*": path.down.rate}
    source: 2 Mbit/s
    try: [1 Mbit/s, 500 kbit/s, 250 kbit/s]
    why: not stated
  delay:
    what: the delay of the link
    at: {"toy/*": path.down.delay}
    source: {label: none, set: null}
    try: [10 ms, 40 ms, 150 ms]
    why: not stated
  idle:
    what: an interval of TCP, which no flow has
    at: {"toy/*": measure.tcp_sample}
    source: 100 ms
    try: [200 ms]
    why: not stated
"""


def toy(folder: Path, *, seed: int = 2) -> Question:
    """The question: which rate and delay are behind the claims."""
    scenarios = tuple(from_text(SCENARIOS, file="toy.yaml"))
    unknowns, split = folder / "unknowns.yaml", folder / "split.yaml"
    unknowns.write_text(UNKNOWNS, encoding="utf-8")
    split.write_text(
        f"seed: {seed}\nblocks: []\nhalves:\n  A: [T-1, T-4, T-7, T-8]\n  B: [T-2, T-3, T-5, T-6]\n"
    )

    def verdicts(checks: Sequence[CheckResult]) -> dict[str, str]:
        (outcome,) = outcomes_of([PAPER], checks, None, {})
        return {claim.id: claim.verdict for claim in outcome.claims if claim.checks}

    return Question(
        name="toy",
        scenarios=scenarios,
        judged=frozenset(one.id for one in scenarios),
        checks=claimed_checks(PAPER, scenarios),
        unknowns=load_unknowns(unknowns, scenarios),
        split=load_split(split, blocks_of(PAPER, scenarios)),
        verdicts=verdicts,
    )
