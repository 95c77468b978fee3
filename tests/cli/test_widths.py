"""No command writes a line that is wider than the terminal, and none folds what is piped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from at_a_width import on_a_terminal, too_long
from streamgauge.cli.app import command as app_command

Cli = Callable[..., Any]

WIDTHS = (80, 160)
COMMANDS = [
    ["run", "hessler/ftp-heavy", "--mode", "sim", "--repeat", "2"],
    ["run", "hessler/ftp-*", "--mode", "sim", "--seed", "1", "--set", "path.down.rate=600kbit/s"],
    ["run", "hessler/ftp-hevy"],
    ["reproduce", "hessler/ftp-heavy", "--mode", "sim", "--repeat", "2", "--mutants", "--robust"],
    ["list"],
    ["list", "today/*"],
    ["sweep", "hessler/ftp-no", "--mode", "sim", "--repeat", "2", "--over", "path.down.rate=1Mbit/s,2Mbit/s"],
    ["compare", "hessler/ftp-no", "hessler/ftp-heavy", "--mode", "sim", "--repeat", "2"],
    ["systems"],
    ["systems", "darwin"],
    ["systems", "tcp"],
    ["show", "hessler/ftp-heavy"],
    ["doctor"],
    ["presets"],
    ["presets", "lte"],
    ["verify", "runs"],
    ["report", "runs", "--answer", "hessler/*"],
    ["fly"],
    ["--help"],
    *([name, "--help"] for name in app_command().commands),
]


@pytest.fixture(scope="module", params=WIDTHS)
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[str]]:
    """A width, and what each command shows at it."""
    folder = tmp_path_factory.mktemp("width")
    return request.param, on_a_terminal(COMMANDS, request.param, folder)


def test_no_line_is_wider_than_the_terminal(shown: tuple[int, list[str]]) -> None:
    columns, texts = shown
    assert len(texts) == len(COMMANDS)
    for words, text in zip(COMMANDS, texts, strict=True):
        assert text.strip(), words
        assert "Traceback" not in text and "internal error" not in text, text
        # A URL that is longer than the terminal stays whole, to be copied.
        assert [line for line in too_long(text, columns) if " " in line.strip()] == [], words


def test_sentences_are_folded_with_a_hanging_indent(shown: tuple[int, list[str]]) -> None:
    columns, texts = shown
    said = texts[COMMANDS.index(["report", "runs", "--answer", "hessler/*"])].splitlines()
    at = next(i for i, line in enumerate(said) if line.startswith("  - An FTP download"))
    assert columns - 20 < len(said[at]) <= columns
    assert said[at + 1].startswith("    ") and said[at + 1][4] != " "


def test_examples_of_commands_are_not_broken(shown: tuple[int, list[str]]) -> None:
    """What is copied from a help runs: a line is whole, or says with a backslash that it goes on."""
    _, texts = shown
    for words, text in zip(COMMANDS, texts, strict=True):
        if words[-1] == "--help":
            lines = [line.strip() for line in text.splitlines()]
            for at, line in enumerate(lines):
                if line.startswith("streamgauge ") and not line.endswith("\\"):
                    goes_on = lines[at + 1] if at + 1 < len(lines) else ""
                    assert not goes_on or goes_on.startswith(("streamgauge ", "╭")), (line, goes_on)


@pytest.mark.parametrize(
    ("arguments", "key"),
    [(["list", "hessler/*"], "scenarios"), (["systems"], "systems"), (["presets"], "presets")],
)
def test_piped_a_row_is_a_line_that_awk_can_take_apart(cli: Cli, arguments: list[str], key: str) -> None:
    rows = json.loads(cli(*arguments, "--json").out)[key]
    head, *lines = cli(*arguments).out.splitlines()
    assert head.split()[0] in ("id", "name")
    assert [line.split()[0] for line in lines] == [row.get("id") or row["name"] for row in rows]
    for row, line in zip(rows, lines, strict=True):
        assert row["title"] in line and line == line.rstrip()


def test_piped_a_sentence_is_a_line(cli: Cli) -> None:
    ran = cli("run", "hessler/ftp-heavy", "--mode", "sim", "--repeat", "2")
    (answer,) = [line for line in ran.out.splitlines() if line.startswith("  - An FTP download")]
    assert "on average." in answer
    (check,) = [line for line in ran.out.splitlines() if " HW-3 " in line]
    assert "claimed is at most 2 %" in check


def test_a_path_stays_whole_to_be_copied(tmp_path: Path) -> None:
    deep = tmp_path / ("folder" * 12)
    (text,) = on_a_terminal(
        [["run", "hessler/ftp-no", "--mode", "sim", "--seed", "1", "--out", str(deep)]], 80, tmp_path
    )
    assert str(deep) in text
    assert [line.strip(" ;'") for line in too_long(text, 80)] in ([str(deep)], [str(deep)] * 2, [])
