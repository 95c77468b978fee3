"""Parts of other installed packages join our tables; those that cannot are refused by the package's name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from installing import write_metadata
from streamgauge import installed
from streamgauge.claims.declaration import ComparedBy, Margin, Metric, declared
from streamgauge.claims.dimension import TIME
from streamgauge.errors import CannotRunError
from streamgauge.installed import JoinedTable

GROUP = "streamgauge.tests"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path for packages."""
    monkeypatch.syspath_prepend(tmp_path)
    installed.parts.cache_clear()
    before = set(sys.modules)
    yield tmp_path
    installed.parts.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def numbers(own: dict[str, int]) -> JoinedTable[int]:
    def read(name: str, found: Any) -> dict[str, int]:
        if not isinstance(found, int):
            raise ValueError(f"{found!r} is no number")
        return {name: found}

    return JoinedTable(GROUP, lambda: own, read, lambda number: number < 100)


def test_parts_of_packages_follow_our_own(folder: Path) -> None:
    (folder / "theirs.py").write_text("TWO, MANY = 2, 1000\n")
    write_metadata(folder, "their-numbers", "1.2", {GROUP: {"two": "theirs:TWO", "many": "theirs:MANY"}})
    table = numbers({"one": 1, "most": 100})
    assert table.known_names() == ("one", "many", "two")
    assert "theirs" not in sys.modules, "names alone load nothing"
    assert table["one"] == 1 and "theirs" not in sys.modules, "our own need no package"
    assert dict(table) == {"one": 1, "two": 2} and len(table) == 2
    assert "two" in table and "many" not in table and table.get("three") is None
    assert (table.package_of("two"), table.package_of("one")) == ("their-numbers 1.2", "")
    assert table.packages() == ("their-numbers 1.2",)


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (None, "ModuleNotFoundError: No module named 'unusable'"),
        ("", "AttributeError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("PART = 'x'", "'x' is no number"),
        ("PART = 5", "'one' is a name of streamgauge itself; choose another"),
    ],
)
def test_a_package_that_cannot_be_used_is_named(folder: Path, module: str | None, why: str) -> None:
    if module is not None:
        (folder / "unusable.py").write_text(module + "\n")
    write_metadata(folder, "broken-package", "0.1", {GROUP: {"one": "unusable:PART"}})
    with pytest.raises(CannotRunError) as caught:
        list(numbers({"one": 1}))
    text = str(caught.value)
    assert text.startswith(f"package broken-package 0.1, entry point {GROUP}: one = unusable:PART: ")
    assert why in text and text.endswith("Mend it, or remove it (`pip uninstall broken-package`).")


def measure(trial: object, flow: int) -> None:
    """Stands in for a function."""


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": "a b", "of": "flow", "flow": measure}, "'a b' is no name of a metric"),
        ({"name": "a", "of": "flow or stage", "flow": measure}, "give `stage=`"),
        ({"name": "a", "of": "stage", "stage": measure, "flow": measure}, "leave `flow=` out"),
        (
            {"name": "a", "of": "flow", "flow": measure, "compared": (ComparedBy("flow", 1, "a", Margin()),)},
            "give `better=`",
        ),
    ],
)
def test_a_declaration_that_lacks_something_is_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why.replace("(", r"\(")):
        declared(Metric(dimension=TIME, title="A", **given))


def test_two_metrics_of_one_name_are_refused() -> None:
    one, other = (Metric("a", TIME, "flow", title, flow=measure) for title in ("A", "B"))
    with pytest.raises(ValueError, match="two metrics are called 'a'"):
        declared(one, other)


def test_keys_in_json_have_the_unit_by_default() -> None:
    assert Metric("a", TIME, "flow", "A", flow=measure).keys == {"a_s": "mean"}
