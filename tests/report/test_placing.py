"""Figures in a page: pictures that need no script, and data for the script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from streamgauge.report import drawers
from streamgauge.report import placing as module
from streamgauge.report.chart import COLOURS, IN_THE_DARK, DrawnFigure, lines
from streamgauge.report.placing import Placing, dark_style, slim


def figure(name: str, top: float = 3.0) -> DrawnFigure:
    rows = [(0.5 * i, top * (i % 3), series, "", "sim") for i in range(9) for series in "ab"]
    return lines(name, "Lines <&>", "As tested.", rows, y="kbit/s", series="ab", colours=COLOURS, height=90)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path_factory.mktemp("cache")))


def placed(*figures: DrawnFigure) -> str:
    with Placing() as placing:
        return placing.fill("".join(placing.place(one) for one in figures))


def test_a_page_has_its_pictures_without_a_script() -> None:
    page = placed(figure("one"), figure("two", 4.0))
    pictures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(pictures) == 2 and all("<path" in picture and "time, s" in picture for picture in pictures)
    for picture in pictures:
        ET.fromstring(picture)
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(set(ids)) == len(ids), "clip paths of two figures would be taken for each other"
    assert 'aria-label="Lines &lt;&amp;&gt;"' in page


def test_many_are_drawn_as_few_are() -> None:
    several = [figure(f"f{n}", n + 1) for n in range(module._ALONE + 1)]
    together = placed(*several)
    assert together == "".join(placed(one) for one in several)


def test_what_was_drawn_before_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = placed(figure("one"))

    def fail(*_: object, **__: object) -> str:
        raise AssertionError("drawn again")

    monkeypatch.setattr(module, "draw", fail)
    assert placed(figure("one")) == first
    with pytest.raises(AssertionError, match="drawn again"):
        placed(figure("one", 5.0))


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawers, "_MOST_BYTES", 1000)
    for n in range(8):
        drawers.keep_drawn({f"{n}": f"<svg>{'x' * 300}</svg>"})
    left = [n for n in range(8) if drawers.drawn_before(f"{n}") is not None]
    assert left and left[-1] == 7 and len(left) <= 3


def test_a_spoilt_cache_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    first = placed(figure("one"))
    for file in drawers._kept().glob("*.svg"):
        file.write_text("<svg>cut sho")
    assert placed(figure("one")) == first


def test_a_picture_loses_length_and_nothing_that_is_seen() -> None:
    from streamgauge.report.draw import draw
    from streamgauge.report.multiples import json

    whole = draw(json.dumps(figure("one").vega_lite()), {}, scale=1)
    short = slim(whole, "one")
    assert len(short) < 0.8 * len(whole)

    def seen(svg: str) -> list[tuple[str, list[tuple[float, float]]]]:
        """Words and marks with their places, in order."""
        found = []
        for element in ET.fromstring(svg).iter():
            tag = element.tag.rpartition("}")[2]
            path = element.get("d") or ""
            if tag == "text" or (tag == "path" and element.get("stroke") and path):
                found.append((element.text or "", corners(path)))
        return found

    before, after = seen(whole), seen(short)
    assert [text for text, _ in before] == [text for text, _ in after]
    assert sum(len(places) for _, places in before) > 20
    for (_, ours), (_, theirs) in zip(before, after, strict=True):
        assert [pytest.approx(place, abs=0.11) for place in ours] == theirs


def corners(path: str) -> list[tuple[float, float]]:
    """The corners of a path of lines, absolute or relative."""
    found, x, y = [], 0.0, 0.0
    for command, numbers in re.findall(r"([MLlHhVvZ])([^MLlHhVvZ]*)", path):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        match command:
            case "M" | "L":
                pairs = list(zip(values[::2], values[1::2], strict=True))
            case "l":
                pairs, at = [], (x, y)
                for dx, dy in zip(values[::2], values[1::2], strict=True):
                    at = (at[0] + dx, at[1] + dy)
                    pairs.append(at)
            case "h":
                pairs = [(x + value, y) for value in values]
            case "v":
                pairs = [(x, y + value) for value in values]
            case _:
                pairs = []
        found += pairs
        x, y = pairs[-1] if pairs else (x, y)
    return found


def test_every_colour_that_is_too_dark_has_another_in_the_dark() -> None:
    style = dark_style()
    for light, dark in IN_THE_DARK.items():
        for what in ("fill", "stroke"):
            assert f'.chart [{what}="{light}"] {{ {what}: {dark}; }}' in style
