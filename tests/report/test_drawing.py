"""The path's drawing holds its own words."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

from streamgauge.report.drawing import CHAR_W, END_W, path_drawing
from streamgauge.report.model import Entry
from streamgauge.scenario import Scenario, lower


def drawn(up: dict[str, Any], **more: dict[str, Any]) -> str:
    """The drawing for wide screens."""
    return both(up, **more).partition("</svg>")[0]


def both(up: dict[str, Any], **more: dict[str, Any]) -> str:
    scenario = Scenario.model_validate(
        {
            "id": "my/drawing",
            "title": "A drawing",
            "path": {"down": {"rate": "1 Mbit/s", "queue": "droptail 10 kB"}, "up": up},
            "flows": {"ftp": {"role": "subject", "traffic": "bulk"}, **more},
            "until": {"time": "1 s"},
        }
    )
    return path_drawing(cast("Entry", SimpleNamespace(plan=lower(scenario, "sim", 1), id=scenario.id)))


def test_a_long_way_back_stays_between_the_ends() -> None:
    long = drawn(
        {"rate": "6 Mbit/s", "queue": "droptail 225 kB", "delay": {"constant": "27 ms", "jitter": "4 ms"}}
    )
    short = drawn({})
    lines = re.findall(r'class="small">([^<]*)<', long)
    lines = lines[[line.startswith("back: ") for line in lines].index(True) :]
    assert lines[0].startswith("back: bottleneck 6") and len(lines) > 1
    width, height = (int(value) for value in re.findall(r'viewBox="0 0 (\d+) (\d+)"', long)[0])
    assert all(len(line) * CHAR_W <= width - 2 * END_W for line in lines)
    assert height > int(re.findall(r'viewBox="0 0 \d+ (\d+)"', short)[0])


def test_where_media_goes_up_both_ways_are_drawn() -> None:
    """Each with its stages in the order in which packets meet them, and who sends from which end."""
    up = {"rate": "500 kbit/s", "queue": "droptail 10 kB", "delay": "20 ms"}
    camera = {"role": "rival", "system": "rtp", "clip": "carphone-300k", "direction": "up"}
    picture = drawn(up, camera=camera)
    assert "back: " not in picture
    boxes = [
        (head, [float(part) for part in place])
        for *place, _, head in re.findall(
            r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx="4" class="(\w+)"/>'
            r'<text[^>]*class="head">([^<]*)<', picture
        )
    ]  # fmt: skip
    by_head = dict(boxes)
    assert [head for head, _ in boxes] == [
        "server&#x27;s end", "client&#x27;s end", "bottleneck", "bottleneck", "delay"
    ]  # fmt: skip
    left, right = by_head["server&#x27;s end"][0], by_head["client&#x27;s end"][0]
    (down_x, down_y, *_), (up_x, up_y, *_) = (place for head, place in boxes if head == "bottleneck")
    assert left < by_head["delay"][0] < up_x < right, "packets up meet the bottleneck first, on the right"
    assert down_y < up_y == by_head["delay"][1] and left < down_x < right
    senders = re.findall(r'class="small">(ftp|camera)<', picture)
    assert senders == ["ftp", "camera"]
    height = float(re.findall(r'viewBox="0 0 \d+ (\d+)"', picture)[0])
    assert all(y + h < height for _, (_, y, _, h) in boxes)


def test_a_wide_drawing_has_an_upright_one_beside_it() -> None:
    up = {"rate": "500 kbit/s", "queue": "droptail 10 kB", "delay": "20 ms"}
    camera = {"role": "rival", "system": "rtp", "clip": "carphone-300k", "direction": "up"}
    cross = {"role": "rival", "traffic": "cbr", "parameters": {"rate": "10 packets/s"}, "entry": "router"}
    lying, upright, rest = both(up, camera=camera, cross=cross).split("</svg>")
    assert 'class="path lying"' in lying and 'class="path upright"' in upright and not rest
    heads = re.findall(r'class="head">([^<]*)<', upright)
    ends = ["server&#x27;s end", "client&#x27;s end"]
    assert heads == [ends[0], "bottleneck", ends[1], "bottleneck", "delay", ends[0]], "in the packets' order"
    width, height = (float(value) for value in re.findall(r'viewBox="0 0 (\d+) ([\d.]+)"', upright)[0])
    boxes = [
        tuple(map(float, box))
        for box in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', upright)
    ]
    assert all(x + w <= width and y + h <= height for x, y, w, h in boxes)
    assert all(y + h < later for (_, y, _, h), (_, later, _, _) in pairwise(boxes))
    assert "cross enters here" in upright
    tips = re.findall(r'marker id="([^"]*)"', lying + upright)
    assert len(set(tips)) == 2 and all(f"url(#{tip})" in lying + upright for tip in tips)


def test_a_short_path_has_one_drawing() -> None:
    assert both({}).count("<svg") == 1
