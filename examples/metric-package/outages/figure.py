"""A figure of outages: a dot for each trial."""

from __future__ import annotations

from streamgauge.report.own_figures import AskedFigure, DrawnFigure, whole


def draw(asked: AskedFigure) -> DrawnFigure | None:
    """Returns a dot for each trial and flow, a column a mode; None without a value."""
    (metric, *_) = asked.metrics
    rows = []
    for group in asked.groups:
        for subject in asked.subjects:
            for value in group.values(metric.name, subject):
                if value == value:  # NaN is unknown
                    rows.append((group.mode, subject, round(float(value), 6)))
    if not rows:
        return None
    chart = {
        "mark": {"type": "tick"},
        "encoding": {
            "x": {"field": "value", "type": "quantitative", "title": f"{metric.title}, s"},
            "y": {"field": "flow", "type": "nominal", "title": None},
            "row": {"field": "mode", "type": "nominal", "title": None},
        },
        "width": 600,
    }
    caption = "A mark for each trial."
    return DrawnFigure(asked.id, asked.title, caption, whole(chart), ("mode", "flow", "value"), tuple(rows))
