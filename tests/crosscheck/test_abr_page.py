"""docs/fidelity-abr.md, filled from a document that is stored here: what was measured when the page was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.crosscheck.abr.cases import SIMULATED
from streamgauge.crosscheck.abr.draw import figures
from streamgauge.crosscheck.abr.matter import MUTANTS
from streamgauge.crosscheck.abr.page import PAGE
from streamgauge.crosscheck.abr.quantities import QUANTITIES
from streamgauge.crosscheck.abr.shares import sentences
from streamgauge.crosscheck.run import overall

DOCS = Path(__file__).parent.parent.parent / "docs" / "fidelity-abr.md"
STORED = Path(__file__).parent / "fidelity-abr.json"


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def test_the_page_that_ships_has_every_block_and_what_was_stored(document: dict[str, Any]) -> None:
    PAGE.check(DOCS)
    text = DOCS.read_text(encoding="utf-8")
    for name, block in PAGE.blocks.items():
        assert f"<!-- measured: {name} -->" in text
        if name not in ("figures", "summary"):
            assert block(document) in text, name


def test_blocks_are_filled_and_the_prose_is_left_alone(document: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "".join(f"\nprose {name}\n<!-- measured: {name} -->\nold\n<!-- end -->\n" for name in PAGE.blocks)
    )
    written = PAGE.write(document, page)
    text = page.read_text()
    assert "old" not in text and all(f"prose {name}\n" in text for name in PAGE.blocks)
    assert [file.name for file in written] == ["page.md", "fidelity-abr-levels.png"]
    for case in document["cases"]:
        assert f"| `{case['id']}` | {case['conditions']['rate']} |" in text
    assert "**shaka** (sim / emu)" in text
    assert "| `shaka-is-exoplayer` | ExoPlayer's rule runs where Shaka's is asked for |" in text
    PAGE.write(document, page)
    assert page.read_text() == text


def test_figures_draw_what_the_document_has(document: dict[str, Any]) -> None:
    (levels,) = figures(document)
    assert {row[2] for row in levels.rows} == {"sim", "emu"}
    assert figures(document | {"cases": []}) == []


def test_the_verdict_is_that_of_its_rows(document: dict[str, Any]) -> None:
    assert overall(document) == document["verdict"]
    assert {mutant["name"]: mutant["rejected"] for mutant in document["mutants"]} == {
        mutant.name: True for mutant in MUTANTS
    }


def test_every_case_was_measured(document: dict[str, Any]) -> None:
    assert not document["not_asked"] and not document["skipped"]
    assert all(case["valid"]["emu"] >= 8 and case["valid"]["sim"] == SIMULATED for case in document["cases"])


def test_margins_are_the_fixed_ones_whatever_the_real_trials_spread(document: dict[str, Any]) -> None:
    compared = [row for row in document["rows"] if row["margin"] is not None]
    assert compared
    for row in compared:
        asked = QUANTITIES[row["metric"]]
        assert row["margin"] == pytest.approx(max(asked.relative * abs(row["emu"]), asked.absolute))
    assert any(row["spread"] > row["margin"] for row in compared)


def test_the_page_has_each_players_share(document: dict[str, Any]) -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert len(sentences(document)) == 3
    assert all(sentence in text for sentence in sentences(document))
