"""A scenario's part of the page: the question, the viewers' experience, the flows' behaviour, over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from streamgauge.claims.dimension import show
from streamgauge.metrics import METRICS
from streamgauge.metrics.frame import DOWN, FlowInfo
from streamgauge.report import certificate, checking, figures, words
from streamgauge.report.answer import Answer
from streamgauge.report.drawing import path_drawing
from streamgauge.report.model import NOT_KNOWN, Entry, Group
from streamgauge.report.observed import CAPTURED, coverage_sentences, measured_words
from streamgauge.report.viewer import VIEWER_METRICS, viewer_value
from streamgauge.scenario.words import as_written

__all__ = ["FLOW_COLUMNS", "FlowCell", "flow_rows", "section"]

FLOW_COLUMNS = {
    "throughput": "sent",
    "receiver_rate": "received",
    "goodput": "goodput",
    "loss": "lost",
    "max_min_share": "of its fair share",
    "queue_delay": "in bottleneck",
    "rtt": "round-trip time",
    "packet_size": "mean packet",
}
"""Columns of the table of flows, after the viewers' experience."""
MOST_ACROSS = 5
"""Most flows of one mode with a column each, metrics a row; for more, or for two modes, the table is
transposed."""
OF_TRANSFERS = {"completion_time": "transfer takes"}
"""Those that only flows of short transfers have."""


@dataclass(frozen=True)
class FlowCell:
    """One number of a flow, its interval, and the findings of checks."""

    metric: str
    text: str
    interval: str = ""
    marks: tuple[checking.Mark, ...] = ()


def section(entry: Entry, found: Answer, *, told: bool, before: dict[str, Entry]) -> dict[str, Any]:
    """Returns the data of a scenario for the page's template.

    Args:
        entry: the scenario.
        found: its answer.
        told: whether the answer is at the top already.
        before: scenarios by their path and assumptions, if the page has shown these already; this one is
            added.
    """
    columns, rows = flow_rows(entry)
    if (measured_path := measured_words(entry)) is None:
        path, drawing = words.path_words(entry.plan), path_drawing(entry)
    else:
        path, drawing = f"The path between the captures: {measured_path}.", ""
    written = re.sub(r"<[^>]+>", " ", drawing)
    alike = before.setdefault(f"{path}{written}", entry)
    measured = words.measure_words(entry), words.drawn_words(entry), _cited(entry.source)
    measured_alike = before.setdefault(f"{measured}", entry)
    assumed = {one: before.setdefault(one, entry) for one in _assumed(entry)}
    return {
        "id": entry.id,
        "slug": entry.slug,
        "title": entry.title,
        "path": path,
        "drawing": Markup(drawing),
        "path_as": None if alike is entry else {"slug": alike.slug, "title": alike.title},
        "measured": " ".join(
            [*filter(None, measured[:2]), *([f"Source: {measured[2]}."] if measured[2] else [])]
        ),
        "measured_as": None
        if measured_alike is entry
        else {"slug": measured_alike.slug, "title": measured_alike.title},
        "assumed": [one for one, first in assumed.items() if first is entry],
        "assumed_as": next((first.slug for first in assumed.values() if first is not entry), ""),
        # The first one of a capture's is at the top.
        "sentences": () if told else found.sentences[1 if measured_path else 0 :],
        "basis": found.basis,
        "conditions": words.bottleneck_words(entry),
        "in_words": words.flows_words(entry),
        "columns": columns,
        "flows": rows,
        "is_upright": len(entry.groups) == 1 and len(rows) <= MOST_ACROSS,
        "stands_in": _stand_ins(entry),
        "checks": checking.of_section(entry),
        "figures": figures.for_entry(entry),
        "instrument": certificate.for_groups(entry.groups),
        "trials": [_trials(group) for group in entry.groups],
    }


def _cited(source: Mapping[str, Any]) -> str:
    if not source:
        return ""
    of = f", section {source['section']}" if source.get("section") else ""
    shows = f" ({', '.join(source['shows'])})" if source.get("shows") else ""
    return f"{source.get('paper', '')}{of}{shows}"


def _assumed(entry: Entry) -> list[str]:
    found = []
    for address, assumed in (entry.scenario.get("assumed") or {}).items():
        values = assumed.get("try", []) if isinstance(assumed, Mapping) else assumed
        why = f": {assumed['why']}" if isinstance(assumed, Mapping) and assumed.get("why") else ""
        found.append(f"{address} (else {', '.join(map(as_written, values))}){why}")
    return found


def _trials(group: Group) -> dict[str, Any]:
    """Returns how many trials of a mode are valid, and why others are not."""
    return {
        "mode": group.mode,
        "valid": len(group.valid),
        "all": len(group.trials),
        "is_captured": group.mode == CAPTURED,
        "coverage": coverage_sentences(group),
        "invalid": [
            {"seed": trial.seed, "why": "; ".join(trial.why), "replaced_by": group.replaced_by(trial)}
            for trial in group.trials
            if not trial.valid
        ],
    }


def _columns(entry: Entry) -> dict[str, str]:
    """Returns metrics of the table of flows with their headings: without those that no flow has, except those
    that only the network has."""
    numbers = [group.numbers for group in entry.groups]
    has = any(one.has_transfers(name) for one in numbers for name in one.infos)
    watched = {
        metric: title
        for metric, title in VIEWER_METRICS.items()
        if any(
            viewer_value(group, metric, name) is not None
            for group in entry.groups
            for name in group.numbers.infos
        )
    }
    return watched | (OF_TRANSFERS if has else {}) | FLOW_COLUMNS


def _role(info: FlowInfo, group: Group) -> str:
    """Returns a flow's role; its protocol if it has no plan."""
    return info.system if group.mode == CAPTURED else words.ROLES.get(info.role, info.role)


def flow_rows(entry: Entry) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Returns the table of flows: its columns ({"metric", "title", "about"}) and rows, one a flow and
    mode."""
    columns, found = _columns(entry), checking.marks(entry)
    rows = []
    names = dict.fromkeys(name for group in entry.groups for name in group.numbers.infos)
    for name in names:
        for group in entry.groups:
            info = group.numbers.infos.get(name)
            if info is None:
                continue
            way = "" if info.direction == DOWN else ", media up"
            rows.append(
                {
                    "name": name,
                    "role": f"{_role(info, group)}{way}",
                    "mode": group.mode,
                    "n": len(group.valid),
                    "all": len(group.trials),
                    "cells": [_cell(group, metric, name, found) for metric in columns],
                }
            )
    heads = [
        {"metric": metric, "title": title, "about": METRICS[metric].title if metric in METRICS else title}
        for metric, title in columns.items()
    ]
    return heads, rows


def _cell(
    group: Group, metric: str, name: str, marks: Mapping[tuple[str, str, str], Sequence[checking.Mark]]
) -> FlowCell:
    mine = tuple(marks.get((group.mode, metric, name), ()))
    found = viewer_value(group, metric, name) if metric in VIEWER_METRICS else group.over(metric, name)
    if found is None:
        absent = metric in VIEWER_METRICS or (
            metric in OF_TRANSFERS and not group.numbers.has_transfers(name)
        )
        return FlowCell(metric, "–" if absent else NOT_KNOWN, "", mine)
    named = METRICS[metric]
    shown = show(found.mean, found.half_width, named.dimension, signed=named.signed)
    if found.no_variation:
        interval = "no variation"
    else:
        interval = f"{shown.interval} {shown.unit}" if shown.half else ""
    return FlowCell(metric, f"{shown.mean} {shown.unit}".rstrip(), interval.rstrip(), mine)


def _stand_ins(entry: Entry) -> str:
    """Returns the flows that are ours in simulation and third-party in emulation."""
    sim, emu = entry.group("sim"), entry.group("emu")
    if sim is None or emu is None:
        return ""
    names = [
        name
        for name, info in sim.numbers.infos.items()
        if name in emu.numbers.infos and info.ours != emu.numbers.infos[name].ours
    ]
    if not names:
        return ""
    return f"In simulation our own model stands in for the real system: {', '.join(names)}."
