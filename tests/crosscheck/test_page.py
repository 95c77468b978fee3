"""The page and its figures, from a document that we made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamgauge.crosscheck.draw import figures
from streamgauge.crosscheck.page import PAGE
from streamgauge.errors import ScenarioError

DOCS = Path(__file__).parent.parent.parent / "docs" / "fidelity.md"


def row(case: str, metric: str, verdict: str = "equivalent", **more: Any) -> dict[str, Any]:
    found = {
        "case": case,
        "metric": metric,
        "words": "RTT, median",
        "unit": "ms",
        "factor": 1e3,
        "sim": 0.0321,
        "emu": 0.0312,
        "spread": 0.001,
        "margin": 0.0032,
        "low": 0.0005,
        "high": 0.0013,
        "verdict": verdict,
        "why": "",
        "coarse": False,
    }
    return found | more


def case(name: str, kind: str, **quantities: float) -> dict[str, Any]:
    window = {"reno": {"t_s": [10.0, 10.1, 10.2], "packets": [20, 30, 15]}}
    return {
        "id": name,
        "kind": kind,
        "title": name,
        "wanted": {"sim": 10, "emu": 5},
        "valid": {"sim": 10, "emu": 5},
        "invalid": [{"seed": 3, "why": "late departures"}] if kind == "single" else [],
        "window_s": [10, 60],
        "windows": {"sim": window, "emu": window} if kind == "single" else {},
        "quantities": {"sim": [quantities], "emu": [quantities, quantities]},
    }


@pytest.fixture
def document() -> dict[str, Any]:
    explained = {"switch": "without prr", "before": 0.04, "after": 0.0311}
    return {
        "date": "2026-01-02T03:04:05Z",
        "cpus": 8,
        "cpu": "a processor",
        "kernel": "6.18",
        "streamgauge": "0.1.0",
        "rows": [
            row("reno/10m-25kb", "rtt_p50_s"),
            row("reno/10m-25kb", "rtt_p95_s", "explained", explained=explained),
            row("cubic/10m-25kb", "rtt_p50_s", "unexplained", sim=0.1),
            row("reno-cubic/10m-25kb", "reno.share", "inconclusive", unit="", factor=1, coarse=True),
            row("reno-cubic/10m-25kb", "reno.share_sd", unit="", factor=1, coarse=True),
        ],
        "mutants": [
            {
                "name": "reno-is-cubic",
                "words": "CUBIC instead",
                "rejected": True,
                "cases": {"reno/10m-25kb": [row("reno/10m-25kb", "rtt_p50_s", "different", sim=0.05)]},
            }
        ],
        "cases": [
            case("reno/10m-25kb", "single"),
            case("cubic/10m-25kb", "single"),
            case("reno-cubic/10m-25kb", "pair", **{"reno.share": 0.3}),
        ],
        "skipped": [
            {"case": "vegas/10m-25kb", "why": "this kernel has no vegas"},
            {"case": "vegas/1m-75kb", "why": "this kernel has no vegas"},
        ],
        "not_asked": ["reno/100m-1pct", "bbr/10m-25kb", "cubic/100m-1pct", "reno/1m-100p"],
    }


def test_blocks_are_filled_and_the_prose_is_left_alone(document: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "fidelity.md"
    blocks = "".join(
        f"\nprose {name}\n<!-- measured: {name} -->\nold\n<!-- end -->\n" for name in PAGE.blocks
    )
    page.write_text(blocks)
    written = PAGE.write(document, page)
    text = page.read_text()
    assert "old" not in text
    assert all(f"prose {name}\n" in text for name in PAGE.blocks)
    assert "5 rows: 2 equivalent, 1 explained, 1 inconclusive, 1 unexplained." in text
    assert "Not run: `vegas/10m-25kb`, `vegas/1m-75kb`: this kernel has no vegas." in text
    assert "in this run, 4 cases: `10m-25kb`: bbr; all of `100m-1pct`, `1m-100p`." in text
    assert "Real trials of a case: 5. A trial is of 60 s less the first 10 on `10m-25kb`." in text
    assert "on 8 processors (a processor), Linux 6.18, StreamGauge 0.1.0." in text
    assert "2 real trials were invalid" in text
    assert "| `reno-is-cubic` | CUBIC instead | yes | `reno/10m-25kb`: rtt_p50_s 50 for 31.2 ms |" in text
    assert "| RTT, median, ms | 32.1 / 31.2 | 100 / 31.2 **(!)** |" in text
    assert "*explained* by `without prr`, with which sim has 31.1." in text
    assert "![Shares of pairs](images/fidelity-shares.png)" in text
    assert "Rows" not in text and "| `reno-cubic/10m-25kb` | `reno.share_sd` |" in text
    assert {file.name for file in written} == {
        "fidelity.md",
        "fidelity-windows-10m-25kb.png",
        "fidelity-margins.png",
        "fidelity-shares.png",
    }
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in written[1:])
    PAGE.write(document, page)
    assert page.read_text() == text


def test_a_virtual_machine_is_named_with_its_own_kernel(document: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "fidelity.md"
    page.write_text("<!-- measured: summary -->\n<!-- end -->\n")
    guest = {"qemu": ["7.2.22"], "image": ["f863"], "instructions_per_s": [1_000_000_000, 2_000_000_000]}
    PAGE.write(document | {"kernel": "6.1.0-56", "virtual_machine": guest}, page)
    text = page.read_text()
    assert (
        "Real trials: Linux 6.1.0-56, in virtual machines (QEMU 7.2.22, image f863) at 1 and 2 G instructions"
        in text
    )
    assert "a processor" not in text


def test_figures_draw_what_the_document_has(document: dict[str, Any]) -> None:
    windows, margins, shares = figures(document)
    assert {found[3] for found in windows.rows} == {"reno", "cubic"}
    assert [found[3] for found in margins.rows] == pytest.approx([0.28125, 0.28125, 21.5])
    assert [found[1:] for found in shares.rows] == [("sim", 0.3), ("emu", 0.3), ("emu", 0.3)]
    assert figures(document | {"cases": [], "rows": []}) == []


def test_the_page_that_ships_has_every_block() -> None:
    PAGE.check(DOCS)
    text = DOCS.read_text(encoding="utf-8")
    assert all(f"<!-- measured: {name} -->" in text for name in PAGE.blocks)


def test_a_page_that_shows_no_figure_replaces_none(document: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- measured: singles -->\n<!-- end -->\n")
    assert PAGE.write(document, page) == [page] and not (tmp_path / "images").exists()
    assert "**10m-25kb** (sim / emu)" in page.read_text()


def test_a_page_that_cannot_be_filled(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="fills a page that is there"):
        PAGE.check(tmp_path / "none.md")
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ScenarioError, match="finds no"):
        PAGE.check(page)
    page.write_text("<!-- measured: dreams -->\n<!-- end -->")
    with pytest.raises(ScenarioError, match="knows no block 'dreams'"):
        PAGE.check(page)


def test_a_pair_that_one_link_has_takes_no_others_place(document: dict[str, Any]) -> None:
    """Vega puts the panels of a grid elsewhere where a row has not all columns."""
    document["cases"] += [
        case("cubic-bbr/480k-10kb", "pair", **{"cubic.share": 0.1}),
        case("reno-cubic/480k-10kb", "pair", **{"reno.share": 0.4}),
    ]
    (shares,) = (figure for figure in figures(document) if figure.id == "fidelity-shares")
    assert shares.spec["facet"] == {
        "field": "c",
        "type": "nominal",
        "title": None,
        "sort": ["reno-cubic, 10m-25kb", "cubic-bbr, 480k-10kb", "reno-cubic, 480k-10kb"],
    }
    assert {(name, value) for name, _, value in shares.rows} == {
        ("reno-cubic, 10m-25kb", 0.3),
        ("cubic-bbr, 480k-10kb", 0.1),
        ("reno-cubic, 480k-10kb", 0.4),
    }


@pytest.mark.parametrize(("commit", "said"), [("c" * 40, f"commit {'c' * 10}."), ("c" * 40 + "+", "c+.")])
def test_a_checkout_that_differs_from_its_commit_is_told(
    commit: str, said: str, document: dict[str, Any], tmp_path: Path
) -> None:
    page = tmp_path / "fidelity.md"
    page.write_text("<!-- measured: summary -->\n<!-- end -->\n")
    PAGE.write(document | {"commit": commit}, page)
    assert said in page.read_text()
