"""The share of compared quantities that are equivalent, by player and by length of segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from streamgauge.crosscheck.abr.cases import SEGMENTS_S, SUBJECTS

__all__ = ["EquivalentShare", "by_player", "sentences"]

_TITLES: Final = {"dashjs": "dash.js", "hlsjs": "hls.js", "shaka": "Shaka"}
"""The usual names of the players, in the order of `SUBJECTS`."""


@dataclass(frozen=True)
class EquivalentShare:
    """Rows of one player; an undecided or explained one counts as not equivalent."""

    title: str
    equivalent: int
    rows: int
    by_segment: Mapping[int, tuple[int, int]]
    """By the segments' length in s: equivalent rows, and all."""

    @property
    def percent(self) -> float:
        """Returns the equivalent ones of the rows."""
        return 100 * self.equivalent / self.rows


def by_player(rows: Iterable[Mapping[str, Any]]) -> list[EquivalentShare]:
    """Each player's share of a document's rows; players without rows are left out."""
    by_title: dict[str, dict[int, list[int]]] = {title: {} for title in _TITLES.values()}
    for row in rows:
        subject, _, condition = row["case"].partition("/")
        title = _TITLES[SUBJECTS[subject].name]
        mine = by_title[title].setdefault(int(condition.partition("s-")[0]), [0, 0])
        mine[0] += row["verdict"] == "equivalent"
        mine[1] += 1
    found = []
    for title, by_length in by_title.items():
        told: dict[int, tuple[int, int]] = {
            length: (by_length[length][0], by_length[length][1])
            for length in SEGMENTS_S
            if length in by_length
        }
        if told:
            equivalent, every = (sum(column) for column in zip(*told.values(), strict=True))
            found.append(EquivalentShare(title, equivalent, every, told))
    return found


def sentences(document: Mapping[str, Any]) -> list[str]:
    """A sentence for each player."""
    said = []
    for one in by_player(document["rows"]):
        parts = ", ".join(
            f"{length} s {equivalent} of {every}" for length, (equivalent, every) in one.by_segment.items()
        )
        said.append(
            f"{one.title}: {one.equivalent} of {one.rows} rows are equivalent ({one.percent:.0f} %); by the "
            f"segments' length: {parts}."
        )
    return said
