"""RFC 8867's cases for controllers of media: its expectations, in figures of ours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from streamgauge.checks.values import leaves
from streamgauge.claims.expression import parse_value
from streamgauge.evaluate.question import AuthorWords, CriterionQuestion, SuiteTrial, ValueEnds
from streamgauge.evaluate.shipped import unit_of, value_by
from streamgauge.evaluate.trials import ControlBed
from streamgauge.scenario import Scenario, load

__all__ = ["media_control_questions", "media_controls"]

_KEY: Final = "controller"
_ANY: Final = "gcc"
"""The scenarios' original control; its name is replaced."""


@dataclass(frozen=True)
class _Expected:
    """A row: a case, and a value of it with its ends, in the unit that it is shown in."""

    case: str
    title: str
    value: str
    low: float | None = None
    high: float | None = None


_JAIN: Final = (
    "jain(mean(receiver_rate.video, {0}), mean(receiver_rate.video2, {0}), mean(receiver_rate.video3, {0}))"
)
_EXPECTED: Final = (
    _Expected("5.1", "Uses a capacity of 1 Mbit/s", "mean(receiver_rate.video, 20 s to 40 s)", low=0.6),
    _Expected("5.1", "Follows a fall to 0.6 Mbit/s", "mean(receiver_rate.video, 65 s to 80 s)", low=0.3),
    _Expected("5.1", "Keeps the queue short", "path_delay_p95.video", high=250.0),
    _Expected(
        "5.2",
        "Shares a changing capacity",
        "jain(mean(receiver_rate.video, 80 s to 100 s), mean(receiver_rate.video2, 80 s to 100 s))",
        low=0.9,
    ),
    _Expected("5.3", "Bears congested reports", "mean(receiver_rate.video, 45 s to 60 s)", low=0.25),
    _Expected("5.4", "Shares with its own kind", _JAIN.format("80 s to 120 s"), low=0.9),
    _Expected(
        "5.6",
        "Neither starves a TCP nor is starved",
        "mean(receiver_rate.video, 40 s to 120 s) / mean(receiver_rate.tcp, 40 s to 120 s)",
        low=1 / 3,
        high=3.0,
    ),
)


@cache
def _case(name: str) -> Scenario:
    (found,) = load(f"rfc8867/{name}-{_ANY}", mutants=False)
    return found


def media_controls() -> Sequence[str]:
    """Returns the controllers of media that the cases' system has."""
    entry = _case("5.1").flows["video"].registered
    assert entry is not None
    kind = entry.parameters[_KEY].kind
    return [str(word) for word in kind] if isinstance(kind, tuple) else []


def media_control_questions(bed: ControlBed) -> Iterator[CriterionQuestion]:
    """Rows of sections 5.1 to 5.6; of a congestion control of TCP, that the cases are not for it."""
    if bed.control not in media_controls():
        yield CriterionQuestion(
            "Media controller",
            "RFC 8867 section 5",
            f"not run: {bed.control} is no media controller; there are {', '.join(media_controls())}",
            AuthorWords("evaluate a media controller by these cases"),
        )
        return
    for one in _EXPECTED:
        term = parse_value(one.value)
        unit, factor = unit_of(term)
        trial = _with_control(bed, one.case, [str(leaf) for _, leaf in leaves(term)])
        yield CriterionQuestion(
            one.title,
            f"RFC 8867 section {one.case}",
            f"rfc8867/{one.case}; {one.value}",
            ValueEnds(low=one.low, high=one.high),
            (trial,),
            value_by(term, factor),
            unit,
        )


def _with_control(bed: ControlBed, case: str, readings: Sequence[str]) -> SuiteTrial:
    data: dict[str, Any] = _case(case).normalised()
    for key in ("checks", "assumed", "figures", "source", "id"):
        data.pop(key, None)
    for flow in data["flows"].values():
        if flow.get("system") == data["flows"]["video"]["system"]:
            flow["parameters"][_KEY] = bed.control
    digest = hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=8).hexdigest()
    made = Scenario.model_validate({"id": f"evaluate/{digest}", **data})
    return SuiteTrial(made, tuple(readings), True, 60_000.0)
