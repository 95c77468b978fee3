"""One table of all claims of a paper: the printed values, those of sim and emu, of emu on each machine by
itself, and the conclusion."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from streamgauge.checks import CheckResult
from streamgauge.paper.comparison import published_words, short
from streamgauge.paper.reading import Reading
from streamgauge.terminal import lay_out

__all__ = ["Claim", "claims_of", "claims_text"]


@dataclass(frozen=True)
class Claim:
    """A check of a scenario, with its result in each mode in which the scenario was run."""

    check: CheckResult
    """Its words; of the first mode."""
    by_mode: dict[str, CheckResult]

    def verdict(self, modes: Collection[str]) -> str:
        """That of all `modes`, or where they differ, or it was not judged in all, each with its own:
        ``sim pass, emu fail``."""
        verdicts = {mode: one.verdict for mode, one in self.by_mode.items()}
        if len(set(verdicts.values())) == 1 and set(modes) <= set(verdicts):
            return self.check.verdict
        return ", ".join(f"{mode} {verdict}" for mode, verdict in verdicts.items())

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``reproduce --json``."""
        return {
            "id": self.check.id,
            "scenario": self.check.scenario,
            "title": self.check.title,
            "published": dict(self.check.published),
            "measured": {mode: short(one) for mode, one in self.by_mode.items()},
            "verdicts": {mode: one.verdict for mode, one in self.by_mode.items()},
        }


def claims_of(reading: Reading) -> list[Claim]:
    """Returns every check once, in the order of the scenarios."""
    found: dict[tuple[str, str], dict[str, CheckResult]] = {}
    for check in reading.checks:
        found.setdefault((check.scenario, check.id), {})[check.mode] = check
    return [Claim(next(iter(by_mode.values())), by_mode) for by_mode in found.values()]


def claims_text(reading: Reading, columns: int | None = None) -> str:
    """Returns the table for a terminal, no wider than `columns`; empty if nothing is claimed."""
    claims = claims_of(reading)
    if not claims:
        return ""
    modes = [mode for mode in reading.modes if any(mode in claim.by_mode for claim in claims)]
    rows = [["check", "scenario", "published", *map(reading.words, modes), "verdict", "claim"]]
    for claim in claims:
        check = claim.check
        cells = [short(claim.by_mode[mode]) if mode in claim.by_mode else "–" for mode in modes]
        where = check.scenario.rpartition("/")[2]
        rows.append(
            [
                check.id,
                where,
                published_words(check) or "–",
                *cells,
                claim.verdict(modes),
                check.title or check.that,
            ]
        )
    kinds = f"ll{'l' * (len(modes) + 2)}w"
    laid = lay_out(rows, kinds, columns=columns, keys=2, indent=2)
    return "\n".join(["Claims, published and ours", *(text.plain for text in laid)])
