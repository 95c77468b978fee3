"""Verdicts of checks, shown as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import polars as pl

from streamgauge.checks import CheckResult, Verdict
from streamgauge.claims.dimension import CANONICAL_UNITS
from streamgauge.notebook.markup import VerdictCell, html_lines, html_table, text_table

__all__ = ["Checks"]


class Checks(Sequence[CheckResult]):
    """Verdicts of checks: a sequence of `streamgauge.checks.CheckResult`."""

    def __init__(self, results: Iterable[CheckResult]) -> None:
        self._results = tuple(results)

    @overload
    def __getitem__(self, index: int) -> CheckResult: ...
    @overload
    def __getitem__(self, index: slice) -> Checks: ...
    def __getitem__(self, index: int | slice) -> CheckResult | Checks:
        return Checks(self._results[index]) if isinstance(index, slice) else self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict of all: ``fail`` if one fails, else ``inconclusive`` if one is, else
        ``pass``."""
        found = {one.verdict for one in self._results}
        worst: tuple[Verdict, ...] = ("fail", "inconclusive")
        return next((verdict for verdict in worst if verdict in found), "pass")

    def frame(self) -> pl.DataFrame:
        """Returns a row a check and mode: the measurement, with its 95 % interval, in the canonical ``unit``
        (bit/s, s, bit; a percentage is a fraction); null where there is no measurement, or no interval."""
        rows = []
        for one in self._results:
            measured = one.measured
            interval = None if measured is None else measured.interval
            rows.append(
                {
                    "scenario": one.scenario,
                    "mode": one.mode,
                    "check": one.id,
                    "verdict": one.verdict,
                    "measured": None if interval is None else interval.mean,
                    "low": None if interval is None else interval.low,
                    "high": None if interval is None else interval.high,
                    "unit": None
                    if measured is None
                    else CANONICAL_UNITS.get(measured.dimension, str(measured.dimension)),
                    "n": one.n,
                    "invalid": one.invalid,
                    "origin": one.origin,
                    "strict": one.strict,
                    "title": one.title,
                    "that": one.that,
                    "why": one.why,
                }
            )
        texts = ("scenario", "mode", "check", "verdict", "unit", "origin", "title", "that", "why")
        numbers = ("measured", "low", "high")
        return pl.DataFrame(
            rows,
            schema_overrides={
                **dict.fromkeys(texts, pl.String), **dict.fromkeys(numbers, pl.Float64),
                **dict.fromkeys(("n", "invalid"), pl.Int64), "strict": pl.Boolean,
            },
        )  # fmt: skip

    _HEADINGS = ("verdict", "scenario", "mode", "check", "what is claimed, and what was measured")

    def _rows(self) -> list[list[str]]:
        return [
            [
                VerdictCell(one.verdict, one.verdict),
                one.scenario,
                one.mode,
                f"{one.id} ({one.origin}{', strict' if one.strict else ''})",
                " ".join(filter(None, [f"{one.title}." if one.title else "", one.why])),
            ]
            for one in self._results
        ]

    def __repr__(self) -> str:
        return text_table(self._HEADINGS, self._rows()) or _NONE

    def _repr_html_(self) -> str:
        return html_table(self._HEADINGS, self._rows(), before="" if self._results else html_lines([_NONE]))


_NONE = "no checks: these scenarios claim nothing"
