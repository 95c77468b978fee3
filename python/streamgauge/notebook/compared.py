"""Comparisons as notebooks show them: the answer, a table, a frame, a figure."""

from __future__ import annotations

from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from streamgauge.claims.dimension import CANONICAL_UNITS
from streamgauge.compare import COMPARED, Comparison, say_difference, say_value, verdict_words
from streamgauge.errors import StreamGaugeError
from streamgauge.notebook.markup import VerdictCell, html_lines, html_table, once, text_table
from streamgauge.scenario.values import nearest

if TYPE_CHECKING:
    from streamgauge.notebook.charts import Chart

__all__ = ["ComparedRuns", "sound_metrics"]

_TEXTS = ("scenario", "mode", "subject", "side", "metric", "unit", "verdict", "why")
_COUNTS = ("n", "invalid", "rank", "pairs")
_NUMBERS = (
    "value", "low", "high", "difference", "difference_low", "difference_high", "margin", "probability",
)  # fmt: skip


class ComparedRuns(Comparison):
    """A comparison, with `frame`, `plot` and a table of its own in a notebook."""

    @classmethod
    def of(cls, found: Comparison) -> Self:
        """Returns the same comparison."""
        return cls(**{one.name: getattr(found, one.name) for one in fields(found)})

    def frame(self) -> pl.DataFrame:
        """Returns a row a subject, scenario, mode and metric.

        ``value`` with its 95 % interval (``low``, ``high``), ``difference`` to the baseline with its own, and
        ``margin`` are in the canonical ``unit`` (bit/s, s; a percentage is a fraction); ``verdict`` is
        better, worse, equal or undecided, and null of the baseline itself.
        """
        rows: list[dict[str, Any]] = []
        for row in self.rows:
            low, high = row.interval or (None, None)
            least, most = row.difference_interval or (None, None)
            rows.append(
                {
                    "scenario": row.scenario,
                    "mode": row.mode,
                    "subject": row.subject,
                    "side": row.side,
                    "metric": row.metric,
                    "value": row.value,
                    "low": low,
                    "high": high,
                    "unit": CANONICAL_UNITS.get(row.about.dimension, str(row.about.dimension)),
                    "n": row.n,
                    "invalid": row.invalid,
                    "rank": row.rank,
                    "difference": row.difference,
                    "difference_low": least,
                    "difference_high": most,
                    "pairs": row.pairs,
                    "paired": row.paired,
                    "margin": row.margin,
                    "probability": row.probability,
                    "verdict": row.verdict,
                    "why": row.why,
                }
            )
        kinds: dict[str, Any] = {
            **dict.fromkeys(_TEXTS, pl.String),
            **dict.fromkeys(_COUNTS, pl.Int64),
            **dict.fromkeys(_NUMBERS, pl.Float64),
        }
        return pl.DataFrame(rows, schema_overrides=kinds)

    def plot(self, *metrics: str) -> Chart:
        """Returns each metric's means with their 95 % intervals, a panel a metric, a row a subject, in the
        colour of the verdict; as an Altair chart.

        Args:
            metrics: only these; all that are known if none is given.

        Raises:
            StreamGaugeError: if there is no such metric, or nothing to draw.
        """
        from streamgauge.notebook.comparison_chart import comparison_chart

        sound_metrics(metrics)
        return comparison_chart(self, metrics)

    def _blocks(self) -> list[tuple[str, list[list[str]]]]:
        """Returns the title of each scenario's and mode's table, and its rows."""
        found = []
        for scenario in self.scenarios:
            for mode in self.modes:
                rows = []
                for metric in self.metrics(scenario, mode):
                    for subject in self.subjects:
                        row = self.row(subject, scenario, mode, metric.name)
                        if row is None:
                            continue
                        n = f"{row.n}" if not row.invalid else f"{row.n} of {row.n + row.invalid} valid"
                        said = VerdictCell(verdict_words(row), row.verdict or "")
                        rows.append([metric.short, subject, say_value(row), n, say_difference(row), said])
                if rows:
                    found.append((f"{scenario} ({mode})", once(rows, 1)))
        return found

    def _headings(self) -> list[str]:
        return ["metric", "subject", "mean", "n", f"difference to {self.baseline}", "verdict"]

    def __repr__(self) -> str:
        tables = [f"{name}\n{text_table(self._headings(), rows)}" for name, rows in self._blocks()]
        return "\n\n".join(["\n".join(self.answer) or _NOTHING, *tables])

    def _repr_html_(self) -> str:
        first, *rest = self.answer or (_NOTHING,)
        style = "font-weight:600;margin:.3em 0;max-width:60em"
        parts = [f'<p style="{style}">{escape(first)}</p>', html_lines(rest)]
        for name, rows in self._blocks():
            heading = f'<div style="opacity:.75;margin-top:.6em">{escape(name)}</div>'
            parts.append(html_table(self._headings(), rows, before=heading))
        return "".join(parts)


_NOTHING = "nothing is compared"


def sound_metrics(names: tuple[str, ...]) -> None:
    """Raises StreamGaugeError for a metric by which nothing is compared."""
    for name in names:
        if name not in COMPARED:
            close = nearest(name, COMPARED)
            remedy = f"did you mean '{close}'?" if close else f"there are {', '.join(COMPARED)}"
            raise StreamGaugeError(f"nothing is compared by '{name}'; {remedy}")
