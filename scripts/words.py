#!/usr/bin/env python3
"""Checks that prose is plain English, by the rules of docs/style.md, and counts the habits they ban.

    .venv/bin/python scripts/words.py            # part of `make lint`: docs, help, messages and comments
    .venv/bin/python scripts/words.py FILE...    # these pages or modules, exempt or not
    .venv/bin/python scripts/words.py --table    # habits per 1,000 words, by kind of text

Pages, commands and modules in scripts/words-exempt.txt were written before the rules. They are counted and
not checked. One that passes must leave the list, and nothing joins it (tests/test_plain_english.py).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import messages

ROOT = Path(__file__).resolve().parent.parent
EXEMPT = Path(__file__).with_name("words-exempt.txt")

#: Counted habits. A checked text may have one for every 500 words.
HABITS = {
    "what ...": r"\bwhat\b(?!'s new)",
    "say, said": r"\b(?:say|says|said|saying)\b",
    "tell, told": r"\b(?:tell|tells|told|telling)\b",
    "nobody, somebody, whoever": r"\b(?:nobody|somebody|whoever|whatever)\b",
    "whose, whom, of which": r"\b(?:whose|whom|of which)\b",
    "goes, comes, stands": r"\b(?:goes|comes|stands|went|came|stood)\b",
}
WORDS_PER_HABIT = 500
OPENINGS = ("What", "Of", "Who", "Nor", "So", "Whoever")
#: One word for one thing: the word that is gone, and the one in its place.
ONE_WORD = {
    r"\brivals?\b": "cross traffic",
    r"\bunder test\b": "subject",
    r"\bthe house\b": "the project, or the crate's name",
    r"\ba thousand million\b": "10^9, or G",
}
#: Files with comments that are checked.
PYTHON = ("python/streamgauge/**/*.py", "scripts/**/*.py", "benches/**/*.py")
RUST = ("crates/*/src/**/*.rs", "crates/*/tests/**/*.rs")
SCRIPTS = (
    *("scripts/*.sh", "benches/*.sh", ".ci/run", "Makefile", "Containerfile", "scripts/packages*.txt"),
    *("action.yml", ".github/**/*.yml", "*.toml", "crates/*/Cargo.toml", "scripts/third-party/*.toml"),
)


@dataclass(frozen=True)
class Limits:
    """Words a sentence: one in `one_in` may have more than `usual`, none more than `most`."""

    usual: int
    most: int
    one_in: int = 20


DOCS, SHORT = Limits(25, 30), Limits(15, 20)
#: A comment explains as long as it must.
COMMENTS = Limits(sys.maxsize, sys.maxsize)


@dataclass(frozen=True)
class Text:
    """One page, command or module: its name in the list of exempt ones, and its pieces of prose."""

    name: str
    kind: str
    pieces: tuple[str, ...]

    @property
    def limits(self) -> Limits:
        """Returns the limits of its kind."""
        return {"docs": DOCS, "comments": COMMENTS}.get(self.kind, SHORT)

    @property
    def sentences(self) -> list[str]:
        """Returns its sentences, pieces apart."""
        return [sentence for piece in self.pieces for sentence in sentences(piece)]


_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|al|No|Fig|Sec|approx|resp|[A-Z])\.$")
_END = re.compile(r"((?<=[.!?])[)\"'”*_]*)\s+(?=[\"'(\[*_“]*[A-Za-z0-9])")


def sentences(piece: str) -> list[str]:
    """Splits a paragraph into its sentences."""
    found: list[str] = []
    # A mark that closes a sentence, such as a bracket, belongs to it.
    for part in _END.sub(r"\1\n", " ".join(piece.split())).split("\n"):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] += f" {part}"
        elif part:
            found.append(part)
    return found


def count_words(text: str) -> int:
    """Returns the number of words; figures and names of code count, marks alone do not."""
    return sum(any(character.isalnum() for character in word) for word in text.split())


# --- where prose is -----------------------------------------------------------------------------------------
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_CODE = re.compile(r"(`+)(?!`).+?\1", re.S)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def of_markdown(text: str) -> list[str]:
    """Returns the prose of a page: paragraphs, items, headings and cells, with CODE for code and no
    addresses."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S)
    text = _COMMENT.sub("", _FENCE.sub("\n", text))
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", _CODE.sub("CODE", text)))
    pieces: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        current = ""
        for line in block.splitlines():
            if line.lstrip().startswith("|"):
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
                # A cell may list settings, which are no sentence.
                parts = [part for cell in cells for part in re.split(r";\s|,\s(?=CODE)", cell)]
                pieces += [part for part in parts if re.search(r"[A-Za-z]{2}", part)]
            elif re.match(r"\s*(?:[-*+]|\d+\.|#+|>|:::|!!!)\s", line):
                pieces.append(current)
                current = re.sub(r"^\s*(?:[-*+]|\d+\.|#+|>|:::|!!!)\s+", "", line)
            else:
                current += f" {line}"
        pieces.append(current)
    return [piece.strip() for piece in pieces if piece.strip()]


def of_help() -> Iterator[Text]:
    """Yields the help of every command: its description and its options'."""
    from streamgauge.cli.app import command

    group: Any = command()
    for name, one in [("", group), *sorted(group.commands.items())]:
        pieces = [_bare_help(part) for part in re.split(r"\n\s*\n", one.help or "")]
        pieces += [_bare_help(getattr(option, "help", None) or "") for option in one.params]
        yield Text(f"help {name}".strip(), "help", tuple(piece for piece in pieces if piece))


def _bare_help(text: str) -> str:
    """Without marks and examples."""
    if text.startswith((" ", "\b")) or re.match(r"\W*streamgauge [a-z-]", text.strip()):
        return ""
    return _CODE.sub("CODE", re.sub(r"\[/?\w+\]|[\b\\]", "", text)).strip()


def pages() -> list[Path]:
    """Returns every page that is read as prose, but for the changelog, which is history."""
    top = [file for file in ROOT.glob("*.md") if file.name != "CHANGELOG.md"]
    return sorted([*top, *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")])


def page(file: Path) -> Text:
    """Reads one page."""
    name = str(file.resolve().relative_to(ROOT))
    return Text(name, "docs", tuple(of_markdown(file.read_text(encoding="utf-8"))))


def texts() -> Iterator[Text]:
    """Everything that is checked."""
    yield from map(page, pages())
    yield from of_help()
    for file in messages.files():
        yield from (text for text in messages_of(file) if text.pieces)
    yield from (text for file in commented() if (text := comments_of(file)).pieces)


def texts_of(file: Path) -> Iterator[Text]:
    """Reads all checked texts of one file."""
    if file.suffix == ".md":
        yield page(file)
        return
    if file.resolve() in messages.files():
        yield from messages_of(file)
    yield comments_of(file)


def messages_of(file: Path) -> Iterator[Text]:
    """Reads the messages of one module or template, and apart from them the text of a page that it writes."""
    name = str(file.resolve().relative_to(ROOT))
    if file.suffix != ".j2":
        source = file.read_text(encoding="utf-8")
        found = messages.of_rust(source) if file.suffix == ".rs" else messages.of_python(source)
        yield Text(name, "messages", tuple(one.text for one in found))
    if file.suffix != ".rs" and messages.writes_a_page(file):
        yield Text(name, "docs", tuple(one.text for one in messages.read(file)))


# --- comments -----------------------------------------------------------------------------------------------
#: Comments on consecutive lines of their own, and the mark of each line.
_RUST_COMMENT = re.compile(r"(?:^[ \t]*//.*\n)+", re.M), re.compile(r"^[ \t]*//[/!]? ?", re.M)
_HASH_COMMENT = re.compile(r"(?:^[ \t]*#:?(?: .*)?\n)+", re.M), re.compile(r"^[ \t]*#:? ?", re.M)
#: A docstring begins its line, which other literals hardly ever do. To parse all modules would take seconds.
_DOCSTRING = re.compile(r'^[ \t]*r?"""(.*?)"""', re.M | re.S)
#: The name of an argument in a docstring.
_ARGUMENT = re.compile(r"^ +\w+: ", re.M)
_BLANK_LINE = re.compile(r"\n\s*\n")


def commented() -> list[Path]:
    """Returns every file with comments that are checked: all but Python's tests."""
    code = [file for pattern in PYTHON + RUST for file in ROOT.glob(pattern)]
    return sorted({*code, *(file for pattern in SCRIPTS for file in ROOT.glob(pattern))})


def comments_of(file: Path) -> Text:
    """Reads the comments of one file, and a Python file's docstrings."""
    source = file.read_text(encoding="utf-8")
    block, mark = _RUST_COMMENT if file.suffix == ".rs" else _HASH_COMMENT
    found = [mark.sub("", one) for one in block.findall(source)]
    if file.suffix == ".py":
        found += [_ARGUMENT.sub("", one) for one in _DOCSTRING.findall(source)]
    pieces = (piece for one in found for piece in _BLANK_LINE.split(_CODE.sub("CODE", one)))
    name = f"comments of {file.resolve().relative_to(ROOT)}"
    return Text(name, "comments", tuple(piece for piece in pieces if piece.strip()))


# --- the check ----------------------------------------------------------------------------------------------
def habits_in(text: str) -> dict[str, int]:
    """Counts each habit."""
    return {name: len(re.findall(pattern, text, re.I)) for name, pattern in HABITS.items()}


def faults(text: Text) -> list[str]:
    """Lists violations of the rules, each with its sentence."""
    found: list[str] = []
    long = []
    whole = text.sentences
    for sentence in whole:
        opening = re.match(r"[\"'(*_“]*(\w+)", sentence)
        if opening and opening[1] in OPENINGS:
            found.append(f"begins with {opening[1]!r}: {sentence}")
        words = count_words(sentence)
        if words > text.limits.most:
            found.append(f"{words} words, at most {text.limits.most}: {sentence}")
        elif words > text.limits.usual:
            long.append(f"{words} words, usually at most {text.limits.usual}: {sentence}")
        for pattern, better in ONE_WORD.items():
            if match := re.search(pattern, sentence, re.I):
                found.append(f"{match[0]!r}: write {better}: {sentence}")
    if len(long) > max(1, len(whole) // text.limits.one_in):
        found += long
    prose = " ".join(whole)
    allowed = max(1, count_words(prose) // WORDS_PER_HABIT)
    if (habits := sum(habits_in(prose).values())) > allowed:
        any_habit = re.compile("|".join(HABITS.values()), re.I)
        found.append(f"{habits} counted habits, at most {allowed}:")
        found += [f"  {', '.join(any_habit.findall(s))}: {s}" for s in whole if any_habit.search(s)]
    return found


def exempt() -> list[str]:
    """Returns the names in the list of exempt texts."""
    lines = EXEMPT.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def check(checked: Iterable[Text], excused: Iterable[str]) -> list[str]:
    """Returns every fault of the texts that are not excused, and every excuse that is not needed."""
    excuses, found, seen = set(excused), [], set()
    for text in checked:
        seen.add(text.name)
        mine = faults(text)
        if text.name not in excuses:
            found += [f"{text.name}: {fault}" for fault in mine]
        elif not mine:
            found.append(f"{text.name} passes: remove it from {EXEMPT.relative_to(ROOT)}")
    found += [f"{name} does not exist: remove it from {EXEMPT.relative_to(ROOT)}" for name in excuses - seen]
    return found


# --- the table ----------------------------------------------------------------------------------------------
def comments(patterns: Iterable[str]) -> str:
    """Returns the comments and docstrings of the files that match."""
    files = (file for pattern in patterns for file in sorted(ROOT.glob(pattern)))
    return "\n".join(sentence for file in files for sentence in comments_of(file).sentences)


def table() -> str:
    """Habits per 1,000 words of each kind of text, and the longest sentences of docs, as Markdown."""
    read = [text for text in texts() if text.kind != "comments"]
    prose = {
        "README": " ".join(page(ROOT / "README.md").sentences),
        **{
            kind: " ".join(s for t in read if t.kind == kind for s in t.sentences)
            for kind in ("docs", "help", "messages")
        },
        "Python's comments": comments(PYTHON),
        "Rust's comments": comments(RUST),
        "scripts' comments": comments(SCRIPTS),
    }
    lines = [f"| habit | {' | '.join(prose)} |", "|---|" + "---:|" * len(prose)]
    for habit in HABITS:
        rates = [1000 * habits_in(text)[habit] / max(1, count_words(text)) for text in prose.values()]
        lines.append(f"| {habit} | {' | '.join(f'{rate:.1f}' for rate in rates)} |")
    every = {
        kind: [s for t in read if t.kind == kind for s in t.sentences]
        for kind in ("docs", "help", "messages")
    }
    every["README"] = page(ROOT / "README.md").sentences
    columns = ["README", "docs", "help", "messages"]
    for label, counted in (
        (f"begin with {', '.join(OPENINGS[:5])}, % of sentences", lambda s: s.split(" ")[0] in OPENINGS),
        ("sentences over 30 words", lambda s: count_words(s) > 30),
        ("sentences over 45 words", lambda s: count_words(s) > 45),
    ):
        share = "%" in label
        cells = []
        for column in columns:
            n = sum(map(counted, every[column]))
            cells.append(f"{100 * n / len(every[column]):.1f}" if share else str(n))
        lines.append(f"| {label} | {' | '.join(cells)} | | | |")
    excused = exempt()
    checked = len(read) - len(excused)
    lines.append(f"\n{checked} of {len(read)} pages, commands and modules are checked, and all comments.")
    return "\n".join(lines)


def main() -> int:
    """Runs the check, or prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--table", action="store_true", help="print habits per 1,000 words")
    parser.add_argument("--failing", action="store_true", help="print the names of the texts that fail")
    asked = parser.parse_args()
    if asked.table:
        print(table())
        return 0
    if asked.failing:
        print(*(text.name for text in texts() if faults(text)), sep="\n")
        return 0
    named = (text for file in asked.files for text in texts_of(file))
    found = check(named, ()) if asked.files else check(texts(), exempt())
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
