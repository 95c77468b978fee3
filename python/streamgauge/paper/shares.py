"""A paper's table of shares beside ours: of how many trials something is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.paper.distances import Bounded, share_of
from streamgauge.paper.gathering import gathered
from streamgauge.paper.machines import mode_json
from streamgauge.paper.published import Paper, SharesRow, SharesTable
from streamgauge.paper.reading import Reading
from streamgauge.terminal import lay_out

__all__ = ["Counted", "SharesLine", "shares_json", "shares_of", "shares_text"]


@dataclass(frozen=True)
class Counted:
    """Trials for which a statement is true."""

    count: int
    n: int
    """Number of trials that have an answer and are not left out."""
    share: Bounded | None
    """None if there are none."""

    def __str__(self) -> str:
        """Returns ``7 (5 %)``; – if there are no trials."""
        return "–" if self.share is None else f"{self.count} ({100 * self.share.value:.0f} %)"

    @property
    def interval(self) -> str:
        """Returns ``[3, 9] %``."""
        if self.share is None:
            return ""
        return f"[{100 * self.share.low:.0f}, {100 * self.share.high:.0f}] %"


@dataclass(frozen=True)
class SharesLine:
    """A line of such a table in one mode."""

    row: SharesRow
    ours: tuple[Counted, ...]
    """By column."""
    n: int
    """Trials that are counted."""
    left_out: int
    """Trials for which the table's ``where`` is false."""


def shares_of(table: SharesTable, paper: Paper, reading: Reading, mode: str) -> list[SharesLine]:
    """Returns the table's lines with the counts of a mode."""
    found = gathered(paper, reading)
    lines = []
    for row in table.rows:
        trials = [one for scenario in row.scenarios if (one := found.get((scenario, mode))) is not None]
        counted: list[tuple[int, list[bool | None]]] = []
        left_out = 0
        for one in trials:
            there = one.truths[table.where] if table.where else [True] * len(one.seeds)
            for at, is_counted in enumerate(there):
                if is_counted:
                    counted.append((one.clips[at], [one.truths[column.that][at] for column in table.columns]))
                else:
                    left_out += 1
        ours = []
        for place in range(len(table.columns)):
            known = [(clip, truth) for clip, truths in counted if (truth := truths[place]) is not None]
            truths_known = [truth for _, truth in known]
            share = share_of(truths_known, [clip for clip, _ in known])
            ours.append(Counted(sum(truths_known), len(known), share))
        lines.append(SharesLine(row, tuple(ours), len(counted), left_out))
    return lines


def shares_text(table: SharesTable, paper: Paper, reading: Reading, columns: int | None) -> str:
    """Returns the table for a terminal."""
    modes = reading.modes
    told = [reading.words(modes[0])] if len(modes) == 1 else []
    told += [f"reading {reading.name}"] if reading.name else []
    where = f"{', '.join(told)}; " if told else ""
    head = f"{table.title} beside ours ({where}with 95 % intervals by clips)"
    together = 1 + 2 * len(modes)
    ours_are = modes if len(modes) > 1 else ["ours"]
    under = ["paper", *(part for mode in ours_are for part in (mode, ""))]
    of = [f"of, {mode}" for mode in modes] if len(modes) > 1 else ["of"]
    rows: list[list[str]] = [
        [
            table.rows_of,
            *(part for column in table.columns for part in (column.title, *[""] * (together - 1))),
            *[""] * len(modes),
        ],
        ["", *(under * len(table.columns)), *of],
    ]
    for lines in zip(*(shares_of(table, paper, reading, mode) for mode in modes), strict=True):
        cells = [lines[0].row.label]
        for place, printed in enumerate(lines[0].row.printed):
            cells.append(printed)
            for line in lines:
                cells += [str(line.ours[place]), line.ours[place].interval]
        rows.append([*cells, *(str(line.n) for line in lines)])
    kinds = f"l{'r' * (together * len(table.columns) + len(modes))}"
    laid = lay_out(rows, kinds, columns=columns, keys=1, together=together, indent=2)
    return "\n".join([head, *(text.plain for text in laid)])


def shares_json(table: SharesTable, paper: Paper, readings: Sequence[Reading]) -> dict[str, Any]:
    """Returns a table with every reading's and mode's numbers."""
    by_reading = [
        (reading, mode, shares_of(table, paper, reading, mode))
        for reading in readings
        for mode in reading.modes
    ]
    lines = []
    for place, row in enumerate(table.rows):
        for at, column in enumerate(table.columns):
            measured = []
            for reading, mode, found in by_reading:
                one = found[place].ours[at]
                share = one.share
                measured.append(
                    {
                        "reading": reading.name or None,
                        **mode_json(mode),
                        "count": one.count,
                        "n": one.n,
                        "left_out": found[place].left_out,
                        "share_percent": None if share is None else 100 * share.value,
                        "interval_percent": None if share is None else [100 * share.low, 100 * share.high],
                    }
                )
            lines.append(
                {
                    "scenarios": list(row.scenarios),
                    "label": f"{row.label}, {column.title}",
                    "that": column.that,
                    "published": row.printed[at],
                    "measured": measured,
                }
            )
    return {"id": table.id, "title": table.title, "where": table.where or None, "lines": lines}
