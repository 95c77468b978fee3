"""One word names one thing: the glossary of CONTRIBUTING.md holds, no public type has the name of
another room's, and words that named several things, or that nobody uses, do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "streamgauge"
CRATES = ROOT / "crates"

# Two rooms that may not import each other name the same thing: the one meaning of each.
SAME_THING = {
    "Keep": "which of a trial's rows are left: asked, planned, written",
    "CloseReason": "why a stream ended, as TCP says it and as a machine is told",
    "Verdict": "pass, fail or inconclusive: of a check, and of all checks of a campaign",
}
# Words that are gone, and what is said in their place.
GONE = {
    "deed": "scheduled",
    "around": "link_command",
    "together": "concurrency, ConcurrentTrials",
    "fates": "FateSink, and a sink of its own name; of what a player shows: PlayoutStats",
    "lane": "ClockedPath, ReplayPath, RtpTransport",
}

_DEFINED = re.compile(r"^(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:struct|enum|trait|type|union) (\w+)", re.M)
_EXPORTED = re.compile(r"^pub (?:unsafe )?(?:struct|enum|trait|type|union) (\w+)", re.M)
_EXPORTS = re.compile(r"^pub use ([^;]+);", re.M)
_OPEN = re.compile(r"^((?:#\[[^\n]*\]\n)*)pub mod (\w+);", re.M)


class Entry(NamedTuple):
    """A row of the glossary: its types and the files that define them."""

    word: str
    types: list[str]
    files: list[str]


def glossary(text: str) -> list[Entry]:
    """The rows of the table under "Words"."""
    section = text.split("\n## Words\n", 1)[1].split("\n## ", 1)[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or cells[0] in ("word", "---"):
            continue
        names = re.findall(r"`([^`]+)`", cells[2])
        found.append(Entry(cells[0], [n for n in names if "/" not in n], [n for n in names if "/" in n]))
    return found


def sources(root: Path) -> dict[str, str]:
    """What ships: path to text, of Rust without tests and benches, and of Python's package."""
    files = [*(root / "crates").glob("*/src/**/*.rs"), *(root / "python" / "streamgauge").rglob("*.py")]
    kept = [f for f in files if f.name != "tests.rs" and "tests" not in f.parts and "testing" not in f.parts]
    return {str(f.relative_to(root)): f.read_text(encoding="utf-8") for f in sorted(kept)}


def defined(path: str, text: str) -> set[str]:
    """The types that a file defines at its top."""
    if path.endswith(".rs"):
        return set(_DEFINED.findall(text))
    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and _constructor(node.value) in ("Annotated", "Literal"):
            # A choice, such as ``Keep = Literal["all", "none"]``; a shape of NumPy's is no word of ours.
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@cache
def homes_of_types() -> dict[str, set[str]]:
    """The types that each file of what ships defines."""
    return {path: defined(path, text) for path, text in sources(ROOT).items()}


def _constructor(value: ast.expr) -> str:
    """``Literal`` of ``Literal["a"] | None``; empty for what is no alias."""
    while isinstance(value, ast.BinOp):
        value = value.left
    of = value.value if isinstance(value, ast.Subscript) else value
    return of.id if isinstance(of, ast.Name) else ""


def open_to_others(crate: Path) -> set[str]:
    """The names of types that a library crate gives to others."""
    return set(_open_of(crate / "src", "lib"))


def _open_of(folder: Path, module: str) -> Iterator[str]:
    beside = folder / f"{module}.rs"
    within = folder if module == "lib" else folder / module
    text = (beside if beside.exists() else within / "mod.rs").read_text(encoding="utf-8")
    yield from _EXPORTED.findall(text)
    for tree in _EXPORTS.findall(text):
        if not tree.startswith("streamgauge_"):
            # Last segments, after `as` too. What is no type is lower case.
            yield from (name for name in re.findall(r"\b([A-Z]\w*[a-z]\w*)\b(?! as)", tree))
    for attributes, name in _OPEN.findall(text):
        if "test" not in attributes and name != "testing":
            yield from _open_of(within, name)


def shared(rooms: dict[str, set[str]]) -> dict[str, list[str]]:
    """Names that more than one room has, with the rooms."""
    every = sorted(set().union(*rooms.values()))
    homes = {name: sorted(room for room in rooms if name in rooms[room]) for name in every}
    return {name: found for name, found in homes.items() if len(found) > 1}


def words_of(identifier: str) -> list[str]:
    """``next_deed`` and ``NextDeed`` are next and deed."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def gone_in(names: Iterable[str]) -> list[str]:
    """Those that have a word in them that is gone, in the singular or the plural."""
    plural = {f"{word}s" for word in GONE}
    return sorted(name for name in names if {*GONE, *plural} & set(words_of(name)))


GLOSSARY = glossary((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def test_the_glossary_is_read() -> None:
    words = {entry.word for entry in GLOSSARY}
    assert {"link", "path", "session", "transport", "clip", "job", "fate"} <= words
    assert len(words) == len(GLOSSARY), "a word stands twice"


@pytest.mark.parametrize("entry", GLOSSARY, ids=lambda entry: entry.word)
def test_a_word_of_the_glossary_is_defined_where_it_says_and_nowhere_else(entry: Entry) -> None:
    assert entry.types and entry.files
    homes = homes_of_types()
    for name in entry.types:
        found = {path for path, names in homes.items() if name in names}
        assert found, f"nobody defines {name}"
        assert found <= set(entry.files), f"{name} has another meaning in {sorted(found - set(entry.files))}"
    for path in entry.files:
        assert homes[path] & set(entry.types), f"{path} does not define {entry.types}"


def test_no_two_crates_give_others_types_of_one_name() -> None:
    crates = [crate for crate in CRATES.iterdir() if (crate / "src" / "lib.rs").exists()]
    found = shared({crate.name: open_to_others(crate) for crate in crates if crate.name != "python"})
    assert {"Path", "Stage"} <= open_to_others(CRATES / "path")
    assert {name: rooms for name, rooms in found.items() if name not in SAME_THING} == {}


def test_no_two_rooms_have_classes_of_one_name() -> None:
    rooms: dict[str, set[str]] = {}
    for path, text in sources(ROOT).items():
        if path.endswith(".py"):
            room = Path(path).parts[2]
            public = {name for name in defined(path, text) if not name.startswith("_")}
            rooms.setdefault(room, set()).update(public)
    assert {name: found for name, found in shared(rooms).items() if name not in SAME_THING} == {}


def test_words_that_are_gone_stay_gone() -> None:
    for path, text in sources(ROOT).items():
        names = [*Path(path).with_suffix("").parts, *defined(path, text)]
        assert gone_in(names) == [], f"{path}: say {GONE} in their place"


def test_what_would_be_wrong_is_found(tmp_path: Path) -> None:
    assert gone_in(["NextDeed", "deeds", "Lanes", "around", "planes", "ground", "Indeed"]) == [
        "Lanes",
        "NextDeed",
        "around",
        "deeds",
    ]
    assert shared({"a": {"One", "Two"}, "b": {"Two"}, "c": set()}) == {"Two": ["a", "b"]}
    assert defined("x.py", "class A:\n    class B: ...\nC = Literal['x']\nD = 3\nE = g[1]\n") == {"A", "C"}
    assert defined("x.rs", "pub struct A;\n    type Item = u8;\nenum B {}\n") == {"A", "B"}
    table = "\n## Words\n\n| word | means | type |\n|---|---|---|\n| x y | z | `X` in `a/b.rs` |\n\n## More\n"
    assert glossary(table) == [Entry("x y", ["X"], ["a/b.rs"])]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").write_text("mod a;\npub mod b;\npub use a::{A, make, C as D};\n")
    (tmp_path / "src" / "a.rs").write_text("pub struct A1;\npub struct Ab;\n")
    (tmp_path / "src" / "b.rs").write_text("pub struct Bb;\nstruct Hidden;\n")
    assert open_to_others(tmp_path) == {"Bb"}
