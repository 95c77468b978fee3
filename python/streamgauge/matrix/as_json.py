"""``streamgauge.matrix/1``."""

from __future__ import annotations

from typing import Any

from streamgauge.claims.dimension import json_value
from streamgauge.compare.statistics import CONFIDENCE
from streamgauge.matrix.agreement import MeasureAgreement, agreements
from streamgauge.matrix.answer import sentences
from streamgauge.matrix.judged import JudgedKind, JudgedMatrix, undisturbed_of

__all__ = ["SCHEMA", "to_json"]

SCHEMA = "streamgauge.matrix/1"


def to_json(found: JudgedMatrix) -> dict[str, Any]:
    """Everything that is ranked, as docs/matrix.md describes it."""
    undisturbed = undisturbed_of(found.matrix)
    ids = {(cell.kind, cell.system): cell.scenario.id for cell in found.matrix.cells}
    return {
        "schema": SCHEMA,
        "matrix": found.matrix.id,
        "question": found.matrix.question,
        "confidence": CONFIDENCE,
        "answer": [
            {"text": one.text, "basis": one.basis, "evidence": one.evidence} for one in sentences(found)
        ],
        "kinds": [
            {
                "name": kind.name,
                "label": kind.label,
                "question": kind.question,
                "group": kind.group,
                "undisturbed": kind.name in undisturbed,
            }
            for kind in found.matrix.kinds
        ],
        "systems": [
            {"name": system.name, "label": system.label, "own": system.own} for system in found.matrix.systems
        ],
        "trials": found.trials,
        "emulated": {one.kind.name: one.machine for one in found.kinds if one.mode == "emu"},
        "agreement": [_agreement(one) for one in agreements(found)],
        "rows": [row for one in (*found.overall, *found.kinds) for row in _rows(one, ids)],
        "refused": [
            {"scenario": cell.scenario.id, "mode": mode, "why": why}
            for cell in found.matrix.cells
            for mode, why in cell.refused.items()
        ],
        "notes": list(found.notes),
    }


def _agreement(one: MeasureAgreement) -> dict[str, Any]:
    gap, unit = json_value(one.middle_gap, one.about.dimension)
    return {
        "metric": one.about.name,
        "cells": len(one.pairs),
        "alike": one.alike,
        "unit": unit,
        "median_apart": gap,
        "orders": one.orders,
        "same": one.same,
        "level": one.level,
        "turned": one.turned,
        "tau": one.tau,
    }


def _rows(one: JudgedKind, ids: dict[tuple[str, str], str]) -> list[dict[str, Any]]:
    made = []
    for row in one.rows:
        told = row.to_json()
        made.append(
            {
                "kind": one.kind.name,
                "system": row.subject,
                "scenario": ids.get((one.kind.name, row.subject)),
                "mode": one.mode,
                "metric": row.metric,
                **{
                    key: told[key]
                    for key in ("side", "unit", "value", "interval", "n", "invalid", "rank", "values")
                },
                "beaten_by": list(row.beaten_by),
            }
        )
    return made
