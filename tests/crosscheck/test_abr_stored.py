"""Real trials of an earlier run, against which sim is held again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import EmuSettings
from streamgauge.crosscheck import ABR
from streamgauge.crosscheck.stored import measured_before, real_trials
from streamgauge.crosscheck.trials import Bench
from streamgauge.errors import ScenarioError

STORED = Path(__file__).parent / "fidelity-abr.json"


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def test_each_case_has_the_trials_that_were_measured(document: dict[str, Any]) -> None:
    real = real_trials(ABR, [document])
    assert set(real) == {case["id"] for case in document["cases"]}
    for case in document["cases"]:
        assert real[case["id"]].quantities == case["quantities"]["emu"]
    # Of runs before the stored one the page says which cases they had.
    assert measured_before(real, list(real)) == document["real_of"]


def test_the_trials_of_a_case_count_together_and_those_of_one_run_once(document: dict[str, Any]) -> None:
    name = "shaka/2s-square"
    (case,) = [case for case in document["cases"] if case["id"] == name]
    values = case["quantities"]["emu"]
    more = case | {"quantities": {"emu": values[:2]}}
    again = document | {"cases": [more], "commit": "0123", "real_of": []}
    real = real_trials(ABR, [document, again, again, document])
    assert real[name].quantities == [*values, *values[:2]] and len(real) == len(document["cases"])
    (before,) = measured_before(real_trials(ABR, [document]), [name])
    assert [run["commit"] for run in measured_before(real, [name])] == [before["commit"], "0123"]
    assert len(real["hlsjs/2s-trace"].taken) == 8


def test_no_real_trial_runs_where_there_are_some(document: dict[str, Any], tmp_path: Path) -> None:
    real = real_trials(ABR, [document])
    (case,) = [case for case in ABR.cases(False) if case.id == "shaka/2s-constant"]
    bench = Bench(ABR, tmp_path, EmuSettings(), real=real)
    assert bench.run([case])[case.id][1] is real[case.id]
    assert list(tmp_path.rglob("mode=sim")) and not list(tmp_path.rglob("mode=emu"))


def test_what_cannot_be_compared_is_refused(document: dict[str, Any]) -> None:
    document["cases"][0]["conditions"]["rtt"] = "1 ms"
    with pytest.raises(ScenarioError, match="has other conditions by now"):
        real_trials(ABR, [document])
    with pytest.raises(ScenarioError, match="joined by --also"):
        real_trials(ABR, [document | {"virtual_machine": {"qemu": ["7"]}}])
