"""Suites of questions by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from streamgauge.evaluate.alone import alone_questions
from streamgauge.evaluate.bbr import bbr_questions
from streamgauge.evaluate.beside import axis_questions, hypercube_questions
from streamgauge.evaluate.l4s import l4s_questions
from streamgauge.evaluate.media import media_control_questions
from streamgauge.evaluate.question import CriterionQuestion
from streamgauge.evaluate.special import (
    media_questions,
    special_questions,
    word_questions,
)
from streamgauge.evaluate.trials import ControlBed

__all__ = ["SUITES", "questions_of"]

Suite = Callable[[ControlBed, Sequence[str], bool], list[CriterionQuestion]]


def _bcp133(bed: ControlBed, against: Sequence[str], quick: bool) -> list[CriterionQuestion]:
    found = list(alone_questions(bed, quick=quick))
    for rival in against:
        found += hypercube_questions(bed, rival, quick=quick)
    for rival in against[:1] if quick else against:
        found += axis_questions(bed, rival, quick=quick)
    found += media_questions(bed, quick=quick)
    found += special_questions(bed, quick=quick)
    return [*found, *word_questions()]


def _bbr(bed: ControlBed, _: Sequence[str], __: bool) -> list[CriterionQuestion]:
    return list(bbr_questions(bed))


def _l4s(bed: ControlBed, _: Sequence[str], quick: bool) -> list[CriterionQuestion]:
    return list(l4s_questions(bed, quick=quick))


def _rfc8867(bed: ControlBed, _: Sequence[str], __: bool) -> list[CriterionQuestion]:
    return list(media_control_questions(bed))


SUITES: Final[Mapping[str, Suite]] = {"bcp133": _bcp133, "bbr": _bbr, "l4s": _l4s, "rfc8867": _rfc8867}
"""Suites by their names in --suite."""


def questions_of(
    suite: str, bed: ControlBed, against: Sequence[str], *, quick: bool
) -> list[CriterionQuestion]:
    """Returns the questions of a suite, or of all in turn."""
    chosen = SUITES if suite == "all" else {suite: SUITES[suite]}
    return [question for one in chosen.values() for question in one(bed, against, quick)]
