"""What a paper's page opens with: claims counted, and the paper beside each reading on one scale."""

from __future__ import annotations

import altair as alt
from streamgauge.paper import joined, outcomes_of, papers
from streamgauge.paper.opening import opening
from test_numbered import check
from test_paper import entry, reading

ONE = "darwin/1qt1tcp-const"


def test_the_paper_and_both_readings_share_one_scale() -> None:
    darwin = papers()["darwin"]
    made = [
        reading(name, entry(scenario, {"qt1": pps, "qt2": 20.0, "tcp1": 20.0}))
        for name, pps, scenario in (
            ("sources", 30.0, "darwin/2qt-const"),
            ("described", 60.0, "darwin/2qt-const"),
        )
    ]
    outcomes = {
        "sources": outcomes_of([darwin], [check("DC-1", "fail"), check("DC-2", "fail")], None, {ONE: 3}),
        "described": outcomes_of(
            [darwin], [check("DC-1"), check("DC-2", "fail", origin="fitted")], None, {ONE: 3}
        ),
    }
    (claims,) = joined(
        [darwin], outcomes, {"darwin": "described"}, {"darwin": {"DC-1": "pass", "DC-2": "differs"}}
    )
    found = opening(claims, made)
    assert found is not None and found.figure is not None
    assert found.sentences == (
        "Reading described explains more: 1 of 19 claims are as claimed under it, 0 under sources.",
        "Not as published under described: DC-2, 0 of them in size alone; undecided: 17.",
        "Of 2 checks 1 were fitted to or fed by the paper and are no evidence; "
        "of 2 claims that a fit did not see 1 hold.",
    )
    assert found.origins == ("paper", "sources", "described") and found.columns[0] == "TP, kb/s"
    cells = dict(found.lines)["2 QT, constant bw, QT1"]
    assert cells[0][0] == "208.34" and all(len(cell) == 3 for cell in cells)
    assert float(cells[0][1].split()[0]) < float(cells[0][2].split()[0])
    marks = {(row[0], row[1]): row[2:] for row in found.figure.rows}
    assert {origin for _, origin in marks} == {"the paper", "sources", "described"}
    assert all(low is None or 0 <= low <= value <= high for value, low, high in marks.values())
    # A single x scale holds every mark.
    assert not any("resolve" in part for part in (found.figure.spec, *found.figure.spec["layer"]))
    assert alt.Chart.from_dict(found.figure.vega_lite(), validate=True) is not None


def test_a_paper_without_tables_is_shown_by_its_printed_numbers() -> None:
    paper = papers()["windows-media"]
    (outcome,) = outcomes_of([paper], [], None, {})
    (claims,) = joined([paper], {"sources": [outcome]}, {"windows-media": "sources"}, {})
    found = opening(claims, [reading("", entry("windows-media/rtt", {"ping": 1.0}))])
    assert found is not None and found.figure is None and found.origins == ("paper", "ours")
    assert opening(None, [reading("")]) is None
