"""docs/notebook.md as printed: its cells run in order, and show what it says that they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from notebook_page import PAGE, cells, inside, run
from test_charts import rows_of

_RULES = str.maketrans("", "", "│┌─┐└┘├┤╞╡═╪┬┴┼┆")


def words(text: str) -> list[str]:
    """Without the rules of tables, whose widths are of no matter."""
    return text.translate(_RULES).split()


def same(shown: str, said: str) -> bool:
    """The same words, and numbers to the last digits but one."""
    try:
        return shown == said or float(shown) == pytest.approx(float(said), rel=1e-3)
    except ValueError:
        return False


def test_the_page_as_printed(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    found = cells(PAGE.read_text(encoding="utf-8"))
    assert len(found) > 15 and sum(cell.shown is not None for cell in found) > 10
    with inside(tmp_path):
        for cell in found:
            said, value = run(cell.source, names)
            if cell.shown is not None:
                shown, ours = words(cell.shown), words(said)
                differ = [(a, b) for a, b in zip(shown, ours, strict=False) if not same(a, b)]
                assert not differ and len(shown) == len(ours), f"{cell.source}\n{said}"
            elif value is not None and hasattr(value, "to_dict"):
                assert len(rows_of(value))
        assert (tmp_path / "rates.svg").stat().st_size and (tmp_path / "report.html").stat().st_size


def test_every_figure_of_the_table_is_there() -> None:
    from streamgauge.notebook.plots import Plots

    named = set(re.findall(r"`plot\.(\w+)\(", PAGE.read_text(encoding="utf-8")))
    assert named == {name for name in vars(Plots) if not name.startswith("_")}
