"""Numbers of the documentation agree with the stored run, and the stored run with what a run measures."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge._native import MODEL_VERSION
from streamgauge.campaign import run
from streamgauge.scenario import find
from streamgauge.scenario.paper_readings import readings_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Any:
    path = ROOT / "scripts" / "paper-figures.py"
    spec = importlib.util.spec_from_file_location("paper_figures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored(script: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(script.STORED.read_text(encoding="utf-8"))
    return found


def test_the_page_has_the_stored_numbers(script: Any, stored: dict[str, Any]) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert page.count("<!-- figures: ") == len(script.BLOCKS) == page.count("<!-- end of figures -->")
    assert script.filled(page, stored) == page, "run python scripts/paper-figures.py"


def test_another_number_is_noticed(script: Any, stored: dict[str, Any]) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    changed = json.loads(json.dumps(stored))
    changed["hessler"]["hessler/ftp-heavy"]["sources"] += 1
    assert script.filled(page, changed) != page


def test_every_claim_is_counted_once_under_each_reading(stored: dict[str, Any]) -> None:
    papers = stored["claims"]["papers"]
    assert sum(one["claims"] for one in papers) == 97
    for one in papers:
        assert all(sum(counts.values()) == one["claims"] for counts in one["readings"].values())
        assert set(one["readings"]) <= set(readings_of(one["paper"]).by_name)


def test_a_run_measures_what_is_stored(stored: dict[str, Any], tmp_path: Path) -> None:
    if stored["model"] != MODEL_VERSION:
        pytest.skip(
            f"stored by model {stored['model']}: scripts/paper-figures.py stores a run of {MODEL_VERSION}"
        )
    for id_ in ("hessler/ftp-heavy", "hessler/qt-medium"):
        scenarios = [one.model_copy(update={"checks": {}}) for one in find([id_], mutants=False)]
        result = run(scenarios, {id_: ["sim"]}, tmp_path, keep="metrics")
        flow = id_.partition("/")[2].partition("-")[0]
        measured = [metrics for outcome in result.outcomes if (metrics := outcome.metrics) is not None]
        losses = [metrics.flow_json(flow)["loss_percent"] for metrics in measured]
        assert sum(losses) / len(losses) == pytest.approx(stored["hessler"][id_]["sources"], abs=0.006)
