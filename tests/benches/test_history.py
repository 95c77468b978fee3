"""The history of benchmarks: which figures moved beyond their noise, and how a release is kept and found."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "benches"))
history: Any = importlib.import_module("history")
figures: Any = importlib.import_module("figures")


def relative(*values: float) -> dict[str, Any]:
    return {"a": {"unit": "ms", "values": list(values), "relative": list(values)}}


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ((1.0, 1.1, 1.2), (1.5, 1.6, 1.7), "+45 %"),
        ((1.0, 1.1, 1.2), (0.5, 0.6, 0.7), "-45 %"),
        ((1.0, 1.1, 1.6), (1.5, 1.6, 1.7), ""),  # the rounds overlap
        ((1.0, 1.0, 1.0), (1.04, 1.04, 1.04), ""),  # apart, and by less than 5 %
    ],
)
def test_a_figure_moves_only_beyond_its_noise(
    before: tuple[float, ...], now: tuple[float, ...], change: str
) -> None:
    found = [str(one) for one in history.moved(relative(*before), relative(*now))]
    assert len(found) == bool(change)
    assert all(change in one for one in found)


def test_a_figure_without_a_past_did_not_move() -> None:
    assert list(history.moved({}, relative(1.0))) == []


def test_the_newest_release_is_that_of_the_highest_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "HISTORY", tmp_path)
    assert history.last_release() is None
    for version in ("0.10.0", "0.9.0"):
        (tmp_path / f"{version}.json").write_text(
            json.dumps({"schema": history.SCHEMA, "figures": relative(1.0)})
        )
    version, found = history.last_release()
    assert version == "0.10.0" and found == relative(1.0)
    (tmp_path / "0.11.0.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"0\.11\.0\.json.*--save"):
        history.last_release()


def test_every_tracked_bench_is_there_and_prints_a_document() -> None:
    for name, *_ in history.BENCHES.values():
        assert '"--json"' in (ROOT / "benches" / name).read_text("utf-8")
    assert json.loads(figures.document("ms", {"a": 1.5})) == {
        "schema": figures.SCHEMA,
        "figures": {"a": {"value": 1.5, "unit": "ms"}},
    }


def test_kept_releases_can_be_read() -> None:
    for path in sorted((ROOT / "benches" / "history").glob("*.json")):
        kept = json.loads(path.read_text("utf-8"))
        assert kept["schema"] == history.SCHEMA and kept["version"] == path.stem
        assert all(len(one["values"]) == len(one["relative"]) >= 3 for one in kept["figures"].values())
