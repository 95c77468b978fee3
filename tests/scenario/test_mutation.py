"""Mutants by kind: which predicted checks of the papers have one that removes a mechanism."""

from __future__ import annotations

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.scenario import find, from_text, load
from streamgauge.scenario.mutation import kind_of, mutants_of, without_mechanism

PAPERS = ("ccn", "darwin", "hessler", "realvideo", "windows-media")
# Lower it whenever it sinks; it never rises.
MOST_WITHOUT = {"ccn": 0, "darwin": 0, "hessler": 4, "realvideo": 12, "windows-media": 6}


@pytest.mark.parametrize("paper", PAPERS)
def test_no_more_predicted_checks_are_without_a_mechanisms_mutant(paper: str) -> None:
    found = [
        f"{scenario.id} {check}"
        for scenario in find([f"{paper}/*"], mutants=False)
        for check in without_mechanism(scenario)
    ]
    assert len(found) <= MOST_WITHOUT[paper], f"give these a mutant: {', '.join(found)}"
    assert len(found) == MOST_WITHOUT[paper], f"lower MOST_WITHOUT of {paper} to {len(found)}"


@pytest.mark.parametrize(
    ("addresses", "kind"),
    [
        (["flows.real.parameters.heed_loss"], "mechanism"),
        (["flows.r*.parameters.heed_loss"], "mechanism"),
        (["flows.real.system"], "mechanism"),
        (["path.down.rate", "flows.real.parameters.preference"], "mechanism"),
        (["path.down.rate"], "stimulus"),
        (["flows.cross.parameters.rate"], "stimulus"),
        (["flows.cross"], "stimulus"),
        (["flows.real.clip.ladder", "flows.real.start"], "stimulus"),
    ],
)
def test_a_subjects_own_rule_is_a_mechanism_and_all_else_a_stimulus(addresses: list[str], kind: str) -> None:
    (scenario,) = load("hessler/real-medium", mutants=False)
    assert kind_of(scenario, addresses) == kind


def test_a_second_mutant_changes_a_mechanism(base: str) -> None:
    check = "checks: {C: {that: throughput.ftp > 1 kbit/s, origin: predicted, without: {%s}}}\n"
    (scenario,) = from_text(base + check % "flows.ftp.congestion_control: reno")
    assert list(mutants_of(scenario.checks["C"])) == ["without"] and without_mechanism(scenario) == []
    with pytest.raises(ScenarioError, match=r"checks.C.without: changes no parameter, rule or system"):
        from_text(base + check % "path.down.rate: 1 kbit/s")
    with pytest.raises(ScenarioError, match=r"checks\.C\.without.*makes a scenario that cannot run"):
        from_text(base + check % "flows.ftp.traffic: cbr")
