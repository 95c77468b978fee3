"""``reproduce`` of a whole paper: its tables and figures beside ours, under each preset."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.campaign import EmuSettings, run, run_alternatives, run_mutants, score, standings
from streamgauge.campaign.machine import choose_mode
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import INTERRUPTED, STATUS, Request, all_lower, chosen_out
from streamgauge.cli.tables import score_words
from streamgauge.errors import ScenarioError
from streamgauge.paper import (
    Compared,
    Paper,
    Reading,
    compare,
    comparison_text,
    draw,
    papers,
    read,
    table_json,
    tables_text,
    write_page,
)
from streamgauge.report import Figure, save
from streamgauge.scenario import find
from streamgauge.systems.registry import Mode

__all__ = ["paper_of", "reproduce_paper"]


def paper_of(names: Sequence[str]) -> Paper | None:
    """The paper that is asked for: its folder of the catalogue, alone and by name."""
    return papers().get(names[0].rstrip("/")) if len(names) == 1 else None


@dataclass(frozen=True)
class _Times:
    """What took how long, s."""

    trials: dict[str, float]
    figures: float


def reproduce_paper(paper: Paper, request: Request, preset: str | None) -> int:
    """Runs all of a paper, prints its tables and the presets' verdicts, writes page and figures."""
    out = chosen_out(request)
    known = paper.presets.values if paper.presets else ("",)
    if preset is not None and preset not in known:
        raise ScenarioError(f"the paper '{paper.id}' has no preset '{preset}'; it has {', '.join(known)}")
    chosen = known if preset is None else (preset,)
    readings, interrupted = [], False
    for name in chosen:
        # The catalogue's own preset lies where any run of it does; others are the catalogue changed.
        reading, interrupted = _read(
            paper, request, name, out if name == known[0] else out / f"set-preset-{name}"
        )
        readings.append(reading)
        if interrupted:
            break
    compared = compare(readings) if len(readings) > 1 else []
    began = time.monotonic()
    drawn = {} if interrupted else _draw(paper, readings, out)
    if not interrupted:
        write_page(paper, readings, compared, drawn, out / f"{paper.id}.html")
    times = _Times({reading.preset: reading.wall_s for reading in readings}, time.monotonic() - began)
    if request.as_json:
        json.dump(_json(paper, readings, compared, times), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(paper, readings, compared, times, out)
    if interrupted:
        print("streamgauge: interrupted; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    verdicts = {check.verdict for check in readings[0].checks}
    return next((STATUS[verdict] for verdict in ("fail", "inconclusive") if verdict in verdicts), 0)


def _read(paper: Paper, request: Request, preset: str, out: Path) -> tuple[Reading, bool]:
    """One preset, run in full."""
    began = time.monotonic()
    scenarios = find([paper.id], settings=request.settings)
    if paper.presets is not None and preset != paper.presets.values[0]:
        scenarios = [paper.presets.applied(scenario, preset) for scenario in scenarios]
    modes: dict[str, Sequence[Mode]] = {
        scenario.id: [choose_mode(scenario, request.mode, way=request.way)] for scenario in scenarios
    }
    first_seed = 1 if request.seed is None else request.seed
    repeat = 1 if request.seed is not None and request.repeat is None else request.repeat
    all_lower(scenarios, modes, first_seed)
    emu = EmuSettings(way=request.way, jobs=request.jobs)
    more: dict[str, Any] = {"first_seed": first_seed, "repeat": repeat, "keep": request.keep, "emu": emu}
    mutants = alternatives = None
    with Bar() as bar:
        result = run(scenarios, modes, out, settings=request.settings, progress=bar.update, **more)
        wall_s = time.monotonic() - began
        if request.mutants and not result.interrupted:
            mutants, _ = run_mutants(result, progress=bar.update, **more)
        if request.robust and not result.interrupted:
            alternatives = run_alternatives(result, progress=bar.update, **more)
    meaning = paper.presets.meaning[preset] if paper.presets else ""
    reading = read(result, preset, meaning, wall_s=wall_s, mutants=mutants, alternatives=alternatives)
    return reading, result.interrupted


def _draw(paper: Paper, readings: Sequence[Reading], out: Path) -> dict[str, list[Figure]]:
    """Every figure of every preset, also as files."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        reading.preset: [made for one in paper.figures if (made := draw(paper, one, reading)) is not None]
        for reading in readings
    }
    for made in drawn.values():
        for figure in made:
            for suffix in ("svg", "png"):
                save(figure, folder / f"{figure.id}.{suffix}")
    return drawn


def _print(
    paper: Paper, readings: Sequence[Reading], compared: Sequence[Compared], times: _Times, out: Path
) -> None:
    said = [paper.citation]
    for reading in readings:
        said.append(tables_text(paper, reading))
        if len(readings) == 1:
            said.append("\n".join(_check_lines(reading)))
    if compared:
        said.append(comparison_text(compared, readings))
    for reading in readings:
        of = f"preset {reading.preset}: " if reading.preset else ""
        invalid = [
            trial
            for entry in reading.entries
            for group in entry.groups
            for trial in group.trials
            if not trial.valid
        ]
        if invalid:
            reasons = "; ".join(dict.fromkeys(reason for trial in invalid for reason in trial.why))
            said.append(f"{of}{len(invalid)} trials are invalid and left out: {reasons}")
        if reading.mutants is not None:
            missed = [one for one in reading.mutants if not one.killed]
            lines = [f"{of}{score_words(reading.mutants)}"]
            lines += [
                f"  not noticed by {one.scenario} {one.mode} {one.check} ({one.verdict}): {one.why}"
                for one in missed
            ]
            said.append("\n".join(lines))
        if reading.alternatives is not None:
            lines = [f"{of}verdicts, if what the paper does not state were otherwise"]
            lines += [
                f"  {one.scenario} {one.mode} {one.check} ({one.verdict}): {one.words()}"
                for one in standings(reading.alternatives)
            ]
            said.append("\n".join(lines))
    took = []
    for reading in readings:
        of = f" of preset {reading.preset}" if reading.preset else ""
        again = f" ({reading.reused} there already)" if reading.reused else ""
        took.append(
            f"{reading.trials} trials{again} and {len(reading.checks)} checks{of} in {reading.wall_s:.1f} s"
        )
    where = f"page {out / f'{paper.id}.html'}, figures in {out / 'figures'}"
    said.append(f"{'; '.join(took)}; figures in {times.figures:.1f} s; {where}")
    print("\n\n".join(said))


def _check_lines(reading: Reading) -> list[str]:
    return [
        f"{check.verdict} {check.scenario} {check.mode} {check.id} "
        f"({check.origin}{', strict' if check.strict else ''}): {check.title}. {check.why}"
        for check in reading.checks
    ]


def _json(
    paper: Paper, readings: Sequence[Reading], compared: Sequence[Compared], times: _Times
) -> dict[str, Any]:
    """``streamgauge.paper/1``."""
    return {
        "schema": "streamgauge.paper/1",
        "paper": paper.id,
        "citation": paper.citation,
        "tables": [table_json(table, readings) for table in paper.tables],
        "presets": [
            {
                "preset": reading.preset or None,
                "meaning": reading.meaning or None,
                "modes": reading.modes,
                "trials": reading.trials,
                "reused": reading.reused,
                "wall_s": reading.wall_s,
                "checks": [check.to_json() for check in reading.checks],
                "mutants": None if reading.mutants is None else [one.to_json() for one in reading.mutants],
                "mutation_score": None if reading.mutants is None else score(reading.mutants),
                "robust": None
                if reading.alternatives is None
                else [one.to_json() for one in standings(reading.alternatives)],
            }
            for reading in readings
        ],
        "comparison": [one.to_json() for one in compared],
        "figures_s": times.figures,
    }
