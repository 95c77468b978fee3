"""Imports point one way, in Python and in Rust, so that each room can be read and used alone. Between crates
`crates/sim/tests/import_graph.rs` sees to it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
import streamgauge
from rust_modules import Module, uses_between_files, uses_between_siblings

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "streamgauge"
CRATES = ROOT / "crates"

# Each room of the package and the rooms that it may import. Those of
# `OPEN_TO_ALL` may be imported anywhere.
MAY_IMPORT: dict[str, set[str]] = {
    "captures": {"campaign", "checks", "metrics", "qlog", "record", "scenario"},
    "qlog": {"record"},
    "claims": set(),
    "documents": set(),
    "media": set(),
    "record": set(),
    "systems": set(),
    "scenario": {"claims", "media", "systems"},
    "metrics": {"claims", "media", "record", "scenario", "systems"},
    "checks": {"claims", "metrics", "record", "scenario"},
    "emu": {"claims", "media", "record", "scenario", "systems"},
    "campaign": {"checks", "claims", "documents", "emu", "media", "metrics", "record", "scenario", "systems"},
    "live": {"campaign", "claims", "emu", "scenario", "systems"},
    "link_command": {"live", "campaign", "claims", "emu", "metrics", "record", "scenario"},
    "gateway": {"emu", "link_command"},
    "compare": {"campaign", "claims", "documents", "metrics", "scenario", "systems"},
    "report": {
        "campaign",
        "compare",
        "checks",
        "claims",
        "documents",
        "media",
        "metrics",
        "record",
        "scenario",
        "systems",
    },
    "matrix": {"campaign", "claims", "compare", "documents", "metrics", "report", "scenario", "systems"},
    "calibrate": {"emu", "live", "record", "report"},
    "paper": {
        "campaign",
        "checks",
        "claims",
        "documents",
        "metrics",
        "record",
        "report",
        "scenario",
        "systems",
    },
    "infer": {
        "campaign",
        "checks",
        "claims",
        "documents",
        "metrics",
        "paper",
        "report",
        "scenario",
        "systems",
    },
    "evaluate": {
        "campaign",
        "checks",
        "claims",
        "compare",
        "documents",
        "metrics",
        "record",
        "report",
        "scenario",
        "systems",
    },
    "sweeps": {"campaign", "claims", "metrics", "report", "scenario", "systems"},
    "latency_table": {"campaign", "documents", "metrics", "record", "report", "scenario", "systems"},
    "two_phases": {"campaign", "metrics", "report"},
    "crosscheck": {
        "campaign",
        "claims",
        "emu",
        "media",
        "metrics",
        "record",
        "report",
        "scenario",
        "systems",
    },
    "notebook": {
        "campaign",
        "checks",
        "claims",
        "compare",
        "metrics",
        "record",
        "report",
        "scenario",
        "sweeps",
        "systems",
    },
    "cli": {
        "live",
        "link_command",
        "gateway",
        "calibrate",
        "campaign",
        "captures",
        "checks",
        "claims",
        "compare",
        "crosscheck",
        "documents",
        "emu",
        "evaluate",
        "infer",
        "latency_table",
        "matrix",
        "media",
        "metrics",
        "paper",
        "qlog",
        "record",
        "report",
        "scenario",
        "sweeps",
        "systems",
        "two_phases",
    },
}
OPEN_TO_ALL = {"errors", "input_files", "installed", "processors", "terminal", "units"}


def circle(uses: Mapping[str, Iterable[str]]) -> str:
    """One circle among what uses what, as ``a -> b -> a``; empty if there is none."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def modules_of(package: Path) -> dict[str, Path]:
    """A package's modules by their full names; a package of its own has the name of its folder."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imports_of(name: str, source: str, modules: Mapping[str, Path]) -> set[str]:
    """The other modules that the module `name` imports: at its top, in functions and for type checkers alone.

    An import runs the ``__init__`` of every package on the way, so it counts for those as well, but for the
    packages that the module itself is in.
    """
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{name}, line {node.lineno}: a relative import"
            full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found.update(whole if whole in modules else node.module for whole in full.values())
    parts = [imported.split(".") for imported in found]
    on_the_way = {".".join(part[:end]) for part in parts for end in range(1, len(part))}
    own = {name, *(name[:end] for end, character in enumerate(name) if character == ".")}
    return ({imported for imported in found if imported != name} | (on_the_way - own)) & set(modules)


MODULES = modules_of(PACKAGE)
IMPORTS = {name: imports_of(name, path.read_text("utf-8"), MODULES) for name, path in MODULES.items()}


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_imports_count_wherever_they_are() -> None:
    source = """
from typing import TYPE_CHECKING
import streamgauge.units
if TYPE_CHECKING:
    from streamgauge.record import read
def late():
    from streamgauge.claims.names import METRICS
"""
    assert imports_of("streamgauge.scenario.late", source, MODULES) == {
        "streamgauge.units",
        "streamgauge.record",
        "streamgauge.record.read",
        "streamgauge.claims",
        "streamgauge.claims.names",
    }


def test_few_modules_are_imported_by_a_text() -> None:
    """Such an import is hidden from the tests above. `claims.names` looks up the table of metrics, whose
    rooms are above it; the others offer names of modules below them."""
    found = {name for name, path in MODULES.items() if "import_module(" in path.read_text("utf-8")}
    assert found == {"streamgauge", "streamgauge.calibrate", "streamgauge.claims.names", "streamgauge.emu"}


def test_no_circle_between_modules() -> None:
    assert circle(IMPORTS) == ""


def test_no_circle_between_rooms() -> None:
    assert circle(MAY_IMPORT) == ""


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_imports_point_one_way(room: str) -> None:
    mine = [name for name in MODULES if room_of(name) == room]
    assert mine, f"{PACKAGE / room} is empty"
    for name in mine:
        rooms = {room_of(imported) for imported in IMPORTS[name]}
        forbidden = rooms - MAY_IMPORT[room] - OPEN_TO_ALL - {"", room}
        assert not forbidden, f"{name} imports {sorted(forbidden)}"


def test_what_is_open_to_all_imports_no_room() -> None:
    for name in OPEN_TO_ALL:
        assert {room_of(imported) for imported in IMPORTS[f"streamgauge.{name}"]} <= OPEN_TO_ALL
    assert not IMPORTS["streamgauge"]


def test_the_package_offers_names_of_the_notebook_that_it_does_not_import() -> None:
    """`streamgauge.run` and others are looked up when they are asked for, so that the package itself stays
    below all rooms, and its import quick. Its stub, which alone tells editors what they are, names the same;
    no name is a room's, which would take its place when it is imported."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text("utf-8"))
    stub = {
        alias.name: node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert stub == streamgauge._PLACES
    assert set(stub.values()) == {"streamgauge.notebook", "streamgauge.errors"}
    assert not any("notebook" in rooms for rooms in MAY_IMPORT.values())
    assert not set(stub) & (set(MAY_IMPORT) | {name.partition(".")[2] for name in MODULES})
    asked = (
        "import sys, streamgauge; dir(streamgauge); print(*(m for m in sys.modules if 'streamgauge' in m))"
    )
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["streamgauge"]


def test_a_start_of_the_program_imports_no_room_but_its_own() -> None:
    """As for `--help`: what a command does is imported when it runs."""
    asked = "import sys; from streamgauge.cli.app import command; command(); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert {room_of(name) for name in loaded if name.startswith("streamgauge.")} <= {"cli", *OPEN_TO_ALL}
    assert not loaded & {"altair", "numpy", "polars", "pydantic", "scipy"}


def test_every_room_is_in_the_table() -> None:
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert rooms == set(MAY_IMPORT)


def crates() -> list[Path]:
    return sorted(manifest.parent for manifest in CRATES.glob("*/Cargo.toml"))


@pytest.mark.parametrize("crate", crates(), ids=lambda crate: crate.name)
def test_no_circle_between_a_crates_modules(crate: Path) -> None:
    """Among the children of every module, each with what is below it; `rust_modules` says what counts."""
    for module, uses in uses_between_siblings(crate / "src").items():
        found = circle(uses)
        assert not found, f"in crates/{crate.name}, {'::'.join(module) or 'the root'}: {found}"


def test_rust_uses_are_followed_to_where_a_name_is_defined(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod a;\nmod b;\npub use a::{self as first, A};\n#[cfg(test)]\nmod tests;",
        "a/mod.rs": "mod inner;\npub use inner::{Inner, MOST as LIMIT};\npub struct A { b: crate::b::B }",
        "a/inner.rs": "pub struct Inner;\npub const MOST: u8 = 1; // crate::b::B\n"
        'const S: &str = "crate::b::B";',
        "b.rs": "use crate::{first::{Inner, LIMIT}, A};\npub struct B;\n"
        "#[cfg(test)]\nmod tests { use crate::c::C; }\nfn f() -> A { std::mem::take(super::first::LIMIT) }",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    a, b, inner = ("a",), ("b",), ("a", "inner")
    used: dict[Module, set[Module]] = {(): set(), a: {b}, inner: set(), b: {a, inner}}
    assert uses_between_files(tmp_path) == used
    (between,) = uses_between_siblings(tmp_path).values()
    assert between == {"a": {"b"}, "b": {"a"}}
    assert circle(between) in ("a -> b -> a", "b -> a -> b")


def test_text_of_programs_and_files_is_utf_8_whatever_the_locale() -> None:
    """A locale without it made a copyright sign in ffmpeg's first line an internal error."""
    found = [
        file
        for file in PACKAGE.rglob("*.py")
        if re.search(r"\b(text|universal_newlines)=True", file.read_text("utf-8"))
    ]
    assert found == []


def test_contributing_names_every_place() -> None:
    places = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[3]
    rooms = [folder for folder in PACKAGE.iterdir() if folder.is_dir() and folder.name[0] not in "_."]
    missing = [f"{folder.name}/" for folder in rooms if f"{folder.name}/" not in places]
    missing += [f"crates/{folder.name}" for folder in crates() if f"crates/{folder.name} " not in places]
    assert not missing


def test_files_that_the_pages_on_the_code_name_exist() -> None:
    page, code_map = (
        (ROOT / "docs" / name).read_text("utf-8") for name in ("architecture.md", "code-map.md")
    )
    named = set(re.findall(r"`((?:benches|catalogue|crates|python|tests)[\w./-]*)`", page + code_map))
    assert len(named) > 50
    # Two screens with the drawing; details belong to the map.
    assert len(page.split()) < 450
    assert not sorted(name for name in named if not (ROOT / name).exists())


def test_each_crate_forbids_unsafe_code_unless_it_calls_the_kernel_or_the_processor() -> None:
    needs_it = {"engine"}
    marks_each_place = {"sim"}
    for root in sorted(CRATES.iterdir()):
        text = "".join(file.read_text() for file in sorted((root / "src").rglob("*.rs")))
        has_unsafe = re.search(r"\bunsafe (\{|fn|impl|extern)", text) is not None
        assert has_unsafe == (root.name in needs_it | marks_each_place), root.name
        if root.name not in needs_it:
            level = "deny" if root.name in marks_each_place else "forbid"
            assert f"#![{level}(unsafe_code)]" in (root / "src" / "lib.rs").read_text(), root.name
