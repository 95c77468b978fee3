"""The figure of a calibration: how late packets leave, and each row's error as a share of its bound."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import altair as alt

from streamgauge.errors import CannotRunError
from streamgauge.report.chart import BLUE, GREEN, VERMILION, DrawnFigure, save, spec_of

EMULATOR, WIRE = "through the emulator", "bare wire, no emulator"
FORMATS = (".png", ".svg", ".pdf", ".html")
_LEAST = 1e-3
"""Errors under a thousandth of their bound are drawn there: an axis of powers of ten has no zero."""


def figure(calibration: Mapping[str, Any]) -> DrawnFigure:
    """Returns both panels as one description."""
    rows: list[tuple[Any, ...]] = []
    drawn = calibration["distributions"]
    for name, kind in ((EMULATOR, "departure_error"), (WIRE, "unshaped")):
        for share, us in zip(drawn[kind]["shares"], drawn[kind]["us"], strict=True):
            if us is not None and us > 0:
                rows.append(("late", name, us, 1 - share, ""))
    wire_us = _row(calibration, "departure-p50")["details"]["wire_us"] or 0.0
    for share, name in ((0.5, "p50"), (0.01, "p99")):
        bound = _row(calibration, f"departure-{name}")["bound"]
        rows.append(("bound", f"bound of {name}", bound + wire_us, share, ""))
    for row in calibration["checks"]:
        used = share_of_bound(row)
        if used is not None:
            rows.append(("row", row["id"], max(used, _LEAST), 0.0, row["verdict"]))
    where = f"{calibration['host']}, way {calibration['way']}, {calibration['class']}"
    spec = spec_of(_chart())
    # A picture travels without its page.
    spec["title"] = {
        "text": "StreamGauge: calibration of the link emulator",
        "subtitle": f"{where}; Linux {calibration['kernel']}, {calibration['date']}, load average "
        f"{calibration['load_average'][0]:.1f}",
        "anchor": "start",
    }
    return DrawnFigure(
        "calibration",
        "Calibration of the link emulator",
        f"{calibration['date']}, {where}. Above: share of {drawn['departure_error']['n']} packets "
        "(10 Mbit/s, 20 ms, 1000 packets/s) that left later than so long after their logical departure, by "
        "the receiver's kernel stamp. Below: each check's error as a share of its bound; beyond 1 it fails.",
        spec,
        ("panel", "name", "x", "y", "verdict"),
        tuple(rows),
    )


def _row(calibration: Mapping[str, Any], identity: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(row for row in calibration["checks"] if row["id"] == identity)
    return found


def share_of_bound(row: Mapping[str, Any]) -> float | None:
    """|error| / bound on the side where the error lies; None without an error, or with no bound on that
    side."""
    error, bound = row["error"], row["bound"]
    if error is None:
        return None
    low, high = bound if isinstance(bound, list | tuple) else (-bound, bound)
    edge = high if error > 0 else low
    if edge is None or (error == 0 and not edge):
        return 0.0
    if edge:
        return abs(float(error) / float(edge))
    # No more than the configured value: that is the bound. Nothing at all, and something: drawn at the far
    # end.
    asked = row["asked"]
    return float(row["measured"] / asked) if asked else 30.0


def _chart() -> Any:
    source = alt.NamedData(name="source")
    names = [EMULATOR, WIRE]
    late = (
        alt.Chart(source)
        .transform_filter("datum.panel == 'late'")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X(
                "x:Q", title="departure error, µs (logarithmic)", scale=alt.Scale(type="log"), axis=_axis()
            ),
            y=alt.Y(
                "y:Q",
                title="share of packets later than that",
                scale=alt.Scale(type="log", domain=[0.001, 1]),
                axis=alt.Axis(values=[1, 0.5, 0.1, 0.01, 0.001], format="~%"),
            ),
            color=alt.Color("name:N", sort=names, scale=alt.Scale(domain=names, range=[BLUE, GREEN])),
            strokeDash=alt.StrokeDash(
                "name:N", sort=names, scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]])
            ),
            tooltip=[alt.Tooltip("x:Q", title="µs"), alt.Tooltip("y:Q", title="share later")],
        )
    )
    bounds = (
        alt.Chart(source).transform_filter("datum.panel == 'bound'").encode(x="x:Q", y=alt.Y("y:Q"))
    )  # fmt: skip
    marks = bounds.mark_point(shape="triangle-left", filled=True, size=110, color=VERMILION)
    labels = bounds.mark_text(align="right", dx=-8, color=VERMILION).encode(text="name:N")
    base = alt.Chart(source).transform_filter("datum.panel == 'row'")
    verdicts = ["pass", "fail", "inconclusive"]
    dots = base.mark_point(filled=True, size=70).encode(
        x=alt.X(
            "x:Q",
            title="|error| as a share of the bound (logarithmic; 1 = at the bound)",
            scale=alt.Scale(type="log", domain=[_LEAST, 30], clamp=True),
            axis=_axis(),
        ),
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=200)),
        shape=alt.Shape(
            "verdict:N", scale=alt.Scale(domain=verdicts, range=["circle", "cross", "triangle-up"])
        ),
        color=alt.Color("verdict:N", scale=alt.Scale(domain=verdicts, range=[BLUE, VERMILION, GREEN])),
        tooltip=[alt.Tooltip("name:N", title="check"), alt.Tooltip("x:Q", title="share of the bound")],
    )
    stems = base.mark_rule(strokeWidth=1, opacity=0.5).encode(
        x=alt.X("x:Q"), x2=alt.datum(_LEAST), y=alt.Y("name:N", sort=None)
    )
    line = (
        alt.Chart(source)
        .transform_filter("datum.panel == 'bound' && datum.y == 0.5")
        .mark_rule(strokeDash=[4, 3])
        .encode(x=alt.datum(1))
    )
    above = alt.layer(late, marks, labels).properties(width=620, height=240)
    below = alt.layer(stems, dots, line).properties(width=620)
    return alt.vconcat(above, below, spacing=30).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )


def _axis() -> Any:
    return alt.Axis(tickCount=6, format="~r")


def write(calibration: Mapping[str, Any], file: Path) -> Path:
    """Writes the calibration by the file's suffix: .json, or the figure as .png, .svg, .pdf or .html.

    Raises:
        CannotRunError: if the file cannot be written, or has another suffix.
    """
    try:
        match file.suffix:
            case ".json":
                file.write_text(json.dumps(calibration, indent=2) + "\n", encoding="utf-8")
            case ".html":
                file.write_text(_page(figure(calibration)), encoding="utf-8")
            case suffix if suffix in FORMATS:
                save(figure(calibration), file)
            case suffix:
                names = ", ".join((".json", *FORMATS))
                raise CannotRunError(f"{file}: cannot write {suffix or 'no suffix'!r}; use one of {names}.")
    except OSError as error:
        raise CannotRunError(f"cannot write {file}: {error.strerror}; choose another with --out.") from error
    return file


def _page(drawn: DrawnFigure) -> str:
    import vl_convert
    from markupsafe import escape

    page = vl_convert.vegalite_to_html(drawn.vega_lite(), bundle=True)
    return page.replace("</body>", f"<p>{escape(drawn.caption)}</p></body>", 1)
