"""A summary says what it is given, fits where it is put, and keeps what others wrote there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from streamgauge.documents import PlottedInterval, Summary, interval_plot, plain, table, write_whole
from streamgauge.documents.markdown import MOST_BYTES

READER = MarkdownIt("commonmark").enable("table")
words = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], codec="utf-8"), max_size=30)


def shown(markdown: str) -> str:
    """The text that a reader sees, without what is around it."""
    tokens = [token for block in READER.parse(markdown) for token in block.children or ()]
    assert all(token.type in ("text", "text_special", "softbreak") for token in tokens), markdown
    return "".join(token.content for token in tokens)


@given(words)
def test_plain_text_says_itself(text: str) -> None:
    assert shown(plain(text)).split() == text.split()
    if text.split():
        assert [token.type for token in READER.parse(plain(text))][:1] == ["paragraph_open"]


@given(st.lists(st.lists(words, min_size=2, max_size=2), min_size=1, max_size=5))
def test_a_table_has_its_cells(rows: list[list[str]]) -> None:
    found = READER.parse(table(["a", "b"], [list(map(plain, row)) for row in rows]))
    cells = [token for token in found if token.type in ("td_open", "th_open")]
    assert len(cells) == 2 * (len(rows) + 1)


@given(
    st.lists(st.sampled_from(("a " * 30, "```text\nx\ny\n```", "<details>\n\nin\n\n</details>")), max_size=9)
)
def test_a_text_that_is_cut_fits_and_is_whole(parts: list[str]) -> None:
    summary = Summary(*parts)
    whole = summary.text()
    for most in range(0, len(whole) + 40, 7):
        text = summary.text(most)
        assert len(text.encode()) <= max(most, 1)
        assert text == whole or "left out" in text or not text
        assert text.count("```") % 2 == 0 and text.count("<details>") == text.count("</details>")


def test_it_goes_behind_what_is_in_the_jobs_own_and_replaces_another(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other.md"
    environment = {"GITHUB_STEP_SUMMARY": str(own)}
    for file in (own, other):
        for text in ("first", "second"):
            Summary(text).write(file, environment)
    assert own.read_text() == "first\n\nsecond\n"
    assert other.read_text() == "second\n"


def test_sudo_takes_the_variable_away_and_the_runners_file_is_known(tmp_path: Path) -> None:
    own = tmp_path / "_runner_file_commands" / "step_summary_1cb22d7f"
    own.parent.mkdir()
    own.write_text("first\n")
    Summary("second").write(own, {})
    assert own.read_text() == "first\n\nsecond\n"


@pytest.mark.parametrize("there", [0, MOST_BYTES - 200, MOST_BYTES, 2 * MOST_BYTES])
def test_what_others_wrote_counts(tmp_path: Path, there: int) -> None:
    own = tmp_path / "own"
    own.write_text("x" * there)
    Summary(*["line " * 20] * 20_000).write(own, {"GITHUB_STEP_SUMMARY": str(own)})
    assert own.read_text().startswith("x" * there)
    assert own.stat().st_size <= max(2**20, there + 1)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "below" / "file"
    write_whole(out, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(out, "\ud800")
    assert out.read_text() == "before" and [*out.parent.iterdir()] == [out]


numbers = st.floats(-1e6, 1e6)
ends = numbers | st.sampled_from((float("inf"), float("-inf")))
intervals = st.builds(
    lambda name, mean, a, b: PlottedInterval(name, min(mean, a), mean, max(mean, b)),
    words,
    numbers,
    ends,
    ends,
)


@given(st.lists(intervals, min_size=1, max_size=6))
def test_intervals_lie_where_they_are(lines: list[PlottedInterval]) -> None:
    head, *bodies = interval_plot(lines, left="worse", right="better", shaded=1.0)
    zero = head.rindex("│")
    assert len(bodies) == len(lines)
    places = {}
    for one, body in zip(lines, bodies, strict=True):
        drawing = body[zero - 20 :].ljust(41)
        assert body.startswith(one.name) and len(drawing) == 41
        if "●" in drawing:
            places[one] = drawing.index("●")
        else:
            places[one] = 40 if one.mean > 0 else 0
            assert drawing[places[one]] == ("►" if one.mean > 0 else "◄")
        assert places[one] == 20 or (places[one] > 20) == (one.mean > 0)
    by_mean = sorted(places, key=lambda one: one.mean)
    assert [places[one] for one in by_mean] == sorted(places.values()), "one scale for all"


def test_nothing_is_drawn_of_nothing() -> None:
    assert interval_plot([], left="worse", right="better") == []
