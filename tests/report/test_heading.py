"""The heading of the first screen: the part of the verdict that is shown large."""

from __future__ import annotations

import pytest
from streamgauge.report.first import AnsweredQuestion


@pytest.mark.parametrize(
    ("verdict", "head", "rest"),
    [
        (
            "The path dropped 3.1 %, most of it at a queue that was not full. Confidence: high.",
            "The path dropped 3.1 %, most of it at a queue that was not full.",
            "Confidence: high.",
        ),
        ("BBR is better in delay: 20 ms less.", "BBR is better in delay.", "20 ms less."),
    ],
)
def test_a_heading_ends_with_its_sentence(verdict: str, head: str, rest: str) -> None:
    block = AnsweredQuestion("", verdict, (), (), None, (), (), "", "")
    assert (block.head, block.rest) == (head, rest)
