"""The opening of a paper's page: three sentences, and the paper's values beside each reading, as a table and
on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.checks.published import match_published, published_value
from streamgauge.claims.names import METRICS
from streamgauge.paper.by_reading import PaperByReading, better_words
from streamgauge.paper.claims import claims_of
from streamgauge.paper.published import Paper, PaperTable, SharesTable
from streamgauge.paper.reading import Reading
from streamgauge.paper.shares import shares_of
from streamgauge.paper.tables import lines_of, ours, theirs
from streamgauge.report.chart import BLUE, INK, VERMILION, DrawnFigure
from streamgauge.report.model import listed
from streamgauge.report.vega import Spec, channel, filtered, layer, whole

__all__ = ["Opening", "opening"]

_PAPER = "the paper"
_COLOURS = (VERMILION, BLUE)
_SHAPES = ("circle", "triangle-up", "square", "cross")
_WIDTH = 560
_ROW = 17
"""Height of a line of the figure, in pixels, for each origin's mark."""
_MOST_NAMED = 6
"""Most claims that differ and are named; of more only the number appears."""


_MULTIPLE = "multiple of the printed number"
_Lines = tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]


@dataclass(frozen=True)
class Opening:
    """The first part of the page."""

    sentences: tuple[str, ...]
    title: str
    columns: tuple[str, ...]
    """Headings of the table, after its first column."""
    origins: tuple[str, ...]
    """Below each of them: the paper, and each reading."""
    lines: _Lines
    """By column the text of each origin."""
    figure: DrawnFigure | None


@dataclass(frozen=True)
class _Mark:
    line: str
    origin: str
    value: float
    low: float | None = None
    high: float | None = None


def opening(claims: PaperByReading | None, readings: Sequence[Reading]) -> Opening | None:
    """Returns the opening of the page of these readings; None for a paper without numbered claims.

    The first table of the paper is the main one; the figure draws its loss, or else its first column. For a
    paper without tables it draws the checks that have a printed number, as multiples of it.
    """
    if claims is None or not readings[0].modes:
        return None
    names = tuple(reading.name or "ours" for reading in readings)
    table = next(iter(claims.paper.tables), None)
    if isinstance(table, SharesTable):
        title, columns = table.title, tuple(column.title for column in table.columns)
        axis, lines, marks = _of_shares(table, claims.paper, readings, names)
    elif isinstance(table, PaperTable):
        title, columns = table.title, tuple(column.title for column in table.columns)
        axis, lines, marks = _of_means(table, readings, names)
    else:
        title, columns, axis = "Printed numbers", ("ours / published",), _MULTIPLE
        lines, marks = _multiples(claims, readings, names)
    return Opening(
        sentences=_sentences(claims),
        title=title,
        columns=columns,
        origins=("paper", *names),
        lines=lines,
        figure=_figure(claims.paper.id, title, axis, names, marks) if marks else None,
    )


def _of_shares(
    table: SharesTable, paper: Paper, readings: Sequence[Reading], names: Sequence[str]
) -> tuple[str, _Lines, list[_Mark]]:
    """Axis, lines and marks of a table of shares."""
    of_each = [shares_of(table, paper, reading, reading.modes[0]) for reading in readings]
    lines, marks = [], []
    for at, row in enumerate(table.rows):
        cells = tuple(
            (printed, *(str(of[at].ours[place]) for of in of_each))
            for place, printed in enumerate(row.printed)
        )
        lines.append((row.label, cells))
        # As printed: ``8 (12 %)``.
        percent = row.printed[0].partition("(")[2].partition("%")[0].strip()
        if percent:
            marks.append(_Mark(row.label, _PAPER, float(percent)))
        for name, of in zip(names, of_each, strict=True):
            if (share := of[at].ours[0].share) is not None:
                marks.append(_Mark(row.label, name, 100 * share.value, 100 * share.low, 100 * share.high))
    return f"{table.columns[0].title}: trials, %", tuple(lines), marks


def _of_means(
    table: PaperTable, readings: Sequence[Reading], names: Sequence[str]
) -> tuple[str, _Lines, list[_Mark]]:
    """Axis, lines and marks of a table of means."""
    drawn = next((one for one in table.columns if one.metric == "loss"), table.columns[0])
    lines, marks, experiment = [], [], ""
    for of in zip(*(lines_of(table, reading, reading.modes[0]) for reading in readings), strict=True):
        first = of[0]
        experiment = first.experiment or experiment
        label = f"{experiment}, {first.label}" if first.label else experiment
        cells = tuple(
            (theirs(first, column) or "–", *(" ".join(ours(line, column)).strip() or "–" for line in of))
            for column in table.columns
        )
        lines.append((label, cells))
        if (printed := first.published.get(drawn.metric)) is not None:
            marks.append(_Mark(label, _PAPER, printed / drawn.scale))
        for name, line in zip(names, of, strict=True):
            if (found := line.ours.get(drawn.metric)) is not None:
                # Where a quantity ends its interval does.
                least = -math.inf if METRICS[drawn.metric].signed else 0.0
                low, high = (
                    None if end is None else max(least, end) / drawn.scale for end in (found.low, found.high)
                )
                marks.append(_Mark(label, name, found.mean / drawn.scale, low, high))
    return drawn.title, tuple(lines), marks


def _sentences(claims: PaperByReading) -> tuple[str, ...]:
    counts = claims.chosen.counts()
    differing = [one.id for one in claims.chosen.claims if one.verdict in ("differs", "differs in size")]
    more = f" and {len(differing) - _MOST_NAMED} more" if len(differing) > _MOST_NAMED else ""
    named = f"{listed(differing[:_MOST_NAMED])}{more}" if differing else "none"
    second = (
        f"Not as published under {claims.default}: {named}, "
        f"{counts['differs in size']} of them in size alone; undecided: {counts['inconclusive']}."
    )
    checks = claims.chosen.checks
    fed = sum(one.origin != "predicted" for one in checks)
    third = f"Of {len(checks)} checks {fed} were fitted to or fed by the paper and are no evidence"
    if claims.held_out:
        holds = sum(verdict == "pass" for verdict in claims.held_out.values())
        third += f"; of {len(claims.held_out)} claims that a fit did not see {holds} hold"
    return better_words([claims]), second, f"{third}."


def _multiples(
    claims: PaperByReading, readings: Sequence[Reading], names: Sequence[str]
) -> tuple[_Lines, list[_Mark]]:
    """Ours as a multiple of the printed number, of each claim's first check that has one above 0."""
    found: dict[str, dict[str, _Mark]] = {}
    for name, reading in zip(names, readings, strict=True):
        for claim in claims_of(reading):
            check = claim.check
            number = "-".join(check.id.split("-")[:2])
            for key, value in match_published(check.values, check.published).items():
                printed = published_value(check.published[key])[0]
                if printed > 0 and value.interval.mean > 0 and name not in found.setdefault(number, {}):
                    low, high = (
                        None if end is None or end <= 0 else end / printed
                        for end in (value.interval.low, value.interval.high)
                    )
                    found[number][name] = _Mark(number, name, value.interval.mean / printed, low, high)
    kept = {number: mine for number, mine in found.items() if mine}
    order = [one.id for one in claims.chosen.claims if one.id in kept]
    lines = tuple(
        (
            number,
            (("1", *(f"{kept[number][name].value:.2f}" if name in kept[number] else "–" for name in names)),),
        )
        for number in order
    )
    marks = [_Mark(number, _PAPER, 1.0) for number in order]
    marks += [mark for number in order for mark in kept[number].values()]
    return lines, marks


def _figure(paper: str, title: str, axis: str, names: Sequence[str], marks: Sequence[_Mark]) -> DrawnFigure:
    """Returns a line for each, with the paper's number and each reading's on one scale."""
    origins = [_PAPER, *names]
    order = list(dict.fromkeys(mark.line for mark in marks))
    is_multiple = axis == _MULTIPLE
    scale: Spec = {"type": "log"} if is_multiple else {"zero": True}
    base: Spec = {
        "y": channel("line:N", sort=order, title=None, axis={"grid": True, "labelLimit": 220}),
        "yOffset": channel("origin:N", scale={"domain": origins}),
        "tooltip": [
            channel("line:N", title="what"), channel("origin:N", title="whose"),
            channel("value:Q", title=axis), channel("low:Q", title="from"), channel("high:Q", title="to"),
        ],
    }  # fmt: skip
    colours = [INK, *(_COLOURS[at % len(_COLOURS)] for at in range(len(names)))]
    shapes = ["diamond", *(_SHAPES[at % len(_SHAPES)] for at in range(len(names)))]
    colour = channel("origin:N", scale={"domain": origins, "range": colours}, title=None)
    shape = channel("origin:N", scale={"domain": origins, "range": shapes}, title=None)
    whiskers = {
        "mark": {"type": "rule", "strokeWidth": 1.4},
        "encoding": {
            **base, "x": channel("low:Q", title=axis, scale=scale), "x2": {"field": "high"}, "color": colour,
        },
        "transform": filtered("isValid(datum.low) && isValid(datum.high)"),
    }  # fmt: skip
    points = {
        "mark": {"type": "point", "filled": True, "size": 48, "opacity": 1},
        "encoding": {
            **base,
            "x": channel("value:Q", title=axis, scale=scale),
            "color": colour,
            "shape": shape,
        },
    }
    height = max(60, len(order) * (_ROW if len(origins) < 4 else _ROW + 6))
    return DrawnFigure(
        id=f"{paper}-opening",
        title=f"{title}: the paper beside {listed(list(names))}",
        caption=f"{axis}, on one scale; ours are means with 95 % intervals.",
        spec=whole(layer([whiskers, points], width=_WIDTH, height=height)),
        columns=("line", "origin", "value", "low", "high"),
        rows=tuple((one.line, one.origin, one.value, one.low, one.high) for one in marks),
    )
