"""Text and tables at a terminal's width: nothing is wider, nothing is lost."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text
from streamgauge.terminal import columns_of, fold, lay_out, tie

words = st.text("abc±/%1", min_size=1, max_size=12)
sentences = st.lists(words, min_size=1, max_size=30).map(" ".join)
widths = st.integers(20, 120)


def plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


@given(sentences, widths, st.sampled_from(["", "  ", "  - ", "     "]))
def test_a_folded_line_is_no_wider_and_says_the_same(sentence: str, columns: int, begin: str) -> None:
    lines = plain(fold(begin + sentence, columns))
    assert all(len(line) <= columns for line in lines)
    assert " ".join(lines).split() == (begin + sentence).split()
    indent = len(begin) if "-" in begin else len(begin) + 2
    assert all(line.startswith(" " * indent) and line[indent] != " " for line in lines[1:])


@given(sentences)
def test_without_a_terminal_a_sentence_is_a_line(sentence: str) -> None:
    assert plain(fold(sentence, None)) == [sentence]


def test_lines_stay_lines_and_styles_stay() -> None:
    assert plain(fold("a\n\n  b", 80)) == ["a", "", "  b"]
    folded = fold(Text.from_markup("[red]fail[/red] " + "x " * 50 + "[b]end[/b]"), 40)
    assert folded[0].spans[0].style == "red" and folded[-1].spans[-1].style == "bold"


def test_numbers_stay_with_their_units() -> None:
    text = "it sent 244.55 ± 0.28 kbit/s and lost 22.0 ± 8.9 % of it"
    for columns in range(24, 60):
        lines = plain(fold(text, columns))
        assert any("244.55 ± 0.28 kbit/s" in line for line in lines)
        assert any("22.0 ± 8.9 %" in line for line in lines)
    assert tie("7 [1, 9] s, n = 3") == "7 [1,\u00a09]\u00a0s, n\u00a0=\u00a03"
    assert tie("1 s") == "1\u00a0s" and tie("1 sheep") == "1 sheep"


def test_a_word_that_is_too_long_stays_whole_on_a_line_of_its_own() -> None:
    path = "runs/" + "x" * 90
    assert plain(fold(f"records in {path}; drawn", 40)) == ["records in", f"{path};", "  drawn"]


ROWS = st.integers(2, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.text("abc 1", min_size=1, max_size=14).map(str.strip), min_size=n, max_size=n),
        min_size=1,
        max_size=5,
    )
)


@given(ROWS, st.integers(34, 160), st.data())
def test_a_table_is_no_wider_and_keeps_its_cells(
    rows: list[list[str]], columns: int, data: st.DataObject
) -> None:
    kinds = "l" + "".join(data.draw(st.sampled_from("lrw")) for _ in rows[0][1:])
    lines = plain(lay_out(rows, kinds, columns=columns, indent=2))
    assert all(len(line) <= columns and line == line.rstrip() for line in lines)
    shown = " ".join(lines).split()
    for row in rows:
        for word in " ".join(row).split():
            assert word in shown


@given(ROWS)
def test_piped_a_row_is_a_line(rows: list[list[str]]) -> None:
    lines = plain(lay_out(rows, "w" * len(rows[0]), columns=None))
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        assert line.split() == " ".join(row).split()


def test_columns_that_do_not_fit_follow_in_a_second_block() -> None:
    rows = [["flow", "a" * 20, "b" * 20, "c" * 20], ["one", "1", "2", "3"]]
    assert plain(lay_out(rows, "lrrr", columns=50)) == [
        f"flow  {'a' * 20}  {'b' * 20}",
        f"one   {'1':>20}  {'2':>20}",
        "",
        f"flow  {'c' * 20}",
        f"one   {'3':>20}",
    ]
    rows = [["", "of a:", "", "of b:", ""], ["", *["x" * 9] * 4]]
    assert plain(lay_out(rows, "lrrrr", columns=40, together=2))[:2] == [
        f"  {'of a:':>9}",
        f"  {'x' * 9}  {'x' * 9}",
    ], "what belongs together stays so"


def test_words_are_folded_where_there_is_room_and_else_stand_below() -> None:
    rows = [["id", "title"], ["x", "word " * 12]]
    assert plain(lay_out(rows, "lw", columns=44))[1:] == [
        f"x   {'word ' * 8}".rstrip(),
        f"    {'word ' * 4}".rstrip(),
    ]
    rows[1][0] = "x" * 20
    assert plain(lay_out(rows, "lw", columns=44)) == [
        "id",
        "    title",
        "x" * 20,
        f"    {'word ' * 8}".rstrip(),
        f"    {'word ' * 4}".rstrip(),
    ]


def test_the_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "72")
    assert columns_of(io.StringIO()) is None, "COLUMNS alone makes no terminal of a pipe"
    assert columns_of(Terminal()) == 72
    monkeypatch.delenv("COLUMNS")
    assert columns_of(Terminal()) == 80, "one that does not say"
