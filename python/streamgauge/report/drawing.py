"""The path as a drawing: inline SVG with the page's colours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from streamgauge.report.model import Entry
from streamgauge.report.stages import stage_words
from streamgauge.report.words import goes_up, tie

BOX_W, GAP, LINE = 168, 46, 15
END_W = 96
TOP, LEFT, BETWEEN = 40, 8, 28
NARROW = 620
"""A drawing wider than this has another form for narrow screens, upright."""
UPRIGHT_W, UPRIGHT_GAP = 340, 26
CHARS = 24
CHAR_W = 6.6
"""Width of a character in the small type, on the mean and a little more."""


def path_drawing(entry: Entry) -> str:
    """Draws the path from server to player and back, with the settings of each stage and the flows that enter
    at each place.

    The reverse direction is a line, unless media travels in it.

    Returns:
        An ``<svg>`` element, and if it is wide a second, upright, of which the page's style shows one; their
        classes are styled there too.
    """
    path = entry.plan.get("path") or {}
    down, up = (_boxes(path.get(way) or []) for way in ("down", "up"))
    flows = entry.plan.get("flows") or []
    at_client = [str(flow["name"]) for flow in flows if goes_up(flow)]
    at_server = [str(flow["name"]) for flow in flows if flow.get("entry") != "router" and not goes_up(flow)]
    at_router = [str(flow["name"]) for flow in flows if flow.get("entry") == "router"]
    relays = {
        end: [f"{relay['name']} (relay)" for relay in entry.plan.get("relays") or [] if relay["at"] == end]
        for end in ("server", "client")
    }
    ends = {"server": [*relays["server"], *at_server], "client": [*relays["client"], *at_client]}
    columns = max(len(down), len(up), 1)
    box_h = max([74, *(box.height for box in down)])
    width = 2 * LEFT + 2 * END_W + columns * BOX_W + (columns + 1) * GAP
    left, right = LEFT + END_W, width - LEFT - END_W
    if at_client:
        back_h = max([46, *(box.height for box in up)])
        back_y = TOP + box_h + BETWEEN
        back = _row(up, back_y, back_h, right, left)
        bottom = back_y + back_h + LEFT
    else:
        said = "; ".join(f"{box.head} {box.setting}" for box in up) or "plain wire"
        back_y = TOP + box_h + 32
        lines = _wrap([f"back: {said}"], int((right - left) / CHAR_W))
        back = [_arrow(right, back_y, left)]
        back += [_text(width / 2, back_y + 17 + nth * LINE, line) for nth, line in enumerate(lines)]
        bottom = back_y + 18 + (len(lines) - 1) * LINE
    ends_h = bottom - TOP
    heads = ("server's end", "client's end") if at_client else ("server", "player")
    parts = [
        _box(LEFT, TOP, END_W, ends_h, heads[0], _wrap(ends["server"], 13)[:6], "end"),
        _box(right, TOP, END_W, ends_h, heads[1], _wrap(ends["client"], 13)[:6], "end"),
        *_row(down, TOP, box_h, left, right, at_router),
        *back,
    ]
    drawn = _svg(entry, "path" if width <= NARROW else "path lying", width, bottom + 16, parts)
    if width <= NARROW:
        return drawn
    boxes = [_Stage(heads[0], "", _wrap(ends["server"], CHARS), False), *down]
    boxes += [_Stage(heads[1], "", _wrap(ends["client"], CHARS), False)]
    if at_client:
        boxes += [*up, _Stage(heads[0], "", [], False)]
        back_words = ""
    else:
        back_words = "back: " + ("; ".join(f"{box.head} {box.setting}" for box in up) or "plain wire")
    return drawn + _upright(entry, boxes, at_router, back_words)


def _svg(entry: Entry, classes: str, width: float, height: float, parts: Sequence[str]) -> str:
    # Each has a tip of its own: that of another may be hidden.
    tip = re.sub(r"\W+", "-", f"tip {entry.id} {classes}")
    inside = "".join(parts).replace("url(#tip)", f"url(#{tip})")
    return (
        f'<svg class="{classes}" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escape(f"Path of {entry.id}")}">'
        f'<defs><marker id="{tip}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>{inside}</svg>'
    )


def _upright(entry: Entry, boxes: Sequence[_Stage], entering: Sequence[str], back: str) -> str:
    """Returns the same from above to below, for narrow screens."""
    parts: list[str] = []
    x, y = float(LEFT), float(LEFT)
    for place, box in enumerate(boxes):
        kind = "tight" if box.is_bottleneck else "stage" if box.setting else "end"
        if place:
            parts.append(
                f'<path class="line" d="M{x + BOX_W / 2:g} {y:g}v{UPRIGHT_GAP - 1}" marker-end="url(#tip)"/>'
            )
            y += UPRIGHT_GAP
        parts.append(_box(x, y, BOX_W, box.height, box.head, box.lines, kind))
        if box.is_bottleneck and entering:
            # The first bottleneck alone, where there are several.
            middle, edge = y + box.height / 2, x + BOX_W
            begin = UPRIGHT_W - LEFT
            parts.append(
                f'<path class="line rival" d="M{begin} {middle:g}H{edge + 2:g}" marker-end="url(#tip)"/>'
            )
            words = _wrap([f"{', '.join(entering)} enters here"], 20)
            parts += [
                f'<text x="{edge + 14:g}" y="{middle - 8 - LINE * (len(words) - 1 - nth):g}" class="rival">'
                f"{escape(line)}</text>"
                for nth, line in enumerate(words)
            ]
            entering = ()
        y += box.height
    for line in _wrap([back], int(UPRIGHT_W / CHAR_W)) if back else []:
        y += LINE + 3
        parts.append(f'<text x="{x:g}" y="{y:g}" class="small">{escape(line)}</text>')
    return _svg(entry, "path upright", UPRIGHT_W, y + LEFT, parts)


@dataclass(frozen=True)
class _Stage:
    """A stage as it is drawn."""

    head: str
    setting: str
    lines: list[str]
    is_bottleneck: bool

    @property
    def height(self) -> int:
        """Returns the height of its words."""
        return (len(self.lines) + 1) * LINE + 16


def _boxes(stages: list[Mapping[str, Any]]) -> list[_Stage]:
    return [
        _Stage(
            head=found[0],
            setting=found[1],
            lines=_wrap(found[1].split("; "), CHARS),
            is_bottleneck="bottleneck" in (stage.get("kind") or {}),
        )
        for stage in stages
        if (found := stage_words(stage))
    ]


def _row(
    boxes: Sequence[_Stage], y: float, height: float, begin: float, end: float, entering: Sequence[str] = ()
) -> list[str]:
    """Returns the stages of one direction between its two ends, in the order in which packets meet them."""
    parts: list[str] = []
    way = 1 if end > begin else -1
    spread = (abs(end - begin) - len(boxes) * BOX_W) / (len(boxes) + 1)
    at, middle = begin, y + height / 2
    for box in boxes:
        parts.append(_arrow(at, middle, at + way * spread))
        at += way * spread
        x = at if way > 0 else at - BOX_W
        parts.append(
            _box(x, y, BOX_W, height, box.head, box.lines, "tight" if box.is_bottleneck else "stage")
        )
        if box.is_bottleneck and entering:
            # The first bottleneck alone, where there are several.
            label = escape(_short(", ".join(entering)))
            parts.append(
                f'<path class="line rival" d="M{x + BOX_W / 2} 18V{y - 2}" marker-end="url(#tip)"/>'
                f'<text x="{x + BOX_W / 2}" y="13" text-anchor="middle" class="rival">'
                f"{label} enters here</text>"
            )
            entering = ()
        at += way * BOX_W
    return [*parts, _arrow(at, middle, end)]


def _text(x: float, y: float, line: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" class="small">{escape(line)}</text>'


def _wrap(lines: list[str], characters: int) -> list[str]:
    """Wraps lines at this number of characters, with numbers and units kept together."""
    return [part for line in lines for part in textwrap.wrap(tie(line), characters, break_on_hyphens=False)]


def _short(text: str, length: int = CHARS) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _arrow(x: float, y: float, to: float) -> str:
    return f'<path class="line" d="M{x:g} {y:g}H{to - (1 if to > x else -1):g}" marker-end="url(#tip)"/>'


def _box(x: float, y: float, w: float, h: float, head: str, lines: list[str], kind: str) -> str:
    top = y + (h - (len(lines) + 1) * LINE) / 2 + 12
    text = f'<text x="{x + w / 2:g}" y="{top:g}" text-anchor="middle" class="head">{escape(head)}</text>'
    for i, line in enumerate(lines):
        text += (
            f'<text x="{x + w / 2:g}" y="{top + LINE * (i + 1):g}" text-anchor="middle" class="small">'
            f"{escape(line)}</text>"
        )
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="4" class="{kind}"/>{text}'
