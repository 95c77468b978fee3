"""docs/fidelity-abr.md, filled from a document that is stored here: what was measured when the page was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import EmuSettings
from streamgauge.crosscheck import ABR
from streamgauge.crosscheck.abr.draw import figures
from streamgauge.crosscheck.abr.matter import MUTANTS, varied
from streamgauge.crosscheck.abr.page import PAGE
from streamgauge.crosscheck.rows import rows_of
from streamgauge.crosscheck.run import overall, select
from streamgauge.crosscheck.trials import Bench, CaseRuns

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
    assert "| `hlsjs/constant` | 1242 kbit/s | 42 ms | 36 kB |" in text
    assert "**shaka** (sim / emu)" in text
    assert "| `bola-is-throughput` | the throughput rule runs where BOLA is asked for | yes |" in text
    PAGE.write(document, page)
    assert page.read_text() == text


def test_figures_draw_what_the_document_has(document: dict[str, Any]) -> None:
    (levels,) = figures(document)
    assert {row[2] for row in levels.rows} == {"sim", "emu"}
    assert figures(document | {"cases": []}) == []


def test_the_verdict_is_that_of_its_rows(document: dict[str, Any]) -> None:
    assert overall(document) == document["verdict"]
    assert all(mutant["rejected"] for mutant in document["mutants"])
    assert {mutant["name"] for mutant in document["mutants"]} == {mutant.name for mutant in MUTANTS}


def test_real_trials_reject_the_throughput_rule_for_bola(document: dict[str, Any], tmp_path: Path) -> None:
    """Against the trials of dash.js that are stored: its BOLA stays high while its buffer is full."""
    (case,) = select(ABR, ["dashjs-bola/square"])
    (stored,) = [one for one in document["cases"] if one["id"] == case.id]
    real = CaseRuns(tuple({"quantities": found} for found in stored["quantities"]["emu"]))
    bench = Bench(ABR, tmp_path, EmuSettings(), reference="sim")
    verdicts = []
    for some in (case, varied(case, {"rule": "dashjs-throughput"})):
        sim = bench.simulate(f"run{len(verdicts)}", [some])[case.id]
        verdicts.append({row.metric: row.verdict for row in rows_of(ABR, case, sim, real)})
    assert "different" not in verdicts[0].values()
    assert verdicts[1]["level_bps"] == "different"
