"""The examples of docs/scenarios.md work as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text, lower

PAGE = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_example_loads_and_lowers() -> None:
    (scenario,) = from_text(blocks("yaml")[0])
    assert scenario.supported_modes() == ["sim", "emu"]
    assert lower(scenario, "sim", 1)["flows"][1]["start"] >= 10 * 10**9


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (source,) = blocks("python")
    exec(compile(source, "docs/scenarios.md", "exec"), {})
    assert float(capsys.readouterr().out) == pytest.approx(1.87e6, rel=0.05)


def test_the_error_that_is_shown_is_the_error_that_is_given() -> None:
    text = blocks("yaml")[0].replace("2 Mbit/s", "2 Mbps")
    with pytest.raises(ScenarioError) as caught:
        from_text(text, file="my.yaml")
    shown = next(line for line in PAGE.splitlines() if line.startswith("streamgauge: my.yaml:"))
    assert shown == f"streamgauge: {caught.value}"
