"""Writes the inference as the reading ``described`` of ``catalogue/PAPER/readings.yaml``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from streamgauge.documents import write_whole
from streamgauge.infer.inferring import HOLDS, Inferred
from streamgauge.infer.unknowns import KEPT
from streamgauge.scenario.paper_readings import SOURCES

__all__ = ["DESCRIBED", "described_reading", "write_reading"]

DESCRIBED = "described"


def described_reading(found: Inferred) -> dict[str, Any]:
    """Returns the reading as plain data, without the values that `SOURCES` has."""
    by_name = {one.unknown: one for one in found.ablations}
    values: dict[str, dict[str, Any]] = {}
    fitted: list[str] = []
    meaning = []
    for unknown, value in found.question.unknowns.departures(found.confirmed[DESCRIBED].point):
        one = by_name.get(unknown.name)
        evidence = [] if one is None else list(one.lost or one.nearer)
        fitted += evidence
        meaning.append(f"{unknown.what} {value.label}")
        for glob, address in unknown.at:
            entry: dict[str, Any] = {"value": None if value.value is KEPT else value.value}
            entry |= {"origin": "fitted", "from": evidence} if evidence else {"origin": "input"}
            values.setdefault(glob, {})[address] = entry | {"why": unknown.why}
    order = found.question.checks.claims
    told = found.held_out
    return {
        "meaning": "; ".join(meaning) or "public rules and stated conditions alone",
        "values": values,
        "fitted": [claim for claim in order if claim in fitted],
        "held_out": {
            claim: "pass" if told[claim] in HOLDS else "differs"
            for claim in order
            if told.get(claim) in (*HOLDS, "differs")
        },
    }


def write_reading(found: Inferred, file: Path) -> Path:
    """Puts the reading into a file of readings in the place of the one that is there, and makes it the
    default where it explains more than the sources. Raises OSError."""
    yaml = YAML()
    yaml.width = 118
    yaml.preserve_quotes = True
    data: dict[str, Any] = {}
    if file.is_file():
        data = yaml.load(file.read_text(encoding="utf-8")) or {}
    reading = described_reading(found)
    sources = (data.get(SOURCES) or {}).get("values") or {}
    values = {pattern: dict(of) for pattern, of in sources.items()}
    for pattern, of in reading["values"].items():
        values.setdefault(pattern, {}).update(of)
    data[DESCRIBED] = reading | {"values": values}
    counts = found.counts()
    data.pop("default", None)
    data["default"] = DESCRIBED if counts["described"] > counts["sources"] else SOURCES
    text = io.StringIO()
    yaml.dump(data, text)
    return write_whole(file, text.getvalue())
