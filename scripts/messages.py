#!/usr/bin/env python3
"""Lists every message that people read: errors, help, log lines and reports, of Python, Rust and templates.

    .venv/bin/python scripts/messages.py             # FILE:LINE: MESSAGE, all of them
    .venv/bin/python scripts/messages.py crates      # those below a folder, or of a file

A value that is put into a message is printed as CODE. scripts/words.py checks these messages.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "streamgauge"
#: Packages that write sentences for pages: each of their literals counts.
OF_PAGES = ("compare", "evaluate", "matrix", "report")


class Message(NamedTuple):
    """One message and its place."""

    file: Path
    line: int
    text: str


class Found(NamedTuple):
    """One message of a source."""

    line: int
    text: str


_CODE = re.compile(r"(`+)(?!`).+?\1", re.S)
#: Two words of lower case in a row: an identifier, a header or a format has none.
_PROSE = re.compile(r"[a-z]{2,},? [a-z]{2,}")
_LINES = re.compile(r";[ \t]*\n")


def is_prose(text: str) -> bool:
    """Returns whether a literal is a phrase of three words or more, and no code of several lines."""
    return len(text.split()) > 2 and _PROSE.search(text) is not None and _LINES.search(text) is None


# --- Python -------------------------------------------------------------------------------------------------
_CALLS = re.compile(r"(?:Error|Warning|^print|^say|^fail|^exit|^warn|^remark)$")
_KEYWORDS = ("hint", "help", "remedy")


def of_python(source: str, *, every: bool = False) -> list[Found]:
    """Returns the messages that a module prints or raises; with `every`, each of its literals."""
    tree = ast.parse(source)
    nodes = _literals(tree) if every else _printed(tree)
    found = [Found(node.lineno, _written(node)) for node in nodes]
    chosen = (one for one in found if len(one.text.split()) > 2)
    return sorted({one for one in chosen if not every or (is_prose(one.text) and "<" not in one.text)})


def _printed(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields the arguments of calls that print or raise."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if _CALLS.search(name):
                yield from node.args
            yield from (one.value for one in node.keywords if one.arg in _KEYWORDS)


def _literals(tree: ast.Module) -> Iterator[ast.expr]:
    """Yields every literal that is neither a docstring nor part of another literal."""
    inside: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            inside.update(node.values)
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.Constant | ast.JoinedStr) and n not in inside)


def _written(node: ast.expr) -> str:
    """Returns a string as it is written, with CODE for each value in it; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _CODE.sub("CODE", node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else "CODE" for p in node.values]
        return _CODE.sub("CODE", "".join(str(part) for part in parts))
    return ""


# --- Rust ---------------------------------------------------------------------------------------------------
_RUST = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
      | (?P<bytes>[bc]"(?:[^"\\]|\\.)*")
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<char>'(?:[^'\\\n]|\\[^\n]+?)')
      | (?P<tests>\#\[cfg\(test\)\])
      | (?P<attribute>\#!?\[\s*\w+)
      | (?P<name>\w+)
      | (?P<mark>[^\w\s])""",
    re.S | re.X,
)
#: Faults of the program itself, which no user can mend.
_INTERNAL = re.compile(r"^(?:(?:debug_)?assert\w*|panic|unreachable|todo|unimplemented|expect|expect_err)$")
#: Attributes that hold messages.
_SHOWN = ("error", "arg", "command", "value")
_DERIVED = re.compile(r"#\[derive\([^)]*\b(?:Parser|Args|Subcommand|ValueEnum)\b[^)]*\)\]")


def of_rust(source: str) -> list[Found]:
    """Returns the messages of a Rust source and its commands' help, without tests and internal faults."""
    found = [*_strings(source), *_help(source)]
    return sorted({one for one in found if is_prose(one.text)})


def _strings(source: str) -> Iterator[Found]:
    """Yields the literals, each with its line."""
    around: list[str] = []
    name, line, at = "", 1, 0
    awaits_tests = False
    for token in _RUST.finditer(source):
        line, at = line + source.count("\n", at, token.start()), token.start()
        kind, text = token.lastgroup or "", token[0]
        if kind == "hashes":
            kind = "raw"
        if kind == "tests":
            awaits_tests = True
        elif kind == "attribute":
            around.append("#" + text.rpartition("[")[2].strip())
            name = ""
        elif kind == "name":
            name = text
        elif kind == "mark" and text in "([{":
            is_tests = awaits_tests and text == "{"
            awaits_tests = awaits_tests and not is_tests
            around.append("#tests" if is_tests else name)
            name = ""
        elif kind == "mark" and text in ")]}":
            if around:
                around.pop()
            name = ""
        elif kind == "mark" and text == ";":
            awaits_tests, name = False, ""
        elif kind == "mark" and text != "!":
            name = ""
        elif kind == "text" and not any(_is_hidden(one) for one in around):
            yield Found(line, _plain(text[1:-1]))


def _is_hidden(around: str) -> bool:
    """Returns whether no user reads the strings inside such a call or attribute."""
    if around.startswith("#"):
        return around[1:] not in _SHOWN
    return _INTERNAL.match(around) is not None


def _plain(text: str) -> str:
    """Returns a literal as it is printed, with CODE for each value."""
    text = re.sub(r"\\\n\s*", "", text)
    text = text.replace('\\"', '"').replace("\\n", "\n").replace("\\'", "'").replace("\\\\", "\\")
    text = text.replace("{{", "\0").replace("}}", "\1")
    text = re.sub(r"\{[^{}\s]*\}", "CODE", text).replace("\0", "{").replace("\1", "}")
    return _CODE.sub("CODE", text)


def _help(source: str) -> Iterator[Found]:
    """Yields the documentation of commands and their options, which is their help."""
    for item in _DERIVED.finditer(source):
        begin = source.find("{", item.end())
        end = source.find("\n}", begin)
        first = source.count("\n", 0, begin) + 1
        paragraph: list[str] = []
        for number, line in enumerate([*source[begin:end].splitlines(), ""], first):
            if (doc := re.match(r"\s*/// ?(.*)", line)) is not None and doc[1]:
                paragraph.append(doc[1])
            elif paragraph:
                yield Found(number - len(paragraph), _CODE.sub("CODE", " ".join(paragraph)))
                paragraph = []


# --- templates ----------------------------------------------------------------------------------------------
_INLINE = re.compile(r"</?(?:a|abbr|b|code|em|i|span|strong|sub|sup|time|wbr)\b[^>]*>")


def of_template(source: str) -> list[Found]:
    """Returns the text of a page's template, with CODE for each value."""
    bare = source
    for pattern, better in (
        (re.compile(r"\{#.*?#\}|<(script|style)\b.*?</\1>|<svg\b.*?</svg>", re.S), ""),
        (re.compile(r"\{\{.*?\}\}", re.S), "CODE"),
        (re.compile(r"\{%.*?%\}", re.S), ""),
        (_INLINE, ""),
        (re.compile(r"<[^>]*>", re.S), "\v"),
    ):
        # A line stays the line that it is.
        bare = pattern.sub(lambda m, better=better: better + "\n" * m[0].count("\n"), bare)  # type: ignore[misc]
    found, line = [], 1
    for piece in bare.split("\v"):
        text = unescape(" ".join(piece.split()))
        if is_prose(text):
            found.append(Found(line + len(piece[: len(piece) - len(piece.lstrip())].splitlines()), text))
        line += piece.count("\n")
    return found


# --- all of them --------------------------------------------------------------------------------------------
def read(file: Path) -> list[Found]:
    """Returns the messages of one file; of a module that writes a page, its sentences too."""
    source = file.read_text(encoding="utf-8")
    if file.suffix == ".rs":
        return of_rust(source)
    if file.suffix == ".j2":
        return of_template(source)
    return sorted({*of_python(source), *(of_python(source, every=True) if writes_a_page(file) else ())})


def writes_a_page(file: Path) -> bool:
    """Returns whether the text of a template or module is a page's, which may have longer sentences."""
    return file.suffix == ".j2" or file.resolve().relative_to(PACKAGE).parts[0] in OF_PAGES


def files() -> list[Path]:
    """Returns the files that have messages for users."""
    python = sorted(PACKAGE.rglob("*.py"))
    templates = sorted(PACKAGE.rglob("*.html.j2"))
    rust = sorted(
        file
        for file in ROOT.glob("crates/*/src/**/*.rs")
        if file.stem != "tests" and "tests" not in file.parts
    )
    return [*python, *templates, *rust]


def messages(below: Path = ROOT) -> Iterator[Message]:
    """Yields every message below a folder, or those of one file."""
    chosen = below.resolve()
    for file in files():
        if file == chosen or chosen in file.parents:
            for found in read(file):
                yield Message(file.relative_to(ROOT), *found)


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("below", nargs="?", type=Path, default=ROOT, metavar="FOLDER")
    asked = parser.parse_args()
    for one in messages(asked.below):
        print(f"{one.file}:{one.line}: {' '.join(one.text.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
