"""``infer``: the search, its table, page and files."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from rich.markup import escape

from streamgauge.campaign import Progress
from streamgauge.campaign.trial import disk_errors
from streamgauge.cli.elsewhere import placed
from streamgauge.cli.output import say, table
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import interrupted
from streamgauge.cli.status import STATUS
from streamgauge.documents import write_whole
from streamgauge.errors import ScenarioError
from streamgauge.infer.blocks import blocks_of, split_file, split_text
from streamgauge.infer.inferring import Inferred, SearchSize, infer, question_of
from streamgauge.infer.page import write_page
from streamgauge.infer.telling import sentences
from streamgauge.infer.unknowns import unknowns_file
from streamgauge.infer.writing import write_reading
from streamgauge.paper import Paper, papers, stating
from streamgauge.scenario import find
from streamgauge.scenario.shipped import READINGS_FILE
from streamgauge.scenario.values import nearest

__all__ = ["InferRequest", "infer_command"]


@dataclass(frozen=True, kw_only=True)
class InferRequest:
    """Request on the command line."""

    paper: str
    points: int
    seeds: int
    confirm: int
    members: int
    out: Path | None
    on: str | None
    report: Path | None
    write_reading: bool
    draw_split: int | None
    as_json: bool


def infer_command(request: InferRequest) -> int:
    """Runs, writes, prints, and returns the exit status: 0, or 130 after Ctrl-C."""
    paper = _paper(request.paper)
    if request.draw_split is not None:
        return _draw_split(paper, request.draw_split)
    out = request.out or Path("runs") / "infer" / paper.id
    began = time.monotonic()
    with placed(request.on, str(out)) as (folder, elsewhere):
        question = question_of(paper)
        if elsewhere is not None:
            scenarios = list(question.scenarios)
            elsewhere.prepare(scenarios, {one.id: ["sim"] for one in scenarios}, seed=1, way=None)
        asked = SearchSize(
            points=request.points, seeds=request.seeds, confirm=request.confirm, members=request.members
        )
        try:
            with Bar(of="points") as bar:
                shown = _Shown(bar)
                found = infer(
                    question,
                    asked,
                    folder,
                    cluster=None if elsewhere is None else elsewhere.cluster,
                    told=shown.phase,
                    progress=shown.trials,
                )
        except KeyboardInterrupt:
            return interrupted(f"what has run is kept in {folder}; the same command goes on there")
    found = replace(found, wall_s=time.monotonic() - began)
    page = request.report or folder / f"{paper.id}.html"
    result = folder / "inferred.json"
    with disk_errors(page):
        write_page(found, page)
    with disk_errors(result):
        write_whole(result, json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n")
    if request.write_reading:
        file = split_file(paper.id).with_name(READINGS_FILE)
        with disk_errors(file):
            write_reading(found, file)
    if request.as_json:
        json.dump(found.to_json(), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(found, page, result)
    return STATUS["pass"]


def _paper(name: str) -> Paper:
    known = {one: paper for one, paper in papers().items() if unknowns_file(one).is_file()}
    if name not in known:
        close = nearest(name, known)
        raise ScenarioError(
            f"there is no paper '{name}' with unknowns; expected one of {', '.join(sorted(known))}",
            hint=f"did you mean '{close}'?" if close else None,
        )
    return known[name]


def _draw_split(paper: Paper, seed: int) -> int:
    scenarios = stating([paper], find([f"{paper.id}/*"], mutants=False))
    file = split_file(paper.id)
    with disk_errors(file):
        write_whole(file, split_text(paper.id, blocks_of(paper, scenarios), seed))
    say(f"{escape(str(file))}: halves drawn by seed {seed}; fits from before are not held out by it")
    return STATUS["pass"]


class _Shown:
    """The bar: points, with the phase and the trials under way in words."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._began = time.monotonic()
        self._words, self._done, self._planned = "", 0, 1

    def phase(self, words: str, done: int, planned: int) -> None:
        """A phase begins, or points of it are done."""
        self._words, self._done, self._planned = words, done, planned
        self._show("")

    def trials(self, told: Progress) -> None:
        """Trials of the points under way."""
        rate = "" if told.rate is None else f", {told.rate:.1f} a second"
        self._show(f": {told.done}/{told.total} trials{rate}")

    def _show(self, more: str) -> None:
        spent = time.monotonic() - self._began
        left = spent / self._done * max(0, self._planned - self._done) if self._done else None
        self._bar.update(Progress(self._done, self._planned, left, f"{self._words}{more}"))


def _print(found: Inferred, page: Path, result: Path) -> None:
    counts = found.counts()
    say(f"[b]What must have been true of {escape(found.question.name)}[/b]")
    for number, one in enumerate(sentences(found), 1):
        say(f"{number}. {escape(one.text)} [dim]{escape(one.basis)}[/dim]", hanging=3)
    say()
    rows = [
        ["claims", "whole"],
        ["public sources alone", str(counts["sources"])],
        ["described", f"{counts['described']} ({counts['undecided']} undecided)"],
        ["held out", str(counts["held_out"])],
        ["permuted: sources, fitted (by means)", f"{counts['control_sources']}, {counts['control_fitted']}"],
        ["of", str(counts["claims"])],
    ]
    table(rows, "lr")
    took = f"{len(found.search.tried)} points, {found.trials} trials in {found.wall_s:.0f} s"
    say(f"{took}; page {escape(str(page))}, {escape(str(result))}")
