"""docs/sweep.md says what there is; its commands are run by tests/newcomer/test_pages.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamgauge.scenario.over import parse_over
from streamgauge.sweeps import axes_of, points_of, run_points
from streamgauge.sweeps.table import number_columns

PAGE = (Path(__file__).parents[2] / "docs" / "sweep.md").read_text(encoding="utf-8")


def test_the_python_example_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(source, "docs/sweep.md", "exec"), {})
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("10 kB", "50 kB", "goodput", "queue_delay"))


def test_each_form_of_values_is_read() -> None:
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \|$", PAGE.split("## Values")[1].split("##")[0], re.M)
    assert len(rows) == 5
    counts = {written: len(parse_over(f"path.down.queue={written}")) for written, _ in rows}
    assert list(counts.values()) == [3, 3, 5, 5, 2]


def test_each_column_is_told(folder: Path) -> None:
    axes = axes_of(["path.down.rate=1Mbit/s"])
    frame = run_points(points_of(["my.yaml"], axes, mode="sim"), axes, Path("runs"), repeat=1).frame()
    told = set(re.findall(r"`([\w.]+)`", PAGE.split("## The table")[1].split("--json")[0]))
    assert set(frame.columns) <= told
    kinds = ["1 Mbit/s", "1 kB", "1 ms", "1 %", "1 packets", "1 /s", "1 BDP", "1"]
    for kind in kinds:
        (column,) = number_columns([parse_over(f"a.b={kind}")])
        assert column is not None and column.name.removeprefix("a.b") in told
