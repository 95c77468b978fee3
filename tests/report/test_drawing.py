"""The path's drawing holds its own words."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, cast

from streamgauge.report.drawing import CHAR_W, END_W, path_drawing
from streamgauge.report.model import Entry
from streamgauge.scenario import Scenario, lower


def drawn(up: dict[str, Any]) -> str:
    scenario = Scenario.model_validate(
        {
            "id": "my/drawing",
            "title": "A drawing",
            "path": {"down": {"rate": "1 Mbit/s", "queue": "droptail 10 kB"}, "up": up},
            "flows": {"ftp": {"role": "subject", "traffic": "bulk"}},
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
