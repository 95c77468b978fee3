"""The page and the JSON: every number of the one is in the other, every link leads somewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from streamgauge.compare import COMPARED, ComparedMetric, say_value
from streamgauge.matrix import JudgedMatrix, to_json, write_page
from streamgauge.matrix.front import front
from streamgauge.matrix.heat import heat_maps
from streamgauge.matrix.judged import MEASURES
from streamgauge.matrix.page import render
from streamgauge.report.dots import Point


class Anchors(HTMLParser):
    """The ids of a page, and where its links within it lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if told.get("id"):
            self.ids.append(str(told["id"]))
        if tag == "a" and str(told.get("href", "")).startswith("#"):
            self.links.add(str(told["href"])[1:])


@pytest.fixture(scope="module")
def page(small: JudgedMatrix) -> str:
    return render(small)


def test_links_lead_somewhere_and_ids_are_one(page: str) -> None:
    found = Anchors(page)
    assert found.links >= {"overall", "neighbours", "front", "kind-tcp-one", "kind-quiet"}
    assert found.links <= set(found.ids) and len(found.ids) == len(set(found.ids))


def test_it_needs_nothing_but_itself(page: str) -> None:
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page) and "@import" not in page


def test_values_are_those_of_the_rows(small: JudgedMatrix, page: str) -> None:
    text = page.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ")
    for one in small.kinds:
        for row in one.rows:
            if row.value is not None:
                assert say_value(row) in text, (one.kind.name, row.subject, row.metric)


def test_json_has_every_row(small: JudgedMatrix) -> None:
    told = json.loads(json.dumps(to_json(small), allow_nan=False))
    assert told["schema"] == "streamgauge.matrix/1" and told["trials"] == small.trials == 72
    rows = {(row["kind"], row["system"], row["metric"]): row for row in told["rows"]}
    assert len(rows) == sum(len(one.rows) for one in (*small.kinds, *small.overall))
    one = rows["tcp-one", "mine", "shown_rate"]
    assert (
        one["scenario"] == "small/tcp-one-mine"
        and one["unit"] == "bps"
        and one["n"] == len(one["values"]) == 6
    )
    assert one["rank"] == 1 + len(one["beaten_by"])
    assert [kind["undisturbed"] for kind in told["kinds"]] == [True, False, False]
    assert told["systems"][-1] == {"name": "mine", "label": "A system of my own", "own": True}
    assert len(told["answer"]) == 3 and all(one["evidence"] for one in told["answer"])


def test_heat_maps_are_deepest_at_the_best(small: JudgedMatrix) -> None:
    for map_ in heat_maps(small, MEASURES):
        better = COMPARED[map_.measure].better
        cells = [
            (row.value, cell.share)
            for one in small.kinds
            for heat in map_.rows
            if heat.kind == one.kind.name
            for system, cell in zip(
                small.matrix.systems, _padded(map_.systems, small, heat.cells), strict=True
            )
            if cell is not None and (row := one.row(system.name, map_.measure)) is not None
        ]
        assert cells
        ordered = sorted(cells, key=lambda pair: (pair[0] or 0.0) * (1 if better == "more" else -1))
        shares = [share for _, share in ordered]
        assert shares == sorted(shares) and all(0 <= share <= 1 for share in shares)


def _padded(labels, small, cells):  # type: ignore[no-untyped-def]
    """Cells of all systems, None of those that a map leaves out."""
    by_label = dict(zip(labels, cells, strict=True))
    return [by_label.get(system.label) for system in small.matrix.systems]


def test_a_name_with_markup_is_text(small: JudgedMatrix) -> None:
    systems = tuple(replace(one, label=f"<b>{one.label}</b> & co") for one in small.matrix.systems)
    text = render(replace(small, matrix=replace(small.matrix, systems=systems)))
    assert "<b>Plain RTP</b>" not in text and "&lt;b&gt;Plain RTP&lt;/b&gt; &amp; co" in text


def test_it_is_written_whole(small: JudgedMatrix, tmp_path: Path) -> None:
    written = write_page(small, tmp_path / "deep" / "page.html")
    assert written.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [path.name for path in written.parent.iterdir()] == ["page.html"]


def test_names_in_a_crowd_stand_apart() -> None:
    """Fourteen systems within a corner: no name covers another, and each has its point."""
    rate, harm = COMPARED["shown_rate"], COMPARED["harm"]
    points = [
        Point(f"System {place}", 3e5 + 4e3 * (place % 5), 0.2 + 0.01 * (place // 5)) for place in range(14)
    ]
    points.append(Point("Far", 1e4, 0.9))
    drawn = str(front(points, rate, harm))
    boxes = names_of(drawn)
    assert len(boxes) == 15
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert not (one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])


def names_of(drawn: str) -> list[tuple[float, float, float, float]]:
    """Where names stand in a drawing, for letters that are 6.6 wide."""
    found = []
    pattern = r'<text class="name[^"]*" x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)">([^<]*)</text>'
    for x, y, anchor, name in re.findall(pattern, drawn):
        width = 6.6 * len(name)
        left = float(x) - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        found.append((left, float(y) - 9, left + width, float(y) + 2))
    return found


@pytest.mark.parametrize("better", ["more", "less"])
def test_the_front_is_where_it_is_better(better: str) -> None:
    harm = COMPARED["harm"]
    across: ComparedMetric = replace(COMPARED["shown_rate"], better=better)  # type: ignore[arg-type]
    points = [Point("low", 1e5, 0.5), Point("high", 3e5, 0.5)]
    drawn = str(front(points, across, harm))
    first = re.findall(r'<text class="name first"[^>]*>([^<]*)<', drawn)
    assert first == (["high"] if better == "more" else ["low"])
