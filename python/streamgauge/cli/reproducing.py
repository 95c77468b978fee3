"""``reproduce`` of a whole paper: its tables and figures beside ours, under each preset; and of several at
once, all that they claim in one table."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
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
    Reading,
    SentPackets,
    claims_of,
    claims_text,
    compare,
    comparison_text,
    draw,
    flows_of_packets,
    numbered_json,
    numbered_text,
    outcomes_of,
    papers,
    read,
    stating,
    table_json,
    tables_text,
    write_page,
)
from streamgauge.paper.machines import folders_of, mode_json
from streamgauge.paper.numbered import PaperOutcome
from streamgauge.processors import processors
from streamgauge.report import DrawnFigure, Saving
from streamgauge.scenario import Scenario, catalogue_ids, find
from streamgauge.scenario.settings import set_folder
from streamgauge.scenario.values import nearest
from streamgauge.terminal import columns_of

__all__ = ["check_preset", "papers_of", "reproduce_paper", "reproduce_papers"]


def papers_of(names: Sequence[str]) -> list[Paper]:
    """The papers that are asked for, by the names of their folders in the catalogue, each once; none where
    any name is of something else.

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
    """Whether it can be nothing but a folder's name: no file, no scenario, no pattern."""
    return not any(sign in name for sign in "/*?[") and not Path(name).exists()


def check_preset(asked: Sequence[Paper], preset: str, names: Sequence[str]) -> None:
    """Raises ScenarioError if what is asked for has no such preset."""
    if len(asked) > 1:
        raise ScenarioError(
            f"--preset is for one paper, and '{' '.join(names)}' are {len(asked)}", hint="name one alone"
        )
    paper = asked[0] if asked else None
    if paper is None:
        raise ScenarioError(
            f"--preset is for a whole paper, and '{' '.join(names)}' is none",
            hint=f"name one alone: {', '.join(papers())}; "
            f"of other scenarios --set 'flows.*.parameters.preset={preset}' changes it",
        )
    known = paper.presets.known if paper.presets else ()
    if preset not in known:
        has = f"it has {', '.join(known)}" if known else "it has none; leave --preset out"
        raise ScenarioError(f"the paper '{paper.id}' has no preset '{preset}'; {has}")


def reproduce_paper(paper: Paper, request: RunRequest, preset: str | None, *, both: bool = False) -> int:
    """Runs all of a paper, prints its tables and the presets' verdicts, writes page and figures; `both` runs
    it simulated and then emulated.

    Returns the exit status: by what this run judged under the first preset.
    """
    request.files.prepare()
    # Page and figures are of all machines.
    out = chosen_out(replace(request, machine=""))
    known = paper.presets.values if paper.presets else ("",)
    readings: list[Reading] = []
    left: list[Ran] = []
    for name in known if preset is None else (preset,):
        # The catalogue's own preset lies where any run of it does; others are the catalogue changed.
        below = Path() if name == known[0] else Path(f"set-preset-{name}")
        reading, ran = _read(paper, _parts(request, both=both), name, below, quiet=bool(readings))
        readings.append(reading)
        left.append(ran)
        if ran.interrupted:
            break
    stopped = left[-1].interrupted
    compared = compare(readings) if len(readings) > 1 and not stopped else []
    began = time.monotonic()
    if not stopped:
        try:
            _draw(paper, readings, compared, out)
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
        json.dump(_json(paper, readings, compared, figures_s), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        _print(paper, readings, compared)
        where = f"page {shown}/{paper.id}.html, figures in {shown}/figures"
        drew = [] if stopped else [f"figures in {say(figures_s, TIME)}; {where}"]
        say_text("\n" + "; ".join([*map(_took, readings), *drew]))
    first = left[0]
    answer = "" if request.files.summary is None else answer_to(first.result)
    write_files(request.files, replace(first, interrupted=stopped), answer)
    if stopped:
        return interrupted(f"what finished is kept in {shown}")
    return status_of([first.result.verdict], first.mutants)


def reproduce_papers(asked: Sequence[Paper], request: RunRequest) -> int:
    """Runs what states the numbered claims of several papers, each under the catalogue's preset, and prints
    each claim once, in one table, and a line for each paper.

    Returns the exit status, as of `reproduce_paper`. Tables, pages and figures are of one paper alone; trials
    are left where that finds them.
    """
    request.files.prepare()
    out = chosen_out(request)
    began = time.monotonic()
    # There will be thousands of trials, and it takes a second until their scenarios are loaded.
    is_long = request.mode == "sim" and request.elsewhere is None and not out.exists()
    with started_ahead(processors() if is_long else 0):
        scenarios = stating(asked, _found(asked, request))
        modes = chosen_modes(request, scenarios)
        loading_s = time.monotonic() - began
        kept = {
            name: SentPackets(flows) for paper in asked for name, flows in flows_of_packets(paper).items()
        }
        ran = carry_out(request, scenarios, modes, out, extras=kept)
    result, wall_s = ran.result, loading_s + ran.result.wall_s
    trials = Counter(outcome.job.scenario.id for outcome in result.outcomes)
    outcomes = outcomes_of(asked, result.checks, ran.mutants, trials)
    machine = machine_of(Path(request.machine))
    if request.as_json:
        json.dump(_numbered_json(ran, outcomes, wall_s, machine), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        said = [numbered_text(outcomes, columns_of(sys.stdout), machine), *_missed(ran.mutants or ())]
        reused = sum(outcome.reused for outcome in result.outcomes)
        again = f" ({reused} there already)" if reused else ""
        said.append(
            f"{len(result.outcomes)} trials{again} and {len(result.checks)} checks in {say(wall_s, TIME)}; "
            f"'streamgauge reproduce NAME' of one has its tables, figures and page"
        )
        say_text("\n\n".join(said))
    write_files(request.files, ran, "" if request.files.summary is None else answer_to(result))
    if ran.interrupted:
        there = request.elsewhere
        return interrupted(f"what finished is kept in {out if there is None else there.where(out)}")
    return status_of([result.verdict], ran.mutants)


def _found(asked: Sequence[Paper], request: RunRequest) -> list[Scenario]:
    """The papers' scenarios. Whether their mutants and alternatives can run matters to who runs these: to ask
    takes as long as all else that reads them."""
    wanted = request.mutants or request.robust
    return find([f"{paper.id}/*" for paper in asked], settings=request.settings, mutants=wanted)


def _missed(mutants: Sequence[MutantResult]) -> list[str]:
    """The mutation score, and what was not noticed, by name."""
    if not mutants:
        return []
    missed = [
        f"  not noticed by {one.scenario} {one.mode} {one.check} ({one.verdict}): {one.why}"
        for one in mutants
        if not one.killed
    ]
    return ["\n".join([score_words(mutants), *missed])]


def _numbered_json(ran: Ran, outcomes: Sequence[PaperOutcome], wall_s: float, machine: str) -> dict[str, Any]:
    """``streamgauge.papers/1``."""
    result = ran.result
    return {
        "schema": "streamgauge.papers/1",
        **numbered_json(outcomes, machine),
        "trials": len(result.outcomes),
        "reused": sum(outcome.reused for outcome in result.outcomes),
        "invalid": sum(outcome.counts and not outcome.valid for outcome in result.outcomes),
        "wall_s": wall_s,
        "mutants": None if ran.mutants is None else [one.to_json() for one in ran.mutants],
        "mutation_score": None if ran.mutants is None else score(ran.mutants),
        "robust": None
        if ran.alternatives is None
        else [one.to_json() for one in standings(ran.alternatives)],
    }


def _parts(request: RunRequest, *, both: bool) -> list[RunRequest]:
    """What is run one after the other: of both modes sim, where it always is, and emu."""
    return [replace(request, mode="sim", machine=""), replace(request, mode="emu")] if both else [request]


def _read(
    paper: Paper, parts: Sequence[RunRequest], preset: str, below: Path, *, quiet: bool
) -> tuple[Reading, Ran]:
    """One preset, run in full, into the folder `below` that of the run; the modes are told unless `quiet`."""
    began = time.monotonic()
    request = parts[0]
    # Never a file that happens to have the paper's name.
    scenarios = _found([paper], request)
    if paper.presets is not None and preset != paper.presets.values[0]:
        scenarios = [paper.presets.applied(scenario, preset) for scenario in scenarios]
    asked = [
        (part, [one for one in scenarios if len(parts) == 1 or one.unsupported(part.mode or "sim") is None])
        for part in parts
    ]
    modes = [chosen_modes(part, mine, quiet=quiet) for part, mine in asked]
    loading_s = time.monotonic() - began
    kept = {name: SentPackets(flows) for name, flows in flows_of_packets(paper).items()}
    done: list[Ran] = []
    for (part, mine), of_mine in zip(asked, modes, strict=True):
        done.append(carry_out(part, mine, of_mine, chosen_out(part) / below, extras=kept))
        if part.elsewhere is not None:
            part.elsewhere.fetch(done[-1].result)
        if done[-1].interrupted:
            break
    ran = _as_one(done)
    reading = read(
        [one.result for one in done],
        preset,
        paper.presets.meaning[preset] if paper.presets else "",
        wall_s=loading_s + ran.result.wall_s,
        folders=folders_of(
            request.out, set_folder(request.settings) / below, [part.machine for part in parts]
        ),
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


def _draw(paper: Paper, readings: Sequence[Reading], compared: Sequence[ComparedCheck], out: Path) -> None:
    """Every figure of every preset as files, and the page."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, list[DrawnFigure]] = {}
    began = time.monotonic()
    with Bar(of="figures") as bar, Saving() as saving:
        for reading in readings:
            found = [draw(paper, wanted, reading) for wanted in paper.figures]
            drawn[reading.preset] = [figure for figure in found if figure is not None]
            for figure in drawn[reading.preset]:
                saving.add(figure, [folder / f"{figure.id}.{suffix}" for suffix in ("svg", "png")])
        names = [f"{one.title} {preset}".rstrip() for preset, mine in drawn.items() for one in mine]

        def tell(done: int) -> None:
            left = (time.monotonic() - began) / done * (len(names) - done) if done else None
            bar.update(Progress(done, len(names), left, names[done]))

        saving.wait(tell)
    # What is drawn by now the page takes as it is.
    write_page(paper, readings, compared, drawn, out / f"{paper.id}.html")


def _print(paper: Paper, readings: Sequence[Reading], compared: Sequence[ComparedCheck]) -> None:
    said = [paper.citation]
    columns = columns_of(sys.stdout)
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
    """Of one preset what is invalid, what its mutants showed, and what its verdicts hang on."""
    said = []
    of = f"preset {reading.preset}: " if reading.preset else ""
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
    of = f" of preset {reading.preset}" if reading.preset else ""
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
    paper: Paper, readings: Sequence[Reading], compared: Sequence[ComparedCheck], figures_s: float
) -> dict[str, Any]:
    """``streamgauge.paper/1``."""
    return {
        "schema": "streamgauge.paper/1",
        "paper": paper.id,
        "citation": paper.citation,
        "tables": [table_json(table, paper, readings) for table in paper.tables],
        "presets": [
            {
                "preset": reading.preset or None,
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
