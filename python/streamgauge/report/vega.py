"""Parts of Vega-Lite descriptions as plain dicts.

A paper's figure has hundreds of them: made through objects, each copied at every concat and layer above it,
they take longer than all the drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Spec", "channel", "filtered", "layer", "whole"]

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
_TYPES = {"N": "nominal", "Q": "quantitative"}


def channel(what: str, **more: Any) -> Spec:
    """Returns an encoding of a column, ``v:Q`` or ``s:N``, with its axis, scale, title and the like."""
    field, _, kind = what.partition(":")
    return {"field": field, "type": _TYPES[kind], **more}


def filtered(*tests: str) -> list[Spec]:
    """Returns transforms that keep the rows that pass every test."""
    return [{"filter": test} for test in tests]


def layer(parts: Sequence[Spec], **more: Any) -> Spec:
    """Returns one plot above another; ``more`` is size and title."""
    return {"layer": list(parts), **more}


def whole(chart: Spec) -> Spec:
    """Returns a description that draws the rows which a page or `DrawnFigure.vega_lite` puts in place of
    `source`."""
    return {"$schema": _SCHEMA, "data": {"name": "source"}, **chart}
