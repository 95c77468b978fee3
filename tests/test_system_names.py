"""What holds of a system stands in its own rooms, and everybody else asks: nobody else names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from streamgauge.systems.registry import SYSTEMS, TRAFFIC

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "streamgauge"
NAMES = {*SYSTEMS, *TRAFFIC}
OWN = {"systems"}
ROOMS = sorted(folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists())


def named(source: str) -> list[tuple[int, str]]:
    """The names of systems that stand in a module as texts, with their lines; `__all__` is left out."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not _lists_names(node)]
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [(text.lineno, text.value) for text in texts if text.value in NAMES]


def _lists_names(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(to) for to in node.targets] == ["__all__"]


@pytest.mark.parametrize("room", [room for room in ROOMS if room not in OWN])
def test_no_room_names_a_system(room: str) -> None:
    modules = sorted((PACKAGE / room).rglob("*.py"))
    assert modules
    for module in modules:
        found = named(module.read_text(encoding="utf-8"))
        where = module.relative_to(PACKAGE)
        assert not found, f"{where} names {found}: ask streamgauge.systems (machines, registry) in its place"


def named_in_rust(source: str) -> list[str]:
    """Where a module names a system: as a text, or by its room."""
    names = "|".join(sorted(NAMES))
    # Without the tests of a module, which may take any system as their example.
    code = source.partition("#[cfg(test)]\nmod tests {")[0]
    found = re.finditer(rf'streamgauge_systems::({names})\b|"({names})"', code)
    return [one.group() for one in found]


@pytest.mark.parametrize("crate", ["sim", "engine"])
def test_what_drives_machines_names_no_system(crate: str) -> None:
    files = (ROOT / "crates" / crate / "src").rglob("*.rs")
    modules = sorted(file for file in files if file.name != "tests.rs")
    assert modules
    for module in modules:
        found = named_in_rust(module.read_text(encoding="utf-8"))
        assert not found, f"{module.relative_to(ROOT)} names {found}: ask streamgauge_systems in its place"


def test_a_name_is_found_where_it_stands() -> None:
    assert named('if machine == "darwin":\n    pass\n') == [(1, "darwin")]
    assert named('"""Of darwin."""\nMACHINES = (\n    "rtp",\n)\n') == [(3, "rtp")]
    assert named('__all__ = ["darwin"]\n') == []
    assert named_in_rust("use streamgauge_systems::darwin::RTSP;") == ["streamgauge_systems::darwin"]
    assert named_in_rust('if name == "rtp" {}\n#[cfg(test)]\nmod tests { "darwin" }') == ['"rtp"']
