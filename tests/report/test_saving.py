"""Figures as files: drawn by processes beside ours, as one process draws them, and once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt
import jsonschema
import pytest
from streamgauge.errors import CannotRunError
from streamgauge.report import DrawnFigure, Saving, save
from streamgauge.report import drawers as module
from streamgauge.report.chart import COLOURS, bars, lines, spec_of
from streamgauge.report.drawers import Drawers
from streamgauge.report.vega import channel, whole


def figure(name: str, top: float = 3.0, facets: tuple[str, ...] = ("",)) -> DrawnFigure:
    rows = [
        (0.5 * i, top * (i % 3), series, facet, "sim")
        for i in range(9)
        for series in "ab"
        for facet in facets
    ]
    return lines(
        name, "Lines", "As tested.", rows, y="kbit/s", series="ab", colours=COLOURS, facets=facets, height=90
    )


def files(name: str, folder: Path, *suffixes: str) -> list[Path]:
    return [folder / f"{name}{suffix}" for suffix in suffixes]


def test_processes_draw_what_we_draw(tmp_path: Path) -> None:
    drawn = [figure(f"f{n}", n + 1, ("up", "down")[: n + 1]) for n in range(2)]
    with Saving(2) as saving:
        for one in drawn:
            saving.add(one, files(one.id, tmp_path, ".svg", ".png", ".pdf"))
        written = saving.wait()
    assert written == [tmp_path / f"f{n}{suffix}" for n in range(2) for suffix in (".svg", ".png", ".pdf")]
    for one in drawn:
        for suffix in (".svg", ".png"):
            alone = save(one, tmp_path / f"alone{suffix}")
            assert alone.read_bytes() == (tmp_path / f"{one.id}{suffix}").read_bytes()
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".f")]


def drawing(one: DrawnFigure, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The suffixes that were drawn, and not left as they were."""
    asked: list[str] = []
    draw = Drawers.draw

    def listening(self: Drawers, description: str, missing: dict[str, Path], of: str) -> str:
        asked.extend(missing)
        return draw(self, description, missing, of)

    monkeypatch.setattr(Drawers, "draw", listening)
    with Saving(1) as saving:
        saving.add(one, files("f", folder, ".svg", ".png"))
        saving.wait()
    monkeypatch.undo()
    return asked


def test_what_is_there_unchanged_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawing(figure("f"), tmp_path, monkeypatch) == [".svg", ".png"]
    assert drawing(figure("f"), tmp_path, monkeypatch) == []
    before = (tmp_path / "f.png").read_bytes()
    (tmp_path / "f.png").write_bytes(before[:-1])
    assert drawing(figure("f"), tmp_path, monkeypatch) == [".png"], "cut short"
    assert (tmp_path / "f.png").read_bytes() == before
    (tmp_path / "f.svg").unlink()
    assert drawing(figure("f"), tmp_path, monkeypatch) == [".svg"], "missing"
    assert drawing(figure("f", 4.0), tmp_path, monkeypatch) == [".svg", ".png"], "other numbers"
    (tmp_path / ".drawn.json").write_text("{")
    assert drawing(figure("f", 4.0), tmp_path, monkeypatch) == [".svg", ".png"], "nothing to go by"


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "f.svg").mkdir()
    with pytest.raises(IsADirectoryError), Saving(1) as saving:
        saving.add(figure("f"), files("f", tmp_path, ".svg"))
        saving.wait()


def test_a_process_that_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ends.py"
    program.write_text("import sys; sys.stdin.readline(); sys.exit(7)\n")
    monkeypatch.setattr(module.draw, "__file__", str(program))
    with (
        pytest.raises(CannotRunError, match=r"ended with status 7 at .*f\.svg\. .*free some memory"),
        Saving(1) as saving,
    ):
        saving.add(figure("f"), files("f", tmp_path, ".svg"))
        saving.wait()


def test_clip_paths_are_counted_anew_in_each_figure(tmp_path: Path) -> None:
    first, second = (save(figure("f"), tmp_path / f"{n}.svg").read_bytes() for n in range(2))
    assert first == second and b"url(#clip0)" in first


@pytest.mark.parametrize(
    "made",
    [
        figure("f"),
        figure("f", facets=("one", "two")),
        bars("b", "B", "", [("c", 1.0, "k", p, 0.5, 1.5) for p in "pq"], y="%", kinds=("k",)),
    ],
)
def test_descriptions_are_vega_lite(made: DrawnFigure) -> None:
    assert made.spec["$schema"] == alt.SCHEMA_URL
    assert alt.Chart.from_dict(dict(made.spec), validate=True) is not None
    assert alt.Chart.from_dict(made.vega_lite(), validate=True) is not None
    with pytest.raises(jsonschema.ValidationError):
        alt.Chart.from_dict({**made.spec, "width": {"metres": 3}}, validate=True)


def test_a_channel_is_altair_s() -> None:
    plain: dict[str, Any] = {
        "mark": {"type": "line"},
        "encoding": {
            "x": channel("t:Q", title="s", axis={"tickCount": 3}),
            "color": channel("s:N", sort=["a"]),
        },
    }
    source = alt.Chart(alt.NamedData(name="source"))
    encoded = source.mark_line().encode(
        x=alt.X("t:Q", title="s", axis=alt.Axis(tickCount=3)), color=alt.Color("s:N", sort=["a"])
    )
    assert json.loads(json.dumps(whole(plain))) == spec_of(encoded)
