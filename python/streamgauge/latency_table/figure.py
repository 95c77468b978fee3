"""The table as a heat map."""

from __future__ import annotations

from streamgauge.latency_table.cells import LatencyCell, LatencyTable
from streamgauge.report import DrawnFigure
from streamgauge.report.chart import WIDTH
from streamgauge.report.vega import channel, layer, whole

__all__ = ["heat_map", "interval_said", "said", "theory_said"]

_COLUMNS = ("loss", "rtt", "trips", "text", "dark", "interval")
_MOST_TRIPS = 8
_DARK = 4.0
"""Round trips below which the colour is too dark for black letters."""
_HEIGHT = 34


def said(cell: LatencyCell) -> str:
    """Returns a cell's value as printed: whole milliseconds, or that none was enough."""
    return f"none to {_ms(cell.most_s)}" if cell.latency_s is None else _ms(cell.latency_s)


def interval_said(cell: LatencyCell) -> str:
    """Returns the ends of its interval; empty without one."""
    if cell.seeds < 2:
        return ""
    low, high = (f"over {_ms(cell.most_s)}" if end is None else _ms(end) for end in (cell.low_s, cell.high_s))
    return low if low == high else f"{low} to {high}"


def theory_said(cell: LatencyCell) -> str:
    """Returns the latency of plain ARQ as printed; empty if there is none."""
    return "" if cell.arq_s is None else _ms(cell.arq_s)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.0f} ms"


def heat_map(found: LatencyTable) -> DrawnFigure:
    """Returns the figure: a row a loss, a column a round trip, by colour the latency in round trips."""
    title = f"Least latency of {found.system} that shows {100 * found.share:g} % of pictures"
    burst = f", in bursts of {found.burst} on average" if found.burst else ", each packet on its own"
    seeds = max((cell.seeds for cell in found.cells), default=0)
    caption = (
        f"Loss both ways{burst}; {seeds} x {found.seconds:.0f} s in sim. Colour: latency in round trips."
    )
    rows = tuple(
        (
            cell.loss,
            cell.rtt,
            None if cell.round_trips is None else min(cell.round_trips, _MOST_TRIPS),
            said(cell),
            cell.round_trips is not None and cell.round_trips < _DARK,
            interval_said(cell),
        )
        for cell in found.cells
    )
    base = {
        "x": channel("rtt:N", sort=list(found.rtts), title="round trip", axis={"labelAngle": 0}),
        "y": channel("loss:N", sort=list(found.losses), title="loss"),
    }
    scale = {"scheme": "viridis", "domain": [0, _MOST_TRIPS]}
    legend = {"title": "latency / round trip", "orient": "right"}
    tooltip = [
        channel("loss:N", title="loss"),
        channel("rtt:N", title="round trip"),
        channel("text:N", title="latency"),
        channel("interval:N", title="95 % interval"),
    ]
    known = {"test": "isValid(datum.trips)", **channel("trips:Q", scale=scale, legend=legend)}
    ink = {"condition": {"test": "datum.dark", "value": "#ffffff"}, "value": "#1b1b1b"}
    marks = [
        {
            "mark": {"type": "rect", "stroke": "#ffffff"},
            "encoding": {**base, "color": {"condition": known, "value": "#dddddd"}, "tooltip": tooltip},
        },
        {
            "mark": {"type": "text", "fontSize": 11},
            "encoding": {**base, "text": {"field": "text", "type": "nominal"}, "color": ink},
        },
    ]
    plot = layer(marks, width=WIDTH - 200, height=_HEIGHT * max(1, len(found.losses)))
    heading = {"text": title, "subtitle": caption, "anchor": "start", "fontSize": 14, "subtitleFontSize": 11}
    return DrawnFigure("latency-table", title, caption, whole({**plot, "title": heading}), _COLUMNS, rows)
