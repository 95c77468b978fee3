"""The matrix's page: one HTML file that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from streamgauge.compare import COMPARED, ComparedRow, say_value
from streamgauge.compare.answer import listed
from streamgauge.documents import write_whole
from streamgauge.matrix.agreement import pairs_of
from streamgauge.matrix.answer import SENTENCES_NEED, beaten_in_both, sentences
from streamgauge.matrix.beside import beside_part
from streamgauge.matrix.front import front
from streamgauge.matrix.heat import heat_maps
from streamgauge.matrix.judged import MEASURES, JudgedKind, JudgedMatrix
from streamgauge.report.agreement import Agreement, agreement, pair
from streamgauge.report.dots import Point
from streamgauge.report.page import render_page
from streamgauge.report.ranking import Ranking, RowHead, ranking
from streamgauge.report.words import path_words
from streamgauge.scenario.lower import lower

__all__ = ["render", "write_page"]

_MODE = {"sim": "simulated", "emu": "emulated"}
_VIEWER = ("shown_rate", "frozen_share", "startup_delay", "live_latency")
_NEIGHBOURS = ("harm", "neighbour_share", "neighbour_delay", "jain")
_FRONTS = (("shown_rate", "harm"), ("frozen_share", "shown_rate"))
"""Pairs of metrics that are drawn over all kinds, and the first of them in each kind."""
GROUPS = {
    "cross": "Cross traffic at a constant rate",
    "link": "A link that changes or loses",
    "tcp": "Beside greedy TCPs",
    "beside": "Beside one another",
    "queue": "Queues",
    "rtt": "Round trips",
    "rfc8867": "RFC 8867",
}
"""Names of groups of kinds; others by their name."""


def write_page(found: JudgedMatrix, out: Path) -> Path:
    """Writes the page; it appears whole or not at all."""
    return write_whole(out, render(found))


def render(found: JudgedMatrix) -> str:
    """Returns the page as text."""
    told = sentences(found)
    main = found.main
    overall = found.of("overall", main)
    kinds = [kind for kind in found.matrix.kinds if any(one.kind == kind for one in found.kinds)]
    return render_page(
        "streamgauge.matrix",
        "matrix.html.j2",
        question=found.matrix.question,
        sentences=told,
        no_sentence=SENTENCES_NEED,
        facts=_facts(found),
        overall=None if overall is None else _overall(found, overall),
        maps=heat_maps(found, MEASURES),
        groups=_groups(found, kinds),
        agreements=[one for one in [_agreement(found)] if one is not None],
        beside=beside_part(found),
        refused=[
            (cell.scenario.id, mode, why) for cell in found.matrix.cells for mode, why in cell.refused.items()
        ],
        notes=found.notes,
        group_of=lambda name: GROUPS.get(name, name),
    )


def _facts(found: JudgedMatrix) -> dict[str, Any]:
    modes = []
    for mode in found.modes:
        mine = [one for one in found.kinds if one.mode == mode]
        machines = {one.machine for one in mine}
        words = _words(mode, machines.pop() if len(machines) == 1 else "")
        kinds = f"{len(mine)} kind{'' if len(mine) == 1 else 's'}"
        modes.append(f"{words}: {kinds}, n = {max(one.n for one in mine)} at most")
    return {
        "kinds": len(found.matrix.kinds),
        "systems": len(found.matrix.systems),
        "trials": found.trials,
        "invalid": sum(one.invalid for one in found.kinds),
        "modes": "; ".join(modes),
    }


def _overall(found: JudgedMatrix, overall: JudgedKind) -> dict[str, Any]:
    beaten = beaten_in_both(overall)
    return {
        "heading": _basis(overall),
        "viewer": _table(found, [overall], _VIEWER, unbeaten="shown_rate"),
        "neighbours": _table(found, [overall], _NEIGHBOURS, unbeaten="harm"),
        "fronts": [one for across in _FRONTS if (one := _front(found, overall, *across)) is not None],
        "beaten": [
            (found.label(one), found.label(other), *_both(overall, one), *_both(overall, other))
            for one, other in beaten.items()
        ],
    }


def _both(overall: JudgedKind, system: str) -> tuple[str, str]:
    rows = [overall.row(system, measure) for measure in ("shown_rate", "harm")]
    first, second = ("" if row is None else say_value(row) for row in rows)
    return first, second


def _basis(one: JudgedKind) -> str:
    invalid = f", {one.invalid} invalid" if one.invalid else ""
    return f"{_words(one.mode, one.machine)}, n = {one.n}{invalid}"


def _words(mode: str, machine: str) -> str:
    """Returns how trials were run: ``simulated``, ``emulated in a virtual machine``."""
    return f"{_MODE.get(mode, mode)}{' in a virtual machine' if machine == 'virtual' else ''}"


def _table(
    found: JudgedMatrix, blocks: Sequence[JudgedKind], measures: Sequence[str], *, unbeaten: str = ""
) -> Ranking | None:
    """Returns systems by their values in one kind, a part a mode; None if no system has any."""
    heads: list[RowHead] = []
    values: dict[tuple[str, str, str], ComparedRow] = {}
    for block in blocks:
        for system in found.matrix.systems:
            rows = [row for name in measures if (row := block.row(system.name, name)) is not None]
            if not rows:
                continue
            note = _unbeaten(found, system.name, unbeaten) if unbeaten else ""
            if block.mode == "emu":
                note = _parts(found, block, system.name)
            heads.append(RowHead(system.label, block.mode, _slug(block.kind.name), note))
            values |= {(system.label, block.mode, row.metric): row for row in rows}
    known = [COMPARED[name] for name in measures if any(row.metric == name for row in values.values())]
    if not heads or not known:
        return None
    lead = known[0]
    sign = -1.0 if lead.better == "more" else 1.0

    def place(head: RowHead) -> tuple[int, float]:
        row = values.get((head.label, head.mode, lead.name))
        return (1, 0.0) if row is None else (0, sign * (row.value or 0.0))

    headings = {block.mode: _basis(block) for block in blocks}
    return ranking(sorted(heads, key=place), values, headings=headings, metrics=known)


def _unbeaten(found: JudgedMatrix, system: str, measure: str) -> str:
    mine = [one for one in found.disturbed(found.main) if one.row(system, measure) is not None]
    if not mine:
        return ""
    count = sum(system in one.first(measure) for one in mine)
    return f"unbeaten in {count} of {len(mine)} kinds"


def _parts(found: JudgedMatrix, block: JudgedKind, system: str) -> str:
    """Returns the origin of the programs of an emulated row."""
    cell = next(
        (one for one in found.matrix.cells if (one.kind, one.system) == (block.kind.name, system)), None
    )
    if cell is None:
        return ""
    subject = next(flow for flow in cell.scenario.in_mode("emu").flows.values() if flow.role == "subject")
    ours = subject.registered is not None and subject.registered.written_by_us("emu", subject.parameters)
    return "our machines on sockets" if ours else f"real: {subject.system or subject.traffic}"


def _slug(kind: str) -> str:
    return "overall" if kind == "overall" else f"kind-{kind}"


@dataclass(frozen=True)
class DrawnFront:
    """Two measures of all systems against each other."""

    heading: str
    drawing: Markup
    said: str


def _front(found: JudgedMatrix, one: JudgedKind, across: str, up: str) -> DrawnFront | None:
    points = []
    for system in found.matrix.systems:
        x, y = one.row(system.name, across), one.row(system.name, up)
        if x is None or y is None or x.value is None or y.value is None:
            continue
        said = f"{system.label}: {x.about.short} {say_value(x)}; {y.about.short} {say_value(y)}"
        points.append(Point(system.label, x.value, y.value, x.interval, y.interval, said))
    if len(points) < 2:
        return None
    first, second = COMPARED[across], COMPARED[up]
    drawing = front(points, first, second)
    return DrawnFront(f"{first.short} and {second.short}", drawing, _basis(one))


def _groups(found: JudgedMatrix, kinds: Sequence[Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for kind in kinds:
        if not made or made[-1]["name"] != kind.group:
            made.append({"name": kind.group, "title": GROUPS.get(kind.group, kind.group), "kinds": []})
        made[-1]["kinds"].append(_kind(found, kind))
    return made


def _kind(found: JudgedMatrix, kind: Any) -> dict[str, Any]:
    blocks = [block for mode in found.modes if (block := found.of(kind.name, mode)) is not None]
    main = found.of(kind.name, found.main) or blocks[0]
    cells = list(found.matrix.of_kind(kind.name))
    ran = next((cell for cell in cells if main.mode not in cell.refused), cells[0])
    return {
        "name": kind.name,
        "slug": _slug(kind.name),
        "label": kind.label,
        "question": kind.question,
        "brief": [
            (COMPARED[name].short, text)
            for name in ("shown_rate", "frozen_share", "harm")
            if (text := _brief(found, main, name))
        ],
        "table": _table(found, blocks, MEASURES),
        "front": _front(found, main, *_FRONTS[0]),
        "scenario": ran.scenario.id,
        "path": path_words(lower(ran.scenario, main.mode, 1)),  # type: ignore[arg-type]
    }


def _brief(found: JudgedMatrix, one: JudgedKind, measure: str) -> str:
    """Returns the best in a measure: ``Darwin 540 kbit/s``, ``5 of 13, from HLS 0.98 s``; ``nobody
    differs``."""
    rows = one.ordered(measure)
    if not rows:
        return ""
    first = [row for row in rows if row.rank == 1]
    if not one.tells_apart(measure):
        return (
            f"none differs beyond doubt ({say_value(rows[0])} to {say_value(rows[-1])})"
            if len(rows) > 1
            else say_value(rows[0])
        )
    if len(first) <= 2:
        return listed([f"{found.label(row.subject)} {say_value(row)}" for row in first])
    return f"{len(first)} of {len(rows)} alike, such as {found.label(first[0].subject)} {say_value(first[0])}"


def _agreement(found: JudgedMatrix) -> Agreement | None:
    """Compares simulation with emulation, number by number; None without emulated trials."""
    pairs = []
    for one in (one for measure in MEASURES for one in pairs_of(found, measure)):
        about = one.about
        what = f"{about.short} of {found.label(one.system)}"
        pairs.append(
            pair(
                one.kind, _slug(one.kind), what, *one.intervals, about.dimension, about.signed, about.name,
                half=one.half,
            )
        )  # fmt: skip
    return agreement("Simulation and emulation", "simulated", "emulated", pairs)
