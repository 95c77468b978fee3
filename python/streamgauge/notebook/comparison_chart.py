"""The figure of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from streamgauge.claims.dimension import pick_unit
from streamgauge.compare import COMPARED, Comparison
from streamgauge.errors import StreamGaugeError
from streamgauge.notebook.charts import Chart, data_of, drawn
from streamgauge.report.chart import BLUE, GREEN, ORANGE, VERMILION

__all__ = ["comparison_chart"]

_BASELINE: Final = "baseline"
_COLOURS: Final = {
    _BASELINE: "#444444", "better": GREEN, "worse": VERMILION, "equal": BLUE, "undecided": ORANGE,
}  # fmt: skip
_SHAPES: Final = {
    _BASELINE: "circle", "better": "triangle-up", "worse": "triangle-down", "equal": "square",
    "undecided": "diamond",
}  # fmt: skip
"""Beside colour, so that a verdict survives printing in grey."""
_PANEL: Final = 250


def comparison_chart(found: Comparison, metrics: Sequence[str] = ()) -> Chart:
    """Means with their 95 % intervals: a panel a metric, each with its own scale, a row a subject.

    Raises:
        StreamGaugeError: if nothing of it is known.
    """
    rows = _rows(found, metrics)
    if not rows:
        raise StreamGaugeError(
            f"nothing to draw: {' and '.join(metrics) or 'no metric'} is known of no subject"
        )
    panels = list(dict.fromkeys(row["metric"] for row in rows))
    places = list(dict.fromkeys(row["place"] for row in rows))
    verdicts = [one for one in _COLOURS if any(row["verdict"] == one for row in rows)]
    legend = alt.Legend(title=None, orient="top", symbolSize=90)
    colours = alt.Scale(domain=verdicts, range=[_COLOURS[one] for one in verdicts])
    shapes = alt.Scale(domain=verdicts, range=[_SHAPES[one] for one in verdicts])
    told = ("metric", "scenario", "mode", "subject", "mean", "low", "high", "n", "verdict", "why")
    tooltip = [alt.Tooltip(f"{name}:N") for name in told]
    base = alt.Chart().encode(
        y=alt.Y("place:N", sort=places, title=None, axis=alt.Axis(labelLimit=260)),
        color=alt.Color("verdict:N", sort=verdicts, scale=colours, legend=legend),
        tooltip=tooltip,
    )
    zero, few = alt.Scale(zero=True, nice=True), alt.Axis(tickCount=5)
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(
        x=alt.X("mean:Q", title=None, scale=zero, axis=few),
        shape=alt.Shape("verdict:N", sort=verdicts, scale=shapes, legend=legend),
    )
    whiskers = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=None, scale=zero, axis=few), x2=alt.X2("high:Q"))
    )
    panel = alt.layer(whiskers, dots, width=_PANEL, height=alt.Step(20))
    how = f"means with their 95 % intervals, against {found.baseline}; each metric has its own scale"
    title = alt.Title(_title(found), subtitle=how, anchor="start", subtitleColor="#666666")
    header = alt.Header(title=None, labelAnchor="start", labelFontWeight="bold")
    facet = alt.Facet("metric:N", sort=panels, header=header)
    chart: Chart = panel.facet(facet, columns=2, data=data_of(rows), title=title)
    chart = chart.resolve_scale(x="independent")
    return drawn(chart)


def _title(found: Comparison) -> str:
    """Returns the compared subjects and the place; of many their number."""
    whom = " and ".join(found.subjects) if len(found.subjects) < 4 else f"{len(found.subjects)} subjects"
    where = found.scenarios[0] if len(found.scenarios) == 1 else f"{len(found.scenarios)} scenarios"
    return f"{whom}: {where}, {' and '.join(found.modes)}"


def _rows(found: Comparison, metrics: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    chosen = [row for row in found.rows if row.value is not None and (not metrics or row.metric in metrics)]
    for name, about in COMPARED.items():
        mine = [row for row in chosen if row.metric == name]
        sizes = [abs(row.value or 0.0) for row in mine]
        sizes += [abs(end) for row in mine for end in row.interval or ()]
        scale, unit = pick_unit(max(sizes, default=0.0), about.dimension)
        for row in mine:
            assert row.value is not None
            low, high = row.interval or (None, None)
            if low is not None and not about.signed:
                low = max(0.0, low)
            rows.append(
                {
                    "metric": f"{about.short}, {unit}" if unit else about.short,
                    "subject": row.subject,
                    "scenario": row.scenario,
                    "mode": row.mode,
                    "place": _place(found, row.subject, row.scenario, row.mode),
                    "mean": row.value / scale,
                    "low": None if low is None else low / scale,
                    "high": None if high is None else high / scale,
                    "n": row.n,
                    "verdict": row.verdict or _BASELINE,
                    "why": row.why,
                }
            )
    return rows


def _place(found: Comparison, subject: str, scenario: str, mode: str) -> str:
    """Returns a row's name: by the keys that have several values."""
    several = [scenario] if len(found.scenarios) > 1 else []
    several += [mode] if len(found.modes) > 1 else []
    return ", ".join([*several, subject])
