"""``reproduce`` of a whole paper: its tables and figures beside ours, under each reading; and of several at
once, all that they claim in one table."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.campaign import MutantResult, Progress, score, standings
from streamgauge.campaign.layout import machine_of
from streamgauge.campaign.pool import started_ahead
from streamgauge.claims.dimension import TIME, say
from streamgauge.cli.output import say_text
from streamgauge.cli.progress import Bar
from streamgauge.cli.running import (
    Ran,
    RunRequest,
    carry_out,
    chosen_modes,
    chosen_out,
    interrupted,
    status_of,
    write_files,
)
from streamgauge.cli.tables import answer_to, score_words
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.paper import (
    ComparedCheck,
    Paper,
    PaperByReading,
    Reading,
    SentPackets,
    by_reading_json,
    by_reading_text,
    claims_of,
    claims_text,
    compare,
    comparison_text,
    draw,
    flows_of_packets,
    joined,
    outcomes_of,
    papers,
    read,
    stating,
    table_json,
    tables_text,
    write_page,
)
from streamgauge.paper.by_reading import better_words
from streamgauge.paper.machines import folders_of, mode_json
from streamgauge.processors import processors
from streamgauge.report import DrawnFigure, Saving
from streamgauge.scenario import Scenario, catalogue_ids, find
from streamgauge.scenario.paper_readings import READING, SOURCES, readings_of
from streamgauge.scenario.settings import set_folder
from streamgauge.scenario.values import nearest
from streamgauge.terminal import columns_of

__all__ = ["ALL", "papers_of", "readings_to_run", "reproduce_paper", "reproduce_papers"]

ALL = "all"
"""Selects every reading of a paper."""


def papers_of(names: Sequence[str]) -> list[Paper]:
    """Returns the papers that are asked for, by the names of their folders in the catalogue, each once; none
    where any name is of something else.

    Raises ScenarioError if some names are papers' and another is nothing's.
    """
    known = papers()
    asked = list(dict.fromkeys(name.rstrip("/") for name in names))
    found = [known[name] for name in asked if name in known]
    if len(found) == len(asked):
        return found
    if not found:
        return []
    families = {scenario.partition("/")[0] for scenario in catalogue_ids()}
    strange = [name for name in asked if name not in families and _is_word(name)]
    if strange:
        told = " and ".join(f"'{name}'" for name in strange)
        close = [near for name in strange if (near := nearest(name, known)) and near not in asked]
        raise ScenarioError(
            f"there {'is no paper' if len(strange) == 1 else 'are no papers'} {told}",
            hint=(f"did you mean {' and '.join(close)}? " if close else "")
            + f"papers are {', '.join(sorted(known))}",
        )
    return []


def _is_word(name: str) -> bool:
    """Returns whether it can be nothing but a folder's name: no file, no scenario, no pattern."""
    return not any(sign in name for sign in "/*?[") and not Path(name).exists()


def readings_to_run(asked: Sequence[Paper], reading: str | None) -> dict[str, list[str]]:
    """Returns by reading the papers that run under it: `SOURCES` and the best explanation, one by name, or
    ``all``.

    A paper without the named reading runs under `SOURCES`, as long as another has it. Raises ScenarioError if
    none has it.
    """
    found: dict[str, list[str]] = {}
    if reading not in (None, ALL) and not any(reading in readings_of(paper.id).by_name for paper in asked):
        readings_of(asked[0].id).named(str(reading))
    for paper in asked:
        known = readings_of(paper.id)
        if reading is None:
            names: Sequence[str] = known.compared
        elif reading == ALL:
            names = list(known.by_name)
        else:
            names = [reading if reading in known.by_name else SOURCES]
        for name in names:
            found.setdefault(name, []).append(paper.id)
    return found


def default_of(paper: Paper, reading: str | None) -> str:
    """Returns the reading that supplies the paper's verdicts, of those that run."""
    known = readings_of(paper.id)
    if reading in (None, ALL):
        return known.default
    return str(reading) if reading in known.by_name else SOURCES


def reproduce_paper(paper: Paper, request: RunRequest, reading: str | None, *, both: bool = False) -> int:
    """Runs all of a paper, prints its tables and the readings' verdicts, writes page and figures; `both` runs
    it simulated and then emulated.

    Returns the exit status: by the verdicts of this run under the default reading, or the named one.
    """
    request.files.prepare()
    # Page and figures are of all machines.
    out = chosen_out(replace(request, machine=""))
    known = [*readings_to_run([paper], reading)]
    default = default_of(paper, reading)
    readings: list[Reading] = []
    left: dict[str, Ran] = {}
    for name in known:
        # A lone reading needs no name.
        called = name if len(readings_of(paper.id).by_name) > 1 else ""
        made, ran = _read(paper, _parts(request, both=both), name, called, quiet=bool(readings))
        readings.append(made)
        left[name] = ran
        if ran.interrupted:
            break
    stopped = ran.interrupted
    compared = compare(readings) if len(readings) > 1 and not stopped else []
    claims = _numbered([paper], left, {paper.id: default if default in left else known[0]}, reading)
    began = time.monotonic()
    if not stopped:
        try:
            _draw(paper, readings, compared, out, next(iter(claims), None))
        except OSError as error:
            raise CannotRunError(
                f"cannot write page and figures into {out}: {error.strerror}; free some space or choose "
                "another folder with --out."
            ) from error
    figures_s = time.monotonic() - began
    there = request.elsewhere
    shown = str(out) if there is None else there.where(out)
    if there is not None and not stopped:
        there.put(there.out, [out / f"{paper.id}.html", *sorted((out / "figures").iterdir())])
    if request.as_json:
        json.dump(_json(paper, readings, compared, claims, figures_s), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(paper, readings, compared, claims)
        where = f"page {shown}/{paper.id}.html, figures in {shown}/figures"
        drew = [] if stopped else [f"figures in {say(figures_s, TIME)}; {where}"]
        say_text("\n" + "; ".join([*map(_took, readings), *drew]))
    first = left.get(default, ran)
    answer = "" if request.files.summary is None else answer_to(first.result)
    write_files(request.files, replace(first, interrupted=stopped), answer)
    if stopped:
        return interrupted(f"what finished is kept in {shown}")
    return status_of([first.result.verdict], first.mutants)


def reproduce_papers(asked: Sequence[Paper], request: RunRequest, reading: str | None) -> int:
    """Runs the scenarios of the numbered claims of several papers under each reading, and prints each claim
    once, in one table, and a line for each paper.

    Returns the exit status, as of `reproduce_paper`. Tables, pages and figures are of one paper alone; trials
    are left where that finds them.
    """
    request.files.prepare()
    out = chosen_out(request)
    began = time.monotonic()
    wanted = readings_to_run(asked, reading)
    # Papers that a reading leaves as they are written run with those of the others that it does.
    parts = {
        (name, settings): [
            paper for paper in asked if paper.id in ids and _under(paper.id, name, request) == settings
        ]
        for name, ids in wanted.items()
        for settings in dict.fromkeys(_under(paper, name, request) for paper in ids)
    }
    # There will be thousands of trials, and it takes a second until their scenarios are loaded.
    is_long = request.mode == "sim" and request.elsewhere is None and not out.exists()
    with started_ahead(processors() if is_long else 0):
        done: dict[tuple[str, tuple[str, ...]], Ran] = {}
        for (name, settings), papers_of_it in parts.items():
            ran = _run_papers(papers_of_it, replace(request, settings=settings), quiet=bool(done))
            done[name, settings] = ran
            if ran.interrupted:
                break
    wall_s = time.monotonic() - began
    defaults = {paper.id: default_of(paper, reading) for paper in asked}
    ran_by = {name: _as_one([one for key, one in done.items() if key[0] == name]) for name, _ in done}
    claims = _numbered(asked, ran_by, defaults, reading)
    machine = machine_of(Path(request.machine))
    # Verdicts of papers count under their default readings.
    judged = [
        check.verdict
        for name, one in ran_by.items()
        for check in one.result.checks
        if defaults[check.scenario.partition("/")[0]] == name
    ]
    chosen_mutants = _chosen_mutants(ran_by, defaults)
    all_ = _as_one([*done.values()])
    if request.as_json:
        told = _numbered_json(all_, claims, chosen_mutants, wall_s, machine)
        json.dump(told, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        said = [by_reading_text(claims, columns_of(sys.stdout), machine), *_missed(chosen_mutants or ())]
        reused = sum(outcome.reused for outcome in all_.result.outcomes)
        again = f" ({reused} there already)" if reused else ""
        said.append(
            f"{len(all_.result.outcomes)} trials{again} and {len(judged)} checks in {say(wall_s, TIME)}; "
            f"'streamgauge reproduce NAME' of one has its tables, figures and page"
        )
        say_text("\n\n".join(said))
    write_files(request.files, all_, "" if request.files.summary is None else answer_to(all_.result))
    if all_.interrupted:
        there = request.elsewhere
        return interrupted(f"what finished is kept in {out if there is None else there.where(out)}")
    return status_of(judged, chosen_mutants)


def _run_papers(asked: Sequence[Paper], request: RunRequest, *, quiet: bool) -> Ran:
    """Runs the scenarios of the claims of papers, under the settings."""
    scenarios = stating(asked, _found(asked, request))
    modes = chosen_modes(request, scenarios, quiet=quiet)
    kept = {name: SentPackets(flows) for paper in asked for name, flows in flows_of_packets(paper).items()}
    return carry_out(request, scenarios, modes, chosen_out(request), extras=kept)


def _under(paper: str, reading: str, request: RunRequest) -> tuple[str, ...]:
    """Returns the settings of a paper's scenarios under a reading; one that changes nothing has none."""
    changes = [f"{READING}={reading}"] if readings_of(paper).changes(reading) else []
    return (*request.settings, *changes)


def _numbered(
    asked: Sequence[Paper], ran: Mapping[str, Ran], defaults: Mapping[str, str], reading: str | None
) -> list[PaperByReading]:
    """Returns the numbered claims of papers by reading."""
    outcomes = {}
    for name, one in ran.items():
        trials = Counter(outcome.job.scenario.id for outcome in one.result.outcomes)
        ids = {scenario.partition("/")[0] for scenario in trials}
        mine = [paper for paper in asked if paper.id in ids]
        outcomes[name] = outcomes_of(mine, one.result.checks, one.mutants, trials)
    held_out = {paper.id: readings_of(paper.id).by_name[defaults[paper.id]].held_out for paper in asked}
    return joined(asked, outcomes, defaults, held_out)


def _chosen_mutants(ran: Mapping[str, Ran], defaults: Mapping[str, str]) -> list[MutantResult] | None:
    """Mutants of papers under their default readings; None where not asked for."""
    if any(one.mutants is None for one in ran.values()):
        return None
    return [
        mutant
        for name, one in ran.items()
        for mutant in one.mutants or ()
        if defaults[mutant.scenario.partition("/")[0]] == name
    ]


def _found(asked: Sequence[Paper], request: RunRequest) -> list[Scenario]:
    """Returns the papers' scenarios. Only a run of them needs the check of their mutants and alternatives,
    which takes as long as all other reading."""
    wanted = request.mutants or request.robust
    return find([f"{paper.id}/*" for paper in asked], settings=request.settings, mutants=wanted)


def _missed(mutants: Sequence[MutantResult]) -> list[str]:
    """Returns the mutation score, and the unnoticed mutants, by name."""
    if not mutants:
        return []
    missed = [
        f"  not noticed by {one.scenario} {one.mode} {one.check} ({one.verdict}): {one.why}"
        for one in mutants
        if not one.killed
    ]
    return ["\n".join([score_words(mutants), *missed])]


def _numbered_json(
    ran: Ran,
    claims: Sequence[PaperByReading],
    mutants: Sequence[MutantResult] | None,
    wall_s: float,
    machine: str,
) -> dict[str, Any]:
    """Returns ``streamgauge.papers/1``."""
    result = ran.result
    return {
        "schema": "streamgauge.papers/1",
        "answer": better_words(claims),
        **by_reading_json(claims, machine),
        "trials": len(result.outcomes),
        "reused": sum(outcome.reused for outcome in result.outcomes),
        "invalid": sum(outcome.counts and not outcome.valid for outcome in result.outcomes),
        "wall_s": wall_s,
        "mutants": None if mutants is None else [one.to_json() for one in mutants],
        "mutation_score": None if mutants is None else score(mutants),
        "robust": None
        if ran.alternatives is None
        else [one.to_json() for one in standings(ran.alternatives)],
    }


def _parts(request: RunRequest, *, both: bool) -> list[RunRequest]:
    """Returns the consecutive runs: for both modes sim, where it always runs, and emu."""
    return [replace(request, mode="sim", machine=""), replace(request, mode="emu")] if both else [request]


def _read(
    paper: Paper, parts: Sequence[RunRequest], name: str, called: str, *, quiet: bool
) -> tuple[Reading, Ran]:
    """Runs one reading in full; prints the modes unless `quiet`."""
    began = time.monotonic()
    settings = _under(paper.id, name, parts[0])
    parts = [replace(part, settings=settings) for part in parts]
    request = parts[0]
    # Never a file that happens to have the paper's name.
    scenarios = _found([paper], request)
    asked = [
        (part, [one for one in scenarios if len(parts) == 1 or one.unsupported(part.mode or "sim") is None])
        for part in parts
    ]
    modes = [chosen_modes(part, mine, quiet=quiet) for part, mine in asked]
    loading_s = time.monotonic() - began
    kept = {name: SentPackets(flows) for name, flows in flows_of_packets(paper).items()}
    done: list[Ran] = []
    for (part, mine), of_mine in zip(asked, modes, strict=True):
        done.append(carry_out(part, mine, of_mine, chosen_out(part), extras=kept))
        if part.elsewhere is not None:
            part.elsewhere.fetch(done[-1].result)
        if done[-1].interrupted:
            break
    ran = _as_one(done)
    reading = read(
        [one.result for one in done],
        called,
        readings_of(paper.id).by_name[name].meaning if called else "",
        wall_s=loading_s + ran.result.wall_s,
        folders=folders_of(request.out, set_folder(settings), [part.machine for part in parts]),
        settings=[one for one in settings if one.startswith(f"{READING}=")],
        mutants=ran.mutants,
        alternatives=ran.alternatives,
    )
    return reading, ran


def _as_one(done: Sequence[Ran]) -> Ran:
    """Runs of the same scenarios in several modes, for verdict and files."""
    first, *others = done
    for other in others:
        mine, theirs = first.result, other.result
        result = replace(
            mine,
            outcomes=(*mine.outcomes, *theirs.outcomes),
            checks=(*mine.checks, *theirs.checks),
            wall_s=mine.wall_s + theirs.wall_s,
            interrupted=mine.interrupted or theirs.interrupted,
            planned=mine.planned + theirs.planned,
            set_aside=(*mine.set_aside, *theirs.set_aside),
        )
        first = Ran(
            result,
            None if first.mutants is None or other.mutants is None else [*first.mutants, *other.mutants],
            None
            if first.alternatives is None or other.alternatives is None
            else [*first.alternatives, *other.alternatives],
            first.interrupted or other.interrupted,
        )
    return first


def _draw(
    paper: Paper,
    readings: Sequence[Reading],
    compared: Sequence[ComparedCheck],
    out: Path,
    claims: PaperByReading | None,
) -> None:
    """Every figure of every reading as files, and the page."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[DrawnFigure]] = {}
    began = time.monotonic()
    with Bar(of="figures") as bar, Saving() as saving:
        for reading in readings:
            found = [draw(paper, wanted, reading) for wanted in paper.figures]
            drawn[reading.name] = [figure for figure in found if figure is not None]
            for figure in drawn[reading.name]:
                saving.add(figure, [folder / f"{figure.id}.{suffix}" for suffix in ("svg", "png")])
        names = [f"{one.title} {name}".rstrip() for name, mine in drawn.items() for one in mine]

        def tell(done: int) -> None:
            left = (time.monotonic() - began) / done * (len(names) - done) if done else None
            bar.update(Progress(done, len(names), left, names[done]))

        saving.wait(tell)
    # The page includes figures that exist by now.
    write_page(paper, readings, compared, drawn, out / f"{paper.id}.html", claims)


def _print(
    paper: Paper,
    readings: Sequence[Reading],
    compared: Sequence[ComparedCheck],
    claims: Sequence[PaperByReading],
) -> None:
    columns = columns_of(sys.stdout)
    said = [by_reading_text(claims, columns) if claims else "", paper.citation]
    for reading in readings:
        said.append(tables_text(paper, reading, columns))
        if len(readings) == 1:
            said += [claims_text(reading, columns), "\n".join(_check_lines(reading))]
    if compared:
        said.append(comparison_text(compared, readings, columns))
    for reading in readings:
        said += _besides(reading)
    say_text("\n\n".join(part for part in said if part))


def _besides(reading: Reading) -> list[str]:
    """Returns for one reading the invalid trials, the results of its mutants, and the assumptions that decide
    its verdicts."""
    said = []
    of = f"reading {reading.name}: " if reading.name else ""
    for mode in reading.modes:
        groups = [group for entry in reading.entries for group in entry.groups if group.mode == mode]
        invalid = [trial for group in groups for trial in group.trials if not trial.valid]
        if invalid:
            reasons = "; ".join(dict.fromkeys(reason for trial in invalid for reason in trial.why))
            every = sum(len(group.trials) for group in groups)
            which = f"{len(invalid)} of {every} trials of {reading.words(mode)}"
            said.append(f"{of}{which} are invalid and left out: {reasons}")
    if reading.mutants is not None:
        said += [f"{of}{told}" for told in _missed(reading.mutants)]
    if reading.alternatives is not None:
        hang = [
            f"  {one.scenario} {one.mode} {one.check} ({one.verdict}): {one.words()}"
            for one in standings(reading.alternatives)
        ]
        said.append("\n".join([f"{of}verdicts, if what the paper does not state were otherwise", *hang]))
    return said


def _took(reading: Reading) -> str:
    of = f" of reading {reading.name}" if reading.name else ""
    again = f" ({reading.reused} there already)" if reading.reused else ""
    checks = f"{len(reading.checks)} checks"
    return f"{reading.trials} trials{again} and {checks}{of} in {say(reading.wall_s, TIME)}"


def _check_lines(reading: Reading) -> list[str]:
    return [
        f"{check.verdict} {check.scenario} {reading.words(check.mode)} {check.id} "
        f"({check.origin}{', strict' if check.strict else ''}): {check.title}. {check.why}"
        for check in reading.checks
    ]


def _json(
    paper: Paper,
    readings: Sequence[Reading],
    compared: Sequence[ComparedCheck],
    claims: Sequence[PaperByReading],
    figures_s: float,
) -> dict[str, Any]:
    """Returns ``streamgauge.paper/2``."""
    return {
        "schema": "streamgauge.paper/2",
        "paper": paper.id,
        "citation": paper.citation,
        "answer": better_words(claims) if claims else None,
        "claims": by_reading_json(claims)["claims"],
        "tables": [table_json(table, paper, readings) for table in paper.tables],
        "readings": [
            {
                "reading": reading.name or SOURCES,
                "meaning": reading.meaning or None,
                "modes": reading.modes,
                "trials": reading.trials,
                "reused": reading.reused,
                "wall_s": reading.wall_s,
                "checks": [check.to_json() | mode_json(check.mode) for check in reading.checks],
                "claims": [claim.to_json() for claim in claims_of(reading)],
                "mutants": None if reading.mutants is None else [one.to_json() for one in reading.mutants],
                "mutation_score": None if reading.mutants is None else score(reading.mutants),
                "robust": None
                if reading.alternatives is None
                else [one.to_json() for one in standings(reading.alternatives)],
            }
            for reading in readings
        ],
        "comparison": [one.to_json() for one in compared],
        "figures_s": figures_s,
    }
