"""Numbers that people read are said by `streamgauge.claims.dimension`, with units and without powers of ten:
where words are made nothing is formatted by ``g`` or ``e``, which write them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamgauge

PACKAGE = Path(streamgauge.__file__).parent
ROOMS = ("campaign", "checks", "cli", "emu", "link_command", "scenario")
# Seconds that stand in the code.
CONSTANTS = {"emu/conduct.py", "emu/helper.py", "link_command/running.py"}


def powers_of_ten(source: str) -> Iterator[int]:
    """The lines with a format that may write a number as a power of ten."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            last = node.format_spec.values[-1:]
            if last and isinstance(last[0], ast.Constant) and str(last[0].value)[-1:] in "geGE":
                yield node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_where_words_are_made_no_number_is_a_power_of_ten(room: str) -> None:
    found = {
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in (PACKAGE / room).rglob("*.py")
        if str(file.relative_to(PACKAGE)) not in CONSTANTS
        for line in powers_of_ten(file.read_text(encoding="utf-8"))
    }
    assert found == set(), "use say, say_exactly, show or plain of streamgauge.claims.dimension"


def test_what_would_be_wrong_is_found() -> None:
    assert list(powers_of_ten('f"{x:.3g}"\nf"{x:.{n}g}"\nf"{x:e}"\nf"{x:.1f} {x}"')) == [1, 2, 3]
