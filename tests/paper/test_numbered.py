"""Several papers at once: each numbered claim once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from streamgauge.campaign import MutantResult
from streamgauge.checks import CheckResult
from streamgauge.paper import numbered_json, numbered_text, outcomes_of, papers, stating
from streamgauge.scenario import find

FIVE = ("hessler", "darwin", "realvideo", "windows-media", "ccn")


def check(id_: str, verdict: str = "pass", *, scenario: str = "darwin/a", **more: Any) -> CheckResult:
    plain: dict[str, Any] = {
        "id": id_, "scenario": scenario, "mode": "sim", "verdict": verdict, "why": "so", "that": "a < b",
        "title": f"title of {id_}", "origin": "predicted", "strict": False, "published": {},
        "measured": None, "n": 3, "trials": 3, "invalid": 0,
    }  # fmt: skip
    rest = dict.fromkeys(CheckResult.__dataclass_fields__.keys() - plain.keys())
    return CheckResult(**{**rest, **plain, **more})


def mutant(id_: str, verdict: str) -> MutantResult:
    return MutantResult(id_, "darwin/a", "sim", {"path.down.rate": "1 Mbit/s"}, verdict, "so")


def claims(*checks: CheckResult, mutants: list[MutantResult] | None = None) -> dict[str, Any]:
    (outcome,) = outcomes_of([papers()["darwin"]], checks, mutants, {"darwin/a": 3, "ccn/b": 9})
    return {claim.id: claim for claim in outcome.claims} | {"": outcome}


def test_the_five_papers_state_97_claims_and_each_has_a_check() -> None:
    five = [papers()[name] for name in FIVE]
    names = [name for paper in five if paper.claims for name in paper.claims.names]
    assert len(names) == len(set(names)) == 97
    checked = {
        (scenario.id.partition("/")[0], found[0])
        for scenario in find([f"{name}/*" for name in FIVE], mutants=False)
        for id_ in scenario.checks
        if (found := re.match(r"[A-Z]+-\d+", id_))
    }
    assert checked == {(paper.id, name) for paper in five if paper.claims for name in paper.claims.names}


def test_what_goes_beyond_the_papers_is_left_out() -> None:
    five = [papers()[name] for name in FIVE]
    chosen = {scenario.id for scenario in stating(five, find([f"{name}/*" for name in FIVE], mutants=False))}
    assert {"hessler/qt-medium", "darwin/2qt-const", "realvideo/pilot-lan", "ccn/loss-1-udp"} <= chosen
    assert not {"ccn/viewers-http-cache", "hessler/queue-darwin-router"} & chosen
    assert all(scenario.partition("/")[0] in FIVE for scenario in chosen)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "inconclusive"], "inconclusive"),
        (["pass", "inconclusive", "fail"], "differs"),
        ([], "inconclusive"),
    ],
)
def test_a_claim_is_as_its_worst_check(verdicts: list[str], expected: str) -> None:
    found = claims(*(check(f"DC-6.{i}", verdict) for i, verdict in enumerate(verdicts)))
    assert found["DC-6"].verdict == expected


def test_numbers_are_whole_and_other_papers_are_others() -> None:
    found = claims(check("DC-1"), check("DC-11.loss", "fail"), check("DC-1", "fail", scenario="ccn/b"))
    assert (found["DC-1"].verdict, found["DC-11"].verdict, found["DC-2"].verdict) == (
        "pass", "differs", "inconclusive",
    )  # fmt: skip
    assert len(found["DC-1"].checks) == 1 and found[""].trials == 3
    assert found[""].counts() == {"pass": 1, "differs": 1, "inconclusive": 17}


def test_a_printed_number_that_is_far_away_is_told_where_the_claim_holds() -> None:
    far = check("DC-3", differs="differs from the paper (loss: published 5 %, ours 9 %)")
    (outcome,) = outcomes_of([papers()["darwin"]], [far, check("DC-4")], None, {})
    by_id = {claim.id: claim for claim in outcome.claims}
    assert (by_id["DC-3"].verdict, by_id["DC-3"].numbers_differ, by_id["DC-4"].numbers_differ) == (
        "pass",
        1,
        0,
    )
    text = numbered_text([outcome], 200)
    assert "pass ≠" in text and "further away than" in text
    assert "≠" not in numbered_text([outcomes_of([papers()["darwin"]], [check("DC-4")], None, {})[0]], 200)


def test_origins_and_mutants_are_told() -> None:
    found = claims(
        check("DC-2.a", origin="input"),
        check("DC-2.b"),
        mutants=[mutant("DC-2.a", "fail"), mutant("DC-2.b", "pass")],
    )
    two = found["DC-2"]
    assert (two.origins, two.caught, len(two.mutants)) == (["predicted", "input"], 1, 2)
    outcome = found[""]
    text = numbered_text([outcome], 200)
    assert re.search(r"DC-2 +darwin +pass +2 of 2 +predicted, input +1 of 2", text)
    assert text.splitlines()[-1] == (
        "darwin: of 19 claims 1 as claimed, 0 differ, 18 undecided; "
        "1 of 2 checks predicted; 1 of 2 mutants caught."
    )
    assert claims(check("DC-2"))["DC-2"].caught is None
    assert "mutants" not in numbered_text([claims(check("DC-2"))[""]], 200)


def test_the_document_has_every_claim_with_its_checks() -> None:
    found = claims(check("DC-2.a", "fail"), mutants=[mutant("DC-2.a", "fail")])
    told = numbered_json([found[""]])
    (paper,) = told["papers"]
    assert (paper["paper"], paper["claims"], paper["differs"], paper["mutation_score"]) == (
        "darwin",
        19,
        1,
        1.0,
    )
    assert [one["id"] for one in told["claims"]] == [f"DC-{n}" for n in range(1, 20)]
    two = told["claims"][1]
    assert (two["verdict"], two["mutants"]) == ("differs", {"caught": 1, "of": 1})
    assert [(one["id"], one["verdict"], one["why"]) for one in two["checks"]] == [("DC-2.a", "fail", "so")]
    assert told["claims"][0]["checks"] == []


def test_the_reader_sees_what_differs_first() -> None:
    found = claims(check("DC-7.a"), check("DC-7.b", "fail"))
    assert found["DC-7"].words == "title of DC-7.b (and 1 more)"
    assert claims(replace(check("DC-7.a"), title=None))["DC-7"].words == "a < b"


@pytest.mark.parametrize(
    ("machine", "words", "told"),
    [("", "emu", "host"), ("virtual", "emu (virtual machine)", "virtual"),
     ("virtual-2", "emu (virtual machine at 2)", "virtual:2")],
)  # fmt: skip
def test_where_emulated_trials_ran_is_told(machine: str, words: str, told: str) -> None:
    outcomes = outcomes_of([papers()["darwin"]], [check("DC-1", mode="emu")], None, {"darwin/a": 3})
    assert numbered_text(outcomes, machine=machine).splitlines()[0] == f"19 claims of 1 papers in {words}"
    (one,) = numbered_json(outcomes, machine)["claims"][0]["checks"]
    assert (one["mode"], one["machine"]) == ("emu", told)
