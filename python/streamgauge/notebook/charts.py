"""Altair charts as all figures here are made: palette, lines with bands, and how a notebook shows them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import altair as alt

from streamgauge.report.chart import COLOURS, DASHES

__all__ = ["REFERENCE", "WIDTH", "Chart", "data_of", "drawn", "lines", "palette"]

WIDTH: Final = 640
"""Width of a chart's plot, in CSS pixels."""
REFERENCE: Final = "#777777"
"""The colour of set values, as opposed to measured ones: a link's capacity, a queue's limit."""
_REFERENCE_DASH: Final = (6, 3)

Chart = alt.LayerChart | alt.FacetChart
# With the suffix that a notebook's file must have where it holds JSON, which Altair's own is without.
_MIME_TYPE: Final = f"application/vnd.vegalite.{alt.SCHEMA_VERSION.partition('.')[0]}+json"

C = TypeVar("C", bound=alt.TopLevelMixin)


class _Shown:
    """Display of a chart in a notebook while none of Altair's renderers is selected.

    Altair's default loads Vega from the internet into each page, which leaves a page without it blank. A
    chart so shows itself as SVG, which every notebook, page and viewer draws as it is, and as a description
    for notebooks that draw Vega-Lite themselves. ``alt.renderers.enable("html")`` gives tooltips by Altair's
    own way.
    """

    def _repr_mimebundle_(self, *args: Any, **kwds: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **kwds)  # type: ignore[misc]
        from vl_convert import vegalite_to_svg

        spec = cast(alt.Chart, self).to_dict()
        words = _words(spec.get("title"))
        return {_MIME_TYPE: spec, "image/svg+xml": vegalite_to_svg(spec), "text/plain": words}


class _Layers(_Shown, alt.LayerChart):
    pass


class _Facets(_Shown, alt.FacetChart):
    pass


_KINDS: Mapping[type, type] = {alt.LayerChart: _Layers, alt.FacetChart: _Facets}


def drawn(chart: C) -> C:
    """Returns the chart with the display of `_Shown`, which Altair's copies by ``properties`` and the like
    keep."""
    # Altair takes every other assignment for a property of the chart.
    object.__setattr__(chart, "__class__", _KINDS[type(chart)])
    return chart


def _words(title: Any) -> str:
    said = title.get("text", "") if isinstance(title, Mapping) else title
    return f"<chart: {said}>" if said else "<chart>"


def data_of(rows: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Rows for a chart. Given so, Altair draws as many as there are."""
    return alt.InlineData(values=list(rows))


def palette(names: Sequence[str], references: Sequence[str] = ()) -> tuple[list[str], list[list[int]]]:
    """Returns a colour and a dash for each name: so that lines survive printing in grey."""
    colours, dashes = itertools.cycle(COLOURS), itertools.cycle(DASHES)
    found = [
        (REFERENCE, _REFERENCE_DASH) if name in references else (next(colours), next(dashes))
        for name in names
    ]
    return [colour for colour, _ in found], [list(dash) for _, dash in found]


def lines(
    rows: Sequence[Mapping[str, Any]],
    *,
    by: str,
    names: Sequence[str],
    references: Sequence[str] = (),
    panels: Sequence[str] = (),
    y: str,
    title: str,
    subtitle: str,
    height: int,
) -> Chart:
    """Lines over time, each the median of trials with their band.

    Args:
        rows: with ``time`` (s), ``median``, ``low``, ``high``, ``trials``, ``scenario`` and the column `by`.
        by: the column that distinguishes lines, such as ``flow`` or ``scenario``.
        names: its values in order; those of ``references`` are set, not measured.
        panels: values of ``scenario`` that have a panel each, one below the other; one panel if empty.
        y: the axis' title, with its unit.
    """
    colours, dashes = palette(names, references)
    end = max((row["time"] for row in rows), default=1.0)
    # A little room at the top, so that a limit there does not hide in the frame.
    top = 1.05 * max((row["high"] for row in rows), default=1.0) or 1.0
    lowest = min(0.0, *(row["low"] for row in rows))
    x = alt.X("time:Q", title="time, s", scale=alt.Scale(domain=[0, end], nice=False))
    height_scale = alt.Scale(domain=[lowest, top], nice=False)
    hues, strokes = (alt.Scale(domain=list(names), range=list(range_)) for range_ in (colours, dashes))
    legend = None
    if len(names) > 1:
        # As lines, not as the band's pale patches.
        legend = alt.Legend(
            title=None, orient="top", labelLimit=400, symbolType="stroke", symbolOpacity=1,
            symbolStrokeWidth=2, symbolSize=400,
        )  # fmt: skip
    tooltip = [alt.Tooltip(f"{by}:N"), alt.Tooltip("time:Q", title="time, s", format=".1f")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("median", "low", "high", "trials")]
    band = (
        alt.Chart()
        .mark_area(opacity=0.22, clip=True)
        .encode(
            x=x,
            y=alt.Y("low:Q", title=y, scale=height_scale),
            y2=alt.Y2("high:Q"),
            color=alt.Color(f"{by}:N", sort=list(names), scale=hues, legend=legend),
        )
    )
    line = (
        alt.Chart()
        .mark_line(strokeWidth=1.8, clip=True)
        .encode(
            x=x,
            y=alt.Y("median:Q", title=y, scale=height_scale),
            color=alt.Color(f"{by}:N", sort=list(names), scale=hues, legend=legend),
            strokeDash=alt.StrokeDash(f"{by}:N", sort=list(names), scale=strokes, legend=legend),
            tooltip=tooltip,
        )
    )
    data = data_of(rows)
    told = alt.Title(title, subtitle=subtitle, anchor="start", subtitleColor="#666666")
    if not panels:
        return drawn(alt.layer(band, line, data=data, width=WIDTH, height=height, title=told))
    row = alt.Row(
        "scenario:N",
        sort=list(panels),
        title=None,
        header=alt.Header(labelAngle=0, labelOrient="top", labelAnchor="start", labelFontWeight="bold"),
    )
    # A faceted chart has no data of its own, or each panel would draw all of it.
    panel = alt.layer(band, line, width=WIDTH, height=height)
    return drawn(panel.facet(row=row, data=data, title=told))
