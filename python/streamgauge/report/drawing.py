"""The path as a drawing: inline SVG whose colours follow the page."""

from __future__ import annotations

import textwrap
from html import escape

from streamgauge.report.model import Entry
from streamgauge.report.stages import stage_words
from streamgauge.report.words import tie

BOX_W, GAP, LINE = 168, 46, 15
END_W = 84
TOP, LEFT = 40, 8
CHARS = 24
CHAR_W = 6.6
"""Of the small type, on the mean and a little more."""


def path_drawing(entry: Entry) -> str:
    """The path from server to player and back, with what each stage is set to and who enters where.

    Returns:
        An ``<svg>`` element; its classes are styled in the page's style sheet.
    """
    path = entry.plan.get("path") or {}
    down = [(stage, found) for stage in path.get("down") or [] if (found := stage_words(stage))]
    up = [found for stage in path.get("up") or [] if (found := stage_words(stage))]
    flows = entry.plan.get("flows") or []
    at_server = [str(flow["name"]) for flow in flows if flow.get("entry", "server") != "router"]
    at_router = [str(flow["name"]) for flow in flows if flow.get("entry") == "router"]
    columns = max(len(down), len(up), 1)
    boxes = [_wrap(setting.split("; "), CHARS) for _, (_, setting) in down]
    box_h = max([74, *((len(lines) + 1) * LINE + 16 for lines in boxes)])
    width = 2 * LEFT + 2 * END_W + columns * BOX_W + (columns + 1) * GAP
    said = "; ".join(f"{what} {setting}" for what, setting in up) or "plain wire"
    inside = columns * BOX_W + (columns + 1) * GAP
    way_back = _wrap([f"back: {said}"], int(inside / CHAR_W))
    more = (len(way_back) - 1) * LINE
    height = TOP + box_h + 66 + more
    middle, back = TOP + box_h / 2, TOP + box_h + 32
    right = width - LEFT - END_W
    title = f"Path of {entry.id}"
    parts = [
        f'<svg class="path" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title)}">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>',
        _box(LEFT, TOP, END_W, box_h + 50 + more, "server", _wrap(at_server, 11)[:6], "end"),
        _box(right, TOP, END_W, box_h + 50 + more, "player", [], "end"),
    ]
    x = float(LEFT + END_W)
    spread = (right - x - len(down) * BOX_W) / (len(down) + 1)
    for (stage, (what, _)), lines in zip(down, boxes, strict=True):
        parts.append(_arrow(x, middle, x + spread))
        x += spread
        is_bottleneck = "bottleneck" in (stage.get("kind") or {})
        parts.append(_box(x, TOP, BOX_W, box_h, what, lines, "tight" if is_bottleneck else "stage"))
        if is_bottleneck and at_router:
            # The first bottleneck alone, where there are several.
            label = escape(_short(", ".join(at_router)))
            parts.append(
                f'<path class="line rival" d="M{x + BOX_W / 2} 18V{TOP - 2}" marker-end="url(#tip)"/>'
                f'<text x="{x + BOX_W / 2}" y="13" text-anchor="middle" class="rival">'
                f"{label} enters here</text>"
            )
            at_router = []
        x += BOX_W
    parts.append(_arrow(x, middle, right))
    parts.append(_arrow(right, back, LEFT + END_W))
    for index, line in enumerate(way_back):
        parts.append(
            f'<text x="{width / 2}" y="{back + 17 + index * LINE}" text-anchor="middle" class="small">'
            f"{escape(line)}</text>"
        )
    return "".join([*parts, "</svg>"])


def _wrap(lines: list[str], characters: int) -> list[str]:
    """Lines no longer than so many characters, numbers and units kept together."""
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
