"""Prints a bench's figures as one document, which `benches/history.py` keeps and compares.

Each figure has a name, a value and a unit. Lower is better in all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

SCHEMA = "streamgauge.bench/1"


def document(unit: str, values: Mapping[str, float]) -> str:
    """Returns figures of one unit as JSON."""
    figures = {name: {"value": value, "unit": unit} for name, value in values.items()}
    return json.dumps({"schema": SCHEMA, "figures": figures})
