"""The test cases of the BBR draft's appendix: those that can be seen from outside, and those that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamgauge.evaluate.question import AuthorWords, CriterionQuestion
from streamgauge.evaluate.shipped import shipped_questions
from streamgauge.evaluate.trials import ControlBed

__all__ = ["bbr_questions"]

_SOURCE: Final = 'draft-ietf-ccwg-bbr, appendix, "{}"'
_HIDDEN: Final = (
    "Exiting STARTUP on Loss When Application-Limited",
    "Exiting PROBE_UP on Loss When Application-Limited",
    "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss",
    "Exiting PROBE_DOWN After Max Time",
    "Entering and Exiting PROBE_RTT During STARTUP",
    "Handling Loss During PROBE_UP After inflight_longterm is Set",
    "Handling Application-Limited Sending During PROBE_REFILL",
)
"""Cases with expectations on states and variables alone."""


def bbr_questions(bed: ControlBed) -> Iterator[CriterionQuestion]:
    """Yields a row for each expectation of ``bbr/*``; the rest are marked as not visible."""
    yield from shipped_questions(bed, "bbr/*", _SOURCE)
    for title in _HIDDEN:
        yield CriterionQuestion(
            title,
            _SOURCE.format(title),
            "not visible: no control here exposes its states",
            AuthorWords("show it by the implementation's own log"),
        )
