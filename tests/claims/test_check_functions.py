"""The table of the language of checks: the parser accepts each example, and no other number of arguments."""

from __future__ import annotations

import pytest
from streamgauge.claims import Expression, ExpressionError, parse, parse_value
from streamgauge.claims.functions import DESCRIBED, FORMS, MANY, Function
from streamgauge.claims.typing import OF_TRIALS


def statement(example: str) -> Expression:
    """Returns an example as a statement; one that is a value is compared with itself."""
    try:
        return parse(example)
    except ExpressionError:
        return parse(f"{example} <= {example}")


@pytest.mark.parametrize("example", [text for one in (*FORMS, *DESCRIBED) for text in one.examples])
def test_every_example_is_in_the_language(example: str) -> None:
    assert str(statement(example))


@pytest.mark.parametrize("one", DESCRIBED, ids=lambda one: one.name)
def test_each_function_shows_itself_and_its_kind(one: Function) -> None:
    assert all(f"{one.name}(" in example for example in one.examples)
    assert (one.over == "trials") == (one.name in OF_TRIALS or one.name == "share")
    over_time = one.name in ("peak", "count", "mean", "min", "max", "median", "sd")
    assert ("samples" in one.over) == over_time


@pytest.mark.parametrize("one", [one for one in DESCRIBED if one.over == "values"], ids=lambda one: one.name)
def test_one_argument_too_few_or_too_many_is_refused(one: Function) -> None:
    for count in (one.least - 1, one.most + 1):
        if 0 < count <= MANY:
            with pytest.raises(ExpressionError, match="argument"):
                parse_value(f"{one.name}({', '.join(['loss.a'] * count)})")
