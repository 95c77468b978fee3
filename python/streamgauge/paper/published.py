"""A paper's printed results as data: its tables and figures, and how its claims are numbered."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from streamgauge.checks.published import published_value

__all__ = [
    "NumberedClaims",
    "Panel",
    "Paper",
    "PaperFigure",
    "PaperTable",
    "PublishedFlow",
    "PublishedRow",
    "SharesColumn",
    "SharesRow",
    "SharesTable",
    "TableColumn",
    "cases_of",
    "papers",
    "scenarios_of",
]


@dataclass(frozen=True)
class PublishedFlow:
    """A line of a table: one flow's numbers, canonical."""

    label: str
    """As the paper calls it."""
    flow: str
    """As the scenario calls it."""
    values: Mapping[str, float]
    """By metric; bit/s for rates."""
    printed: Mapping[str, str]
    """Its digits as the paper prints them, by metric."""


@dataclass(frozen=True)
class PublishedRow:
    """An experiment of a table."""

    experiment: str
    scenario: str
    flows: tuple[PublishedFlow, ...]
    jain: float | None


@dataclass(frozen=True)
class TableColumn:
    """A metric of a table's lines, in the unit in which the table has it."""

    metric: str
    title: str
    scale: float
    """Canonical units in one of the table's."""
    digits: int
    """Those of our own numbers."""


@dataclass(frozen=True)
class PaperTable:
    """A table as printed."""

    id: str
    title: str
    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class SharesColumn:
    """Trials for which a statement is true."""

    title: str
    that: str
    """In the language of checks."""


@dataclass(frozen=True)
class SharesRow:
    """Scenarios with trials that are counted together, and the paper's printed values of them."""

    label: str
    scenarios: tuple[str, ...]
    printed: tuple[str, ...]
    """Printed value of each column, ``8 (12 %)``."""


@dataclass(frozen=True)
class SharesTable:
    """A table as printed, of how many trials something is true of."""

    id: str
    title: str
    caption: str
    rows_of: str
    """Heading of its rows."""
    where: str
    """A statement: trials for which it is false are left out. Empty for all trials."""
    columns: tuple[SharesColumn, ...]
    rows: tuple[SharesRow, ...]


@dataclass(frozen=True)
class Panel:
    """One diagram of a figure: an experiment over time."""

    label: str
    scenario: str


@dataclass(frozen=True)
class PaperFigure:
    """A figure's form. `draw` is ``rates`` (throughput and loss rate over time), ``jain`` (the index over
    time), ``bars``, ``means`` (of each case, and how long it showed each level), ``distribution`` (of a value
    over trials), ``scatter`` (a point a trial), ``course`` (single trials over time), ``ladders`` (the levels
    of a population's clips), ``sweep`` (means against the varied value), ``gaps`` (between packets) or
    ``sequence`` (numbers of packets against time)."""

    id: str
    title: str
    caption: str
    draw: str
    note: str
    panels: tuple[Panel, ...]
    more: Mapping[str, Any]
    """Keys of this kind of figure alone."""


@dataclass(frozen=True)
class NumberedClaims:
    """Names of a paper's claims in the checks of the catalogue: ``W-1`` to ``W-29``."""

    prefix: str
    count: int

    @property
    def names(self) -> list[str]:
        """Returns all of them."""
        return [f"{self.prefix}-{number}" for number in range(1, self.count + 1)]


@dataclass(frozen=True)
class Paper:
    """Printed values of a paper."""

    id: str
    """Its folder in the catalogue."""
    citation: str
    claims: NumberedClaims | None
    """None where its checks have no numbers."""
    besides: tuple[str, ...]
    """Globs of scenarios that check its claims in experiments that it never did."""
    tables: tuple[PaperTable | SharesTable, ...]
    figures: tuple[PaperFigure, ...]

    def did(self, scenario: str) -> bool:
        """Returns whether a scenario is an experiment of the paper."""
        return not any(fnmatch.fnmatchcase(scenario, one) for one in self.besides)

    @property
    def means(self) -> list[PaperTable]:
        """Returns the tables of means."""
        return [table for table in self.tables if isinstance(table, PaperTable)]

    def published(self, scenario: str) -> PublishedRow | None:
        """Returns the table's row of a scenario."""
        return next((row for table in self.means for row in table.rows if row.scenario == scenario), None)


def scenarios_of(drawn: Mapping[str, Any]) -> Sequence[str]:
    """Returns the scenarios of a curve or of points: ``scenario``, or ``scenarios`` with trials that are
    drawn as one."""
    found: Sequence[str] = drawn["scenarios"] if "scenarios" in drawn else (drawn["scenario"],)
    return found


def cases_of(figure: PaperFigure, panel: Mapping[str, Any]) -> list[tuple[float | str, str]]:
    """Returns the cases of a sweep's panel in their order: the place of each, a number or a name, and its
    scenario. ``xs`` of the panel, or of the figure, are numbers, or names by the part of a scenario's
    name."""
    xs = panel.get("xs") or figure.more["xs"]
    named = xs.items() if isinstance(xs, Mapping) else ((x, x) for x in xs)
    return [(shown, panel["scenario"].format(x=x)) for x, shown in named]


@cache
def papers() -> dict[str, Paper]:
    """Returns every paper with stored tables and figures, by its folder in the catalogue."""
    found = {}
    for file in (resources.files("streamgauge.report") / "published").iterdir():
        if file.name.endswith(".json"):
            data = json.loads(file.read_text(encoding="utf-8"))
            if "catalogue" in data:
                found[data["catalogue"]] = _paper(data)
    return found


def _paper(data: Mapping[str, Any]) -> Paper:
    return Paper(
        id=data["catalogue"],
        citation=data["paper"],
        claims=NumberedClaims(**data["claims"]) if data.get("claims") else None,
        besides=tuple(data.get("besides", ())),
        tables=tuple(map(_table, data["tables"])),
        figures=tuple(map(_figure, data["figures"])),
    )


def _table(data: Mapping[str, Any]) -> PaperTable | SharesTable:
    if data.get("kind") == "shares":
        columns = {title: SharesColumn(title, that) for title, that in data["columns"].items()}
        return SharesTable(
            id=data["id"],
            title=data["title"],
            caption=data["caption"],
            rows_of=data["rows_of"],
            where=data.get("where", ""),
            columns=tuple(columns.values()),
            rows=tuple(
                SharesRow(one["label"], tuple(one["scenarios"]), tuple(one[title] for title in columns))
                for one in data["rows"]
            ),
        )
    rows = tuple(map(_row, data["rows"]))
    return PaperTable(data["id"], data["title"], data["caption"], _columns(data["columns"]), rows)


def _columns(data: Mapping[str, Any]) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(
            metric=metric,
            title=one["title"],
            scale=published_value(f"1 {one['unit']}")[0] if "unit" in one else 1.0,
            digits=one["digits"],
        )
        for metric, one in data.items()
    )


def _row(data: Mapping[str, Any]) -> PublishedRow:
    flows = []
    for one in data["flows"]:
        told = {key: text for key, text in one.items() if key not in ("label", "flow")}
        flows.append(
            PublishedFlow(
                label=one["label"],
                flow=one["flow"],
                values={key: published_value(text)[0] for key, text in told.items()},
                printed={key: text.partition(" ")[0] for key, text in told.items()},
            )
        )
    return PublishedRow(data["experiment"], data["scenario"], tuple(flows), data.get("jain"))


def _figure(data: Mapping[str, Any]) -> PaperFigure:
    known = ("id", "title", "caption", "draw", "note", "panels")
    return PaperFigure(
        id=data["id"],
        title=data["title"],
        caption=data["caption"],
        draw=data["draw"],
        note=data.get("note", ""),
        panels=tuple(Panel(one["label"], one["scenario"]) for one in data.get("panels", ())),
        more={key: value for key, value in data.items() if key not in known},
    )
