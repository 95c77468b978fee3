"""Documents of several runs as one: of each case one run's rows, mutants and trials, and no other's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.crosscheck.joined import joined, load_document, machines_apart
from streamgauge.crosscheck.systems import systems_matter
from streamgauge.crosscheck.systems.page import PAGE
from streamgauge.errors import ScenarioError

MATTER = systems_matter()
EVERY = [case.id for case in MATTER.cases(False)]
SCHEMA = "streamgauge.crosscheck-systems/1"
GUESTS = {"qemu": ["7.2"], "image": ["abc"], "instructions_per_s": [1e9]}


def row(case: str, verdict: str = "equivalent", sim: float = 1e5) -> dict[str, Any]:
    return {
        "case": case, "metric": "sent_bps", "words": "sent", "unit": "kbit/s", "factor": 1e-3, "sim": sim,
        "emu": 1e5, "spread": 1e3, "margin": 5e3, "low": -1e3, "high": 1e3, "why": "", "verdict": verdict,
        "coarse": False,
    }  # fmt: skip


def run(valid: dict[str, int], *, sim: float, guest: bool, seen: list[str] | None = None) -> dict[str, Any]:
    """A document with so many valid real trials of each case, in which `seen` reject the one mutant."""
    words = {"rate": "1 Mbit/s", "rtt": "20 ms", "queue": "10 kB", "loss": "none", "beside": "nothing"}
    return {
        "schema": SCHEMA, "verdict": "pass", "quick": False, "reference": "emu", "interrupted": False,
        "rows": [row(name, sim=sim) for name in valid],
        "mutants": [{
            "name": "rtp: late-start", "words": "late", "rejected": bool(seen),
            "cases": {name: [row(name, sim=2 * sim)] if name in (seen or []) else [] for name in valid},
        }],
        "cases": [
            {
                "id": name, "subject": "rtp", "kind": "none", "title": name, "wanted": {"sim": 12, "emu": 3},
                "valid": {"sim": 12, "emu": count}, "invalid": [], "conditions": words,
                "quantities": {"sim": [], "emu": [{"sent_bps": sim + place} for place in range(count)]},
            }
            for name, count in valid.items()
        ],
        "skipped": [], "not_asked": [name for name in EVERY if name not in valid],
        "date": "2026-11-27T00:00:00Z", "duration_s": 1.0, "load_average": [0.0, 0.0], "cpus": 2, "cpu": "a",
        "kernel": "6.1.0" if guest else "6.18", "streamgauge": "0.1.0",
        "virtual_machine": GUESTS if guest else None,
    }  # fmt: skip


HOST = run({"rtp/01": 3, "rtp/02": 1}, sim=1e5, guest=False)
GUEST = run({"rtp/01": 3, "rtp/02": 3, "rtp/03": 3}, sim=1.01e5, guest=True, seen=["rtp/01", "rtp/03"])


def test_a_case_is_of_the_run_that_has_most_valid_trials_of_it() -> None:
    found = joined(MATTER, HOST, [GUEST])
    assert [case["id"] for case in found["cases"]] == EVERY[:3] and found["not_asked"] == EVERY[3:]
    assert [one["cases"] for one in found["runs"]] == [["rtp/01"], ["rtp/02", "rtp/03"]]
    assert [(one["case"], one["sim"]) for one in found["rows"]] == [
        ("rtp/01", 1e5), ("rtp/02", 1.01e5), ("rtp/03", 1.01e5)
    ]  # fmt: skip
    assert [case["valid"]["emu"] for case in found["cases"]] == [3, 3, 3]


def test_a_mutant_is_rejected_where_a_case_that_counts_does() -> None:
    """Here 01 is the host's, which does not see it."""
    (mutant,) = joined(MATTER, HOST, [GUEST])["mutants"]
    assert mutant["rejected"] is True
    assert {name: bool(rows) for name, rows in mutant["cases"].items()} == {
        "rtp/01": False, "rtp/02": False, "rtp/03": True
    }  # fmt: skip
    only = run({"rtp/01": 3, "rtp/02": 3}, sim=1e5, guest=True, seen=["rtp/01"])
    (mutant,) = joined(MATTER, HOST, [only])["mutants"]
    assert mutant["rejected"] is False and joined(MATTER, HOST, [only])["verdict"] == "fail"


def test_without_others_it_is_what_it_was() -> None:
    assert joined(MATTER, HOST, []) == HOST


def test_machines_are_held_against_each_other_where_both_ran() -> None:
    """The floor of the margin is 5 %, 5 kbit/s here."""
    (row_,) = machines_apart(MATTER, HOST, [GUEST])
    assert (row_["case"], row_["metric"], row_["verdict"]) == ("rtp/01", "sent_bps", "equivalent")
    assert (row_["virtual"], row_["host"], row_["n"]) == (1.01e5 + 1, 1e5 + 1, [3, 3])
    far = run({"rtp/01": 3}, sim=1.2e5, guest=True)
    assert [one["verdict"] for one in machines_apart(MATTER, far, [HOST])] == ["different"]
    assert not machines_apart(MATTER, GUEST, [far])


def test_the_page_says_which_conditions_ran_where(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "".join(
            f"<!-- measured: {name} -->\n<!-- end -->\n" for name in ("summary", "conditions", "machines")
        )
    )
    PAGE.write(joined(MATTER, HOST, [GUEST]), page)
    text = page.read_text()
    assert "Linux 6.18" in text and "Conditions:\n\n- `rtp`: 01\n" in text
    assert "Linux 6.1.0" in text and "Conditions:\n\n- `rtp`: 02, 03\n" in text
    assert "Not measured, 87 conditions: 04 to 10 of `rtp`; " in text
    assert "1 rows of 1 conditions (01 of `rtp`): 1 equivalent." in text
    assert text.count(" | 3, virtual |") == 2 and text.count(" | 3 |") == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("{", "is no JSON"),
        ("[]", "its schema is missing"),
        (json.dumps({"schema": "streamgauge.crosscheck/1"}), f"and not {SCHEMA}"),
        (json.dumps({**HOST, "quick": True}), "of a quick run"),
        (json.dumps({**HOST, "interrupted": True}), "cut short"),
    ],
)
def test_a_file_that_cannot_be_joined(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "other.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ScenarioError, match=said):
        load_document(file, SCHEMA)
