"""Several papers at once: each numbered claim once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from streamgauge.campaign import MutantResult
from streamgauge.checks import CheckResult
from streamgauge.paper import by_reading_json, by_reading_text, joined, outcomes_of, papers, stating
from streamgauge.paper.by_reading import PaperByReading, better_words
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


def side_by_side(**by_reading: list[CheckResult]) -> list[PaperByReading]:
    """Darwin's claims under readings; the last is the default."""
    darwin = papers()["darwin"]
    outcomes = {
        name: outcomes_of([darwin], checks, None, {"darwin/a": 3}) for name, checks in by_reading.items()
    }
    return joined(
        [darwin], outcomes, {"darwin": [*by_reading][-1]}, {"darwin": {"DC-1": "pass", "DC-2": "differs"}}
    )


def alone(outcome: Any) -> list[PaperByReading]:
    return [PaperByReading({"sources": outcome}, "sources", {})]


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
    assert found[""].counts() == {"pass": 1, "differs in size": 0, "differs": 1, "inconclusive": 17}


def test_what_holds_far_from_the_printed_number_is_not_as_claimed() -> None:
    far = check("DC-3", differs="differs from the paper (loss: published 5 %, ours 9 %)")
    (outcome,) = outcomes_of([papers()["darwin"]], [far, check("DC-4")], None, {})
    by_id = {claim.id: claim for claim in outcome.claims}
    assert (by_id["DC-3"].verdict, by_id["DC-4"].verdict) == ("differs in size", "pass")
    assert outcome.counts() == {"pass": 1, "differs in size": 1, "differs": 0, "inconclusive": 17}
    text = by_reading_text(alone(outcome), 200)
    row = next(line for line in text.splitlines() if "DC-3" in line)
    assert "≠ in size" in row and "pass" not in row and "further away than" in text
    (plain,) = outcomes_of([papers()["darwin"]], [check("DC-4")], None, {})
    assert "≠" not in by_reading_text(alone(plain), 200)
    # One that differs otherwise too differs.
    assert claims(far, check("DC-3.b", "fail"))["DC-3"].verdict == "differs"


def test_origins_and_mutants_are_printed() -> None:
    found = claims(
        check("DC-2.a", origin="input"),
        check("DC-2.b"),
        mutants=[mutant("DC-2.a", "fail"), mutant("DC-2.b", "pass")],
    )
    two = found["DC-2"]
    assert (two.origins, two.caught, len(two.mutants)) == (["predicted", "input"], 1, 2)
    text = by_reading_text(alone(found[""]), 200)
    assert re.search(r"DC-2 +darwin +– +pass +2 of 2 +predicted, input +1 of 2", text)
    assert text.splitlines()[-1] == (
        "darwin: of 19 claims 1 as claimed, 0 differ in size, 0 differ, 18 undecided; "
        "1 of 2 checks predicted; 1 of 2 mutants caught."
    )
    assert claims(check("DC-2"))["DC-2"].caught is None
    assert "mutants" not in by_reading_text(alone(claims(check("DC-2"))[""]), 200)


def test_the_first_line_counts_claims_and_names_the_better_reading() -> None:
    ones = [check("DC-1"), check("DC-2.a"), check("DC-2.b", "fail"), check("DC-3")]
    more = [check("DC-1"), check("DC-2.a"), check("DC-2.b"), check("DC-3")]
    both = side_by_side(sources=ones, described=more)
    first = "Reading described explains more: 3 of 19 claims are as claimed under it, 2 under sources."
    assert by_reading_text(both).splitlines()[0] == better_words(both) == first
    assert better_words(side_by_side(sources=more, described=ones)).startswith(
        "Reading sources explains more: 3"
    )
    assert better_words(side_by_side(sources=ones, described=ones)).startswith(
        "No reading explains more: 2 of 19"
    )
    assert better_words(side_by_side(sources=ones)) == "2 of 19 claims are as claimed under reading sources."


def test_a_row_has_the_published_number_and_each_reading() -> None:
    published = {"loss": "5 %"}
    both = side_by_side(
        sources=[check("DC-2", "fail", published=published)], described=[check("DC-2", published=published)]
    )
    text = by_reading_text(both, 200)
    assert re.search(r"claim +paper +published +sources +described +checks +origin +held out", text)
    assert re.search(r"DC-2 +darwin +loss 5 % +differs +pass +1 of 1 +predicted +differs ", text)
    assert text.splitlines()[-1].endswith("; held out 1 of 2 pass.")


def test_the_document_has_every_claim_under_each_reading() -> None:
    both = side_by_side(sources=[check("DC-2.a", "fail"), check("DC-1")], described=[check("DC-2.a")])
    document = by_reading_json(both)
    (paper,) = document["papers"]
    assert (paper["default"], paper["claims"], paper["pass"]) == ("described", 19, 1)
    assert paper["readings"]["sources"]["differs"] == 1
    assert [one["id"] for one in document["claims"]] == [f"DC-{n}" for n in range(1, 20)]
    one, two, three = document["claims"][:3]
    assert (two["verdict"], two["whole"], two["held_out"]) == ("pass", True, "differs")
    assert {name: made["verdict"] for name, made in two["readings"].items()} == {
        "sources": "differs",
        "described": "pass",
    }
    assert [each["id"] for each in two["readings"]["sources"]["checks"]] == ["DC-2.a"]
    assert (one["verdict"], one["held_out"], three["held_out"]) == ("inconclusive", "pass", None)
    assert three["checks"] == []


def test_experiments_that_a_paper_never_did_are_counted_apart() -> None:
    ccn = papers()["ccn"]
    checks = [
        check("CC-1", scenario="ccn/loss-1-reno"),
        check("CC-1", "fail", scenario="ccn/tcp-loss-1-reno"),
        check("CC-2", scenario="ccn/tcp-loss-1-reno"),
    ]
    (outcome,) = outcomes_of([ccn], checks, None, {})
    by_id = {claim.id: claim for claim in outcome.claims}
    assert (by_id["CC-1"].verdict, by_id["CC-2"].verdict) == ("pass", "inconclusive")
    assert outcome.words().endswith("1 of 1 checks predicted; beside the paper 1 of 2 checks hold")
    assert outcome.to_json()["beside"] == {"checks": 2, "pass": 1}


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
    (outcome,) = outcomes_of([papers()["darwin"]], [check("DC-1", mode="emu")], None, {"darwin/a": 3})
    made = alone(outcome)
    assert by_reading_text(made, machine=machine).splitlines()[2] == f"19 claims of darwin in {words}"
    (one,) = by_reading_json(made, machine)["claims"][0]["checks"]
    assert (one["mode"], one["machine"]) == ("emu", told)
