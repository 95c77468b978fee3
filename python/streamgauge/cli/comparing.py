"""``compare``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.markup import escape
from rich.text import Text

from streamgauge.campaign import EmuSettings
from streamgauge.campaign.loaded import load_trials, trial_folders
from streamgauge.campaign.machine import choose_mode
from streamgauge.cli.gating import GateFiles, written
from streamgauge.cli.options import REPLACE, Keep
from streamgauge.cli.output import DIM, heads, remark, say, table
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import modes_in_words
from streamgauge.cli.status import INTERRUPTED, STATUS
from streamgauge.compare import (
    COMPARED,
    Comparison,
    Margin,
    answered,
    compare,
    say_value,
    verdict_words,
)
from streamgauge.compare.answer import MANY
from streamgauge.compare.baseline import load_baseline, save_baseline
from streamgauge.compare.commits import build_commits, subjects_of_builds
from streamgauge.compare.junit import write_junit
from streamgauge.compare.metrics import margin_of
from streamgauge.compare.running import CollectedTrials, Trials, collect, looks
from streamgauge.compare.subjects import ComparedSubject, subjects_of
from streamgauge.compare.summary import write_summary
from streamgauge.compare.trials import ALONE
from streamgauge.compare.verdict import verdict_of
from streamgauge.compare.words import RANK_NOTE, say_rank
from streamgauge.documents import check_place
from streamgauge.errors import ScenarioError
from streamgauge.report import gather
from streamgauge.report.build import write_page
from streamgauge.report.ranking import in_order, leading_metrics
from streamgauge.scenario.over import parse_overs
from streamgauge.scenario.values import nearest
from streamgauge.systems.registry import Mode

__all__ = ["CompareRequest", "compare_command"]

_MARK = {
    "pass": "[green]pass[/green]",
    "fail": "[red]fail[/red]",
    "inconclusive": "[yellow]inconclusive[/yellow]",
}
_SIDES = {"viewer": "viewer", "flow": "flow", "neighbour": "neighbours"}


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """Request on the command line."""

    operands: Sequence[str]
    over: Sequence[str]
    inside: str | None
    commits: Sequence[str]
    build: str | None
    baseline: str | None
    against: Path | None
    save_baseline: Path | None
    metrics: Sequence[str]
    margins: Sequence[str]
    flow: str | None
    mode: str | None
    seed: int
    repeat: int | None
    until_decided: bool
    at_most: int
    alone: bool
    settings: Sequence[str]
    out: Path
    keep: Keep
    way: str | None
    jobs: int
    brought: tuple[Path, ...]
    replace: int | None
    verify: bool
    files: GateFiles
    report: Path | None
    as_json: bool


def compare_command(request: CompareRequest) -> int:
    """Runs the subjects, compares, prints, and returns the exit status."""
    metrics, margins = _metrics(request.metrics), _margins(request.margins)
    saved = [] if request.against is None else load_baseline(request.against)
    _check_places(request)
    subjects = _subjects(request)
    modes = _modes(request, subjects)
    if request.commits:
        builds = build_commits(
            request.commits, _near(request, subjects), request.out, command=request.build, say=remark
        )
        subjects = subjects_of_builds(builds, subjects)
    _several(request, subjects)
    baseline = saved[0].subject if saved else _baseline(request, subjects)
    how = Trials(
        out=request.out,
        modes=modes,
        first_seed=request.seed,
        keep=request.keep,
        emu=EmuSettings(
            way=request.way,
            jobs=request.jobs,
            brought=request.brought,
            replace=REPLACE if request.replace is None else request.replace,
        ),
        verify=request.verify,
        with_alone=request.alone,
        flow=request.flow,
    )
    counts: list[int | None] = [request.repeat]
    if request.until_decided:
        counts = list(looks(request.repeat or _own_repetitions(subjects, modes), request.at_most))
    with Bar() as bar:
        for count in counts:
            ran = collect(subjects, how, repeat=count, progress=bar.update)
            if ran.interrupted:
                break
            # Beside a saved baseline, a setting is no request to vary it: conditions must be equal.
            trials = [replace(one, base=None) if saved else one for one in ran.trials]
            found = compare(
                [*saved, *trials], baseline=baseline, metrics=metrics, margins=margins, looks=len(counts)
            )
            if found.decided:
                break
    if ran.interrupted:
        remark("interrupted; the same command resumes")
        return INTERRUPTED
    found = answered(found)
    written(request.files.junit, partial(write_junit, found))
    written(request.files.summary, partial(write_summary, found))
    if request.save_baseline is not None:
        first = subjects[0].label
        written(
            request.save_baseline,
            partial(save_baseline, [one for one in ran.trials if one.subject in (first, "")]),
        )
    if request.report is not None:
        entries = gather(load_trials(_folders(subjects, ran)))
        written(request.report, partial(write_page, entries, compared=found))
    verdict = verdict_of(found)
    if request.as_json:
        json.dump(found.to_json(), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(found, ran, metrics)
    return int(STATUS[verdict.verdict])


def _check_places(request: CompareRequest) -> None:
    """Refuses unwritable places before anything starts."""
    request.files.prepare()
    for option, place in (("--save-baseline", request.save_baseline), ("--report", request.report)):
        if place is not None:
            check_place(place, option)


def _folders(subjects: Sequence[ComparedSubject], ran: CollectedTrials) -> list[Path]:
    """Returns every trial that was compared, but the neighbours' alone."""
    found = [
        folder for one in subjects if one.directory is not None for folder in trial_folders(one.directory)
    ]
    kept = [outcome.job.directory for outcome in ran.outcomes if outcome.digest is not None]
    return [*found, *(folder for folder in kept if ALONE.name not in folder.parts)]


def _subjects(request: CompareRequest) -> list[ComparedSubject]:
    axes = parse_overs(request.over, request.settings)
    # Other options define the difference, or ask for one subject's numbers to be kept or compared.
    apart = not (axes or request.inside or request.commits or request.against or request.save_baseline)
    return subjects_of(
        request.operands,
        axes=axes,
        settings=request.settings,
        inside=request.inside,
        flow=request.flow,
        apart=apart,
    )


def _several(request: CompareRequest, subjects: Sequence[ComparedSubject]) -> None:
    lone = request.against is None and request.save_baseline is None
    if len(subjects) < 2 and lone:
        raise ScenarioError(
            f"'{request.operands[0]}' is one subject, and a comparison needs two or more",
            hint="name another, or give a difference with --over, --commit or --against",
        )


def _near(request: CompareRequest, subjects: Sequence[ComparedSubject]) -> Path:
    """Returns a file in the repository of the compared commits."""
    named = request.inside or request.operands[0].split()[0]
    if not Path(named).is_file() or any(one.directory is not None for one in subjects):
        raise ScenarioError(
            f"'{named}' is no scenario's file, by which the repository would be found", key="--commit"
        )
    return Path(named).resolve()


def _modes(request: CompareRequest, subjects: Sequence[ComparedSubject]) -> dict[str, Sequence[Mode]]:
    """Returns the modes of each scenario, by its id: the same for all subjects, which compares like with
    like."""
    scenarios = {asked.scenario.id: asked.scenario for one in subjects for asked in one.asked}
    by_word: dict[str | None, list[Mode | None]] = {"sim": ["sim"], "emu": ["emu"], "both": ["sim", "emu"]}
    wanted = by_word.get(request.mode, [None])
    choices = {
        id_: [choose_mode(one, mode, way=request.way) for mode in wanted] for id_, one in scenarios.items()
    }
    if len({choice.mode for mine in choices.values() for choice in mine}) > len(wanted):
        # Some cannot be emulated here, and simulated ones cannot be compared with emulated ones.
        choices = {id_: [choose_mode(one, "sim", way=request.way)] for id_, one in scenarios.items()}
    if not any(one.mode for one in subjects):
        for place in range(len(wanted)):
            for line in modes_in_words({id_: mine[place] for id_, mine in choices.items()}):
                remark(line)
    return {id_: [choice.mode for choice in mine] for id_, mine in choices.items()}


def _own_repetitions(subjects: Sequence[ComparedSubject], modes: Mapping[str, Sequence[Mode]]) -> int:
    return max(
        int(getattr(asked.scenario.repetitions, mode))
        for one in subjects
        for asked in one.asked
        for mode in modes[asked.scenario.id]
    )


def _baseline(request: CompareRequest, subjects: Sequence[ComparedSubject]) -> str | None:
    """Returns the baseline by its label, or by its operand."""
    if request.baseline is None:
        return subjects[0].label
    for one in subjects:
        if request.baseline in (one.label, one.operand):
            return one.label
    known = ", ".join(f"'{one.label}'" for one in subjects)
    close = nearest(request.baseline, [one.label for one in subjects])
    raise ScenarioError(
        f"no subject is called '{request.baseline}'; there are {known}",
        key="--baseline",
        hint=f"did you mean '{close}'?" if close else None,
    )


def _metrics(names: Sequence[str]) -> list[str]:
    for name in names:
        if name not in COMPARED:
            close = nearest(name, COMPARED)
            raise ScenarioError(
                f"no compared metric is called '{name}'; there are {', '.join(COMPARED)}",
                key="--metric",
                hint=f"did you mean '{close}'?" if close else None,
            )
    return list(names)


def _margins(given: Sequence[str]) -> dict[str, Margin]:
    found = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ScenarioError(f"'{text}' is no margin", key="--margin", hint="expected such as goodput=2%")
        _metrics([name])
        try:
            found[name] = margin_of(COMPARED[name], value)
        except ValueError as error:
            raise ScenarioError(str(error), key=f"--margin {text}") from None
    return found


def _print(found: Comparison, ran: CollectedTrials, asked: Sequence[str]) -> None:
    many = len(found.subjects) > MANY
    for sentence in [*found.answer[:1], *found.not_comparable] if many else found.answer:
        say(escape(sentence))
    for note in found.notes:
        say(f"[yellow]{escape(note)}[/yellow]")
    for scenario in found.scenarios:
        for mode in found.modes:
            if any((row.scenario, row.mode) == (scenario, mode) for row in found.rows):
                if many:
                    _print_ranking(found, scenario, mode, asked)
                else:
                    _print_rows(found, scenario, mode)
    for one in ran.set_aside:
        say(escape(one.words()))
    verdict = verdict_of(found)
    if len(found.subjects) > 1 or verdict.verdict != "pass":
        say()
        say(f"{_MARK[verdict.verdict]}: {escape(verdict.why)}")


def _print_ranking(found: Comparison, scenario: str, mode: str, asked: Sequence[str]) -> None:
    """A line a subject, by the values of the first column, with its rank."""
    mine = [row for row in found.rows if (row.scenario, row.mode) == (scenario, mode)]
    rows = {(row.metric, row.subject): row for row in mine}
    columns = leading_metrics(mine, asked)
    subjects = in_order(
        [one for one in found.subjects if any(one == row.subject for row in mine)], mine, asked
    )
    n = max(row.n for row in rows.values())
    say()
    say(f"[b]{escape(scenario)}[/b] {escape(mode)}, n = {n}, ranked by {columns[0].short}")
    lines: list[Sequence[str | Text]] = [
        heads("rank", "subject", *(metric.short for metric in columns), style=DIM)
    ]
    by_value = False
    for one in subjects:
        values = []
        for metric in columns:
            row = rows.get((metric.name, one))
            said = "" if row is None else escape(say_value(row))
            values.append(f"[green]{said}[/green]" if row is not None and row.rank == 1 else said)
        first = rows.get((columns[0].name, one))
        by_value = by_value or (first is not None and first.ranked_by_value)
        lines.append([say_rank(first), escape(one), *values])
    table(lines, f"rl{'l' * len(columns)}", keys=2)
    if by_value:
        say(RANK_NOTE)


def _print_rows(found: Comparison, scenario: str, mode: str) -> None:
    """A line a metric and subject, by the sides of the comparison."""
    rows = [row for row in found.rows if (row.scenario, row.mode) == (scenario, mode)]
    subjects = list(dict.fromkeys(row.subject for row in rows))
    invalid = {row.subject: row.invalid for row in rows if row.invalid}
    told = "".join(f", {count} of {escape(subject)} invalid" for subject, count in invalid.items())
    n = max(row.n for row in rows)
    say()
    say(f"[b]{escape(scenario)}[/b] {escape(mode)}, n = {n}{told}")
    against = f"against {found.baseline}" if len(found.subjects) > 1 else ""
    lines: list[Sequence[str | Text]] = [heads("metric", "subject", "mean", against, style=DIM)]
    side = ""
    for metric in found.metrics(scenario, mode):
        if metric.side != side:
            side = metric.side
            lines.append([f"[b]{_SIDES[metric.side]}[/b]", "", "", ""])
        for place, subject in enumerate(subjects):
            row = found.row(subject, scenario, mode, metric.name)
            if row is not None:
                name = f"  {metric.short}" if not place else ""
                against = _coloured(row.verdict, escape(verdict_words(row)))
                lines.append([name, escape(subject), escape(say_value(row)), against])
    table(lines, "lllw", keys=2)


def _coloured(verdict: str | None, words: str) -> str:
    colour = {"better": "green", "worse": "red", "undecided": "yellow"}.get(verdict or "")
    return f"[{colour}]{words}[/{colour}]" if colour else words
