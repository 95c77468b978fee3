"""What a notebook and a terminal show: everything in it, nothing of it markup that is not ours."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import streamgauge as sg
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.notebook.markup import MARKS, VerdictCell, html_lines, html_table, once, text_table
from two_scenarios import short

EVIL = "<script>alert('&')</script>\"<b>"


class Page(HTMLParser):
    """The tags of some HTML, and the text of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open, "a tag is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def sound(html: str) -> Page:
    page = Page(html)
    assert set(page.tags) <= {"div", "table", "thead", "tbody", "tr", "th", "td", "p", "span", "strong"}
    assert {name for name, _ in page.attributes} <= {"style", "class", "aria-hidden"}
    return page


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12) | st.just(EVIL)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    columns = draw(st.integers(1, 4))
    row = st.lists(texts, min_size=columns, max_size=columns)
    return draw(row), draw(st.lists(row, min_size=1, max_size=4))


@given(tables(), st.sampled_from(sorted(MARKS)))
def test_a_table_holds_its_cells_and_no_other_markup(
    table: tuple[list[str], list[list[str]]], verdict: str
) -> None:
    headings, rows = table
    page = sound(html_table(headings, rows, before=html_lines([EVIL])))
    assert page.rows == [headings, *rows]
    marked = sound(html_table(headings, [[VerdictCell(EVIL, verdict), *row[1:]] for row in rows]))
    assert marked.rows[1][0] == f"{MARKS[verdict][0]} {EVIL}"
    assert all(cell in text_table(headings, rows) for row in rows for cell in (part.rstrip() for part in row))


@given(tables(), st.integers(0, 4))
def test_what_repeats_above_is_left_out_and_nothing_else(
    table: tuple[list[str], list[list[str]]], columns: int
) -> None:
    rows = [[cell or "?" for cell in row] for row in [*table[1], *table[1][-1:]]]
    left = once(rows, columns)
    filled: list[Sequence[str]] = []
    for row in left:
        filled.append([cell or filled[-1][at] for at, cell in enumerate(row)] if filled else row)
    assert filled == rows
    assert all(row[columns:] == whole[columns:] for row, whole in zip(left, rows, strict=True))


def test_runs_show_each_flow_of_each_scenario(kept: sg.Runs) -> None:
    page = sound(kept._repr_html_())
    headings, *rows = page.rows
    assert headings == ["scenario", "mode", "trials", "flow", "goodput", "loss", "queue delay"], (
        "those that are known"
    )
    assert [row[0] for row in rows] == ["test/short", "", "test/two", ""]
    assert [row[3] for row in rows] == ["ftp", "cross (cross traffic)"] * 2
    mean = kept.metrics("goodput", flow="ftp").filter(scenario="test/short")["value"].mean()
    assert isinstance(mean, float) and rows[0][4].startswith(f"{mean / 1e3:.0f}")
    assert "8 trials" in page.text and "all valid" in page.text
    for cell in (cell for row in rows for cell in row):
        assert cell in repr(kept)


def test_many_trials_are_counted_and_not_read(kept: sg.Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.notebook.runs._MOST_READ", 3)

    def refuse(*_: Any) -> None:
        raise AssertionError("metrics are read only to be shown")

    runs = sg.load(kept.where)
    monkeypatch.setattr("streamgauge.campaign.loaded.LoadedTrial.metrics", property(refuse))
    assert "test/two" in repr(runs) and "4 valid" in runs._repr_html_()
    assert "goodput" not in repr(runs)


def test_checks_show_verdict_claim_and_measurement(kept: sg.Runs) -> None:
    checks = kept.checks()
    assert [check.id for check in checks] == ["fills", "fills"] and checks.verdict == "pass"
    page = sound(checks._repr_html_())
    assert page.rows[1][:4] == ["✓ pass", "test/short", "sim", "fills (predicted)"]
    assert "The link is full." in page.rows[1][4]
    assert "The link is full." in repr(checks)
    frame = checks.frame()
    assert frame["verdict"].to_list() == ["pass", "pass"] and frame["unit"].to_list() == ["bit/s"] * 2
    throughput = (
        kept.metrics("throughput", flow="ftp").group_by("scenario", maintain_order=True).agg(pl.mean("value"))
    )
    assert frame["measured"].to_list() == pytest.approx(throughput["value"].to_list())
    assert ((frame["low"] <= frame["measured"]) & (frame["measured"] <= frame["high"])).all()
    assert len(checks[1:]) == 1 and isinstance(checks[1:], sg.Checks)
    none = sg.Checks([])
    assert none.verdict == "pass" and "no checks" in repr(none) and none.frame().is_empty()
    sound(none._repr_html_())


def test_an_answer_reads_as_it_is(kept: sg.Runs) -> None:
    said = kept.answer()
    assert repr(said) == str(said) and "test/short" in said
    assert sound(said._repr_html_()).text == said


def test_titles_of_scenarios_are_no_markup(tmp_path: Path) -> None:
    scenario = short().model_copy(update={"title": EVIL, "question": EVIL})
    assert EVIL in sound(scenario._repr_html_()).text
    runs = sg.run(scenario, mode="sim", seed=1, out=tmp_path, progress=False)
    for shown in (runs, runs.checks(), runs.answer(), sg.Scenarios([scenario])):
        assert "<script" not in sound(shown._repr_html_()).text.replace(EVIL, "")


def test_a_scenario_says_what_it_is() -> None:
    scenario = sg.load_scenario("hessler/ftp-medium")
    assert repr(scenario) == f"<Scenario hessler/ftp-medium: {scenario.title}>"
    page = sound(scenario._repr_html_())
    for line in str(scenario).splitlines():
        assert line.strip() in page.text
    assert "1 Mbit/s by CBQ on a device of 100 Mbit/s behind a drop-tail queue of 100 packets" in str(
        scenario
    )


def test_scenarios_are_a_table() -> None:
    found = sg.scenarios("hessler/*")
    assert found[0].id in repr(found) and found[0].title in sound(found._repr_html_()).text
    assert isinstance(found[:2], sg.Scenarios) and len(found[:2]) == 2
    everything = sg.scenarios()
    assert f"and {len(everything) - 60} more" in repr(everything)


def test_a_part_of_the_runs(kept: sg.Runs) -> None:
    assert {trial.scenario for trial in kept.only("*/two")} == {"test/two"}
    assert len(kept.only(mode="sim")) == len(kept)
    with pytest.raises(sg.StreamGaugeError, match="there are test/short sim, test/two sim"):
        kept.only(mode="emu")
    assert len(kept[:3]) == 3 and isinstance(kept[:3], sg.Runs)
    assert kept.record(scenario="test/two", seed=2).trial["seed"] == 2
    with pytest.raises(sg.StreamGaugeError, match="has seed 9; there are 1, 2, 3, 4"):
        kept.record(scenario="test/two", seed=9)


def test_the_report_is_a_page(kept: sg.Runs, tmp_path: Path) -> None:
    page = kept.report(tmp_path / "page.html")
    assert "test/two" in page.read_text("utf-8")
