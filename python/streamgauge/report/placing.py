"""Figures in a page: each a picture that needs no script, with its data for the script."""

from __future__ import annotations

import json
import re
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from markupsafe import Markup

from streamgauge.processors import processors
from streamgauge.report.chart import IN_THE_DARK, DrawnFigure
from streamgauge.report.draw import draw
from streamgauge.report.drawers import SCALE, Drawers, digest, drawn_before, keep_drawn

__all__ = ["Placing", "dark_style", "slim"]

_ALONE = 3
"""Most figures that are drawn here: a process of its own would take longer to start."""
_AHEAD = 16
"""Descriptions that wait to be drawn, each with its data; more would fill the memory."""


class Placing:
    """Draws the figures of one page while the rest of it is made.

    `place` leaves a mark where a figure is to be, `fill` puts the pictures there.
    """

    def __init__(self) -> None:
        self._marked: list[tuple[str, str]] = []
        """Id and digest, by mark."""
        self._drawn: dict[str, str] = {}
        """Earlier drawings, by digest."""
        self._waiting: dict[str, str] = {}
        """By digest: descriptions of the first few."""
        self._noted: dict[str, str] = {}
        """The first figure of notes, by these."""
        self._asked: dict[str, Future[str]] = {}
        self._drawers: Drawers | None = None
        self._ahead = threading.BoundedSemaphore(_AHEAD)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._drawers is not None:
            self._drawers.__exit__(kind)

    def place(self, figure: DrawnFigure) -> Markup:
        """Returns a figure's place in the page, with its data."""
        description = json.dumps(figure.vega_lite(), ensure_ascii=False)
        of = digest(description)
        self._want(of, description)
        mark = f"<!--figure {len(self._marked)}-->"
        self._marked.append((figure.id, of))
        window = figure.beside.get("window")
        meta = (figure.spec.get("usermeta") or {}).get("streamgauge") or {}
        head = Markup(
            '<figure id="{id}" class="figure" data-axis="{axis}"{scenario}><div class="chart" role="img" '
            'aria-label="{title}">'
        ).format(
            id=figure.id,
            title=figure.title,
            axis=meta.get("axis", ""),
            scenario=Markup(' data-scenario="{}"').format(window["scenario"]) if window else "",
        )
        first = self._noted.setdefault(figure.notes, figure.id)
        if first == figure.id:
            folded = (
                '<details class="figure-notes" id="{id}-notes"><summary>How to read it</summary>{notes}'
                "</details>"
            )
        else:
            folded = '<p class="figure-notes"><a href="#{id}-notes">How to read it</a></p>'
        notes = Markup(folded).format(id=first, notes=figure.notes)
        caption = Markup(
            '</div><figcaption><b>{title}.</b> <span class="caption">{caption}</span>{notes}</figcaption>'
        ).format(title=figure.title, caption=figure.caption, notes=notes if figure.notes else "")
        data = _script("figure-data", figure.to_json())
        more = "" if window is None else _script("series", json.dumps(window, separators=(",", ":")))
        return head + Markup(mark) + caption + Markup(data + more + "</figure>")

    def _want(self, of: str, description: str) -> None:
        if of in self._drawn or of in self._waiting or of in self._asked:
            return
        if (kept := drawn_before(of)) is not None:
            self._drawn[of] = kept
            return
        if self._drawers is None:
            self._waiting[of] = description
            if len(self._waiting) > _ALONE and processors() > 1:
                self._drawers = Drawers()
                waiting, self._waiting = self._waiting, {}
                for one, text in waiting.items():
                    self._ask(one, text)
        else:
            self._ask(of, description)

    def _ask(self, of: str, description: str) -> None:
        drawers = self._drawers
        assert drawers is not None

        def drawn() -> str:
            try:
                return drawers.draw(description, {}, "the page")
            finally:
                self._ahead.release()

        self._ahead.acquire()
        self._asked[of] = drawers.submit(drawn)

    def fill(self, page: str) -> str:
        """Returns the page with its pictures.

        Raises:
            CannotRunError: if a process that draws ends.
        """
        new = {of: draw(description, {}, scale=SCALE) for of, description in self._waiting.items()}
        new |= {of: future.result() for of, future in self._asked.items()}
        keep_drawn(new)
        drawn = self._drawn | new

        def picture(found: re.Match[str]) -> str:
            id_, of = self._marked[int(found[1])]
            return slim(drawn[of], id_)

        return re.sub(r"<!--figure (\d+)-->", picture, page)


def _script(class_: str, data: str) -> str:
    return f'<script type="application/json" class="{class_}">' + data.replace("</", "<\\/") + "</script>"


_NOT_NEEDED = re.compile(
    r' (?:aria-hidden|role|aria-roledescription|pointer-events|version|xmlns:xlink|font-family)="[^"]*"'
    r'| (?:opacity="1"|stroke-width="1"|text-anchor="start")(?=[ />])'
)
_EMPTY = re.compile(
    r'<path class="foreground" d="" display="none"/>|<path class="background" d="M0,0h0v0h0Z"/>|<g/>'
)
_PLACES = re.compile(r' (?:d|transform|[xy][12]?|width|height)="[^"]*\.[^"]*"')
_STEP = re.compile(r"([MLZ])(?:(-?[\d.]+),(-?[\d.]+))?")
_LINE = re.compile(r' d="(M[-\d.]+,[-\d.]+L[-\d.,MLZ]+)"')
_LONG = re.compile(r"(\.\d)\d+")
_FONT = re.compile(r' font-family="([^"]*)"')


def slim(svg: str, id_: str) -> str:
    """Returns a picture of Vega's for a page: half as long, its clip paths named after the figure, and as
    wide as there is room."""
    font = _FONT.search(svg)
    head, body = svg.split(">", 1)
    size = dict(re.findall(r'\b(width|height)="([\d.]+)"', head))
    body = _EMPTY.sub("", _NOT_NEEDED.sub("", body))
    # A tenth of a pixel is invisible.
    body = _LINE.sub(lambda line: f' d="{_relative(line[1])}"', body)
    body = _PLACES.sub(lambda places: _LONG.sub(r"\1", places[0]), body)
    body = re.sub(r"\bclip\d+\b", lambda clip: f"{id_}-{clip[0]}", body)
    family = f' font-family="{font[1]}"' if font else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="marks" width="{size["width"]}" '
        f'height="{size["height"]}" viewBox="0 0 {size["width"]} {size["height"]}"{family}>{body}'
    )


def _relative(path: str) -> str:
    """Returns a path of lines by steps of tenths of a pixel instead of places; steps add up to the places
    rounded."""
    found: list[str] = []
    at, last = (0, 0), ""
    for command, x, y in _STEP.findall(path):
        if command == "Z":
            found.append("Z")
        else:
            to = round(10 * float(x)), round(10 * float(y))
            step = to if command == "M" else (to[0] - at[0], to[1] - at[1])
            # One letter is enough for steps that follow one another.
            letter = "M" if command == "M" else " " if last == "L" else "l"
            found.append(f"{letter}{step[0] / 10:g},{step[1] / 10:g}")
            at = to
        last = command
    return "".join(found)


def dark_style() -> str:
    """Style that turns the colours of pictures into those of a dark page. A picture itself is light: it may
    be saved, or printed."""
    rules = [
        f'.chart [{what}="{light}"] {{ {what}: {dark}; }}'
        for light, dark in IN_THE_DARK.items()
        for what in ("fill", "stroke")
    ]
    return "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}\n"
