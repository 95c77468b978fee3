"""The Python package's imports point one way, so that each room can be read and used alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "streamgauge"

# Each room and the rooms that it may import. Anything not listed here (errors, units) is open to all.
MAY_IMPORT: dict[str, set[str]] = {
    "scenario": {"checks", "media", "metrics", "systems"},
    "media": set(),
    "record": set(),
    "systems": {"media", "scenario"},
    "metrics": {"media", "record", "scenario", "systems"},
    "checks": {"metrics", "record", "scenario"},
    "emu": {"media", "record", "scenario", "systems"},
    "around": {"campaign", "emu", "metrics", "record", "scenario"},
    "calibrate": {"emu", "record", "report"},
    "campaign": {"checks", "emu", "media", "metrics", "record", "scenario", "systems"},
    "report": {"campaign", "checks", "media", "metrics", "record", "scenario", "systems"},
    "paper": {"campaign", "checks", "metrics", "report", "scenario", "systems"},
    "crosscheck": {"campaign", "emu", "metrics", "record", "report", "scenario", "systems"},
    "cli": {
        "around",
        "calibrate",
        "campaign",
        "checks",
        "crosscheck",
        "emu",
        "media",
        "metrics",
        "paper",
        "record",
        "report",
        "scenario",
        "systems",
    },
}


def imported_rooms(path: Path) -> set[str]:
    """Rooms of our package that a module imports, anywhere in it except under ``if TYPE_CHECKING``."""
    tree = ast.parse(path.read_text(), str(path))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    rooms = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "streamgauge" and len(parts) > 1:
                rooms.add(parts[1])
    return rooms & set(MAY_IMPORT)


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_imports_point_one_way(room: str) -> None:
    folder = PACKAGE / room
    modules = sorted(folder.rglob("*.py"))
    assert modules, f"{folder} is empty"
    for module in modules:
        forbidden = imported_rooms(module) - MAY_IMPORT[room] - {room}
        assert not forbidden, f"{module.relative_to(PACKAGE)} imports {sorted(forbidden)}"


def test_every_room_is_in_the_table() -> None:
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert rooms <= set(MAY_IMPORT)


def test_contributing_names_every_place() -> None:
    root = PACKAGE.parents[1]
    places = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```")[3]
    rooms = [folder for folder in PACKAGE.iterdir() if folder.is_dir() and folder.name[0] not in "_."]
    crates = [folder for folder in (root / "crates").iterdir() if (folder / "Cargo.toml").exists()]
    missing = [f"{folder.name}/" for folder in rooms if f"{folder.name}/" not in places]
    missing += [f"crates/{folder.name}" for folder in crates if f"crates/{folder.name} " not in places]
    assert not missing
