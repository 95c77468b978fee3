"""Results as tables for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from rich.markup import escape

from streamgauge.campaign import Alternative, CampaignResult, MutantResult, Outcome, by_kind, score
from streamgauge.campaign.junit import say_unjudged
from streamgauge.campaign.loaded import load_trials
from streamgauge.checks import CheckResult
from streamgauge.claims import dimension
from streamgauge.claims.dimension import PERCENT, RATE, TIME
from streamgauge.cli.output import DIM, heads, say, say_text, table
from streamgauge.cli.progress import Bar
from streamgauge.report import answer_of, gather
from streamgauge.report.in_short import in_short
from streamgauge.report.model import NOT_KNOWN, Entry, Group, say_half
from streamgauge.report.viewer import has_viewer, say_count, shown_rate_of
from streamgauge.systems.registry import Mode
from streamgauge.terminal import columns_of

__all__ = [
    "MOST_READ",
    "answer_to",
    "flow_rows",
    "print_check",
    "print_in_short",
    "print_result",
    "score_words",
    "viewer_table",
]

MOST_READ = 2_000
"""Most trials with metrics that are read again after a run, for its answer and tables; verdicts exist
already. It takes some seconds, and of records in an object store they are fetched for it."""

_SHOWN = ("throughput", "goodput", "loss")
"""The metrics of a flow that a run prints."""
_VIEWER = {
    "level_changes": "switches",
    "stall_count": "stalls",
    "stall_time": "stalled",
    "freeze_time": "stood still",
    "startup_delay": "start-up",
    "frames_lost": "frames lost",
    "qoe_lin": "QoE",
}
"""The metrics of a viewer that a run prints, behind the bit rate shown, with their headings: those that any
viewer of the scenario has."""
_SHOWN_RATE = "bit rate shown"
_MARK = {
    "pass": "[green]pass[/green]",
    "fail": "[red]fail[/red]",
    "inconclusive": "[yellow]inconclusive[/yellow]",
}


def print_result(
    result: CampaignResult,
    mutants: Sequence[MutantResult] | None = None,
    alternatives: Sequence[Alternative] | None = None,
    *,
    where: str,
) -> str:
    """Prints flows, verdicts, mutants, and the place of the records. With more than `MOST_READ` trials none
    is read.

    Returns the answer, empty if none was read.
    """
    groups: dict[tuple[str, Mode], list[Outcome]] = {}
    for outcome in result.outcomes:
        groups.setdefault((outcome.job.scenario.id, outcome.job.mode), []).append(outcome)
    answer, entries = "", list[Entry]()
    if len(result.outcomes) <= MOST_READ:
        answer, entries = _print_measured(result, groups)
    for (scenario, mode), outcomes in groups.items():
        invalid = [outcome for outcome in outcomes if not outcome.valid]
        if invalid:
            reasons = dict.fromkeys(reason for outcome in invalid for reason in outcome.why)
            count = f"{len(invalid)} of {len(outcomes)} {mode} trials of {scenario} are invalid"
            say(f"[yellow]{count}[/yellow]: {escape('; '.join(reasons))}")
            for outcome in invalid:
                if outcome.replaced_by is not None:
                    say(f"  seed {outcome.job.seed} is replaced by seed {outcome.replaced_by}")
    for check in result.checks:
        print_check(check)
    if bare := say_unjudged(result):
        say(escape(bare))
    if mutants is not None:
        _print_mutants(mutants)
    if alternatives is not None:
        _print_alternatives(alternatives)
    reused = sum(outcome.reused for outcome in result.outcomes)
    again = f" ({reused} there already)" if reused else ""
    simulated = dimension.say_exactly(result.simulated_s, TIME)
    took = f"{simulated} of traffic in {dimension.say(result.wall_s, TIME)}"
    total = len(result.outcomes)
    for one in result.set_aside:
        say(escape(one.words()))
    ran = f"{total} trial{'' if total == 1 else 's'}{again}, {took}"
    if not total:  # interrupted before anything was kept
        return answer
    draws = "draws them" if total <= MOST_READ else "reads so many, answers and draws them"
    say(f"{ran}; records in {where}; 'streamgauge report {where}' {draws}")
    asked = [outcome for outcome in result.outcomes if outcome.job.scenario.id in result.wanted]
    if len(asked) == 1 and asked[0].digest is not None:
        say(f"digest {asked[0].digest}")
    print_in_short([entry for entry in entries if entry.scenario.get("id") in result.wanted])
    return answer


def print_in_short(entries: Sequence[Entry]) -> None:
    """Prints a table of at most 12 lines and one sentence: the last lines of an answer."""
    short = in_short(entries)
    if not short.rows:
        return
    say()
    rows = [[escape(cell) for cell in row] for row in short.rows]
    table([heads(*short.heads), *rows], f"ll{'r' * (len(short.heads) - 2)}")
    say(escape(short.sentence))


def answer_to(result: CampaignResult) -> str:
    """Returns the answer to the question, in words; empty with more than `MOST_READ` trials."""
    if len(result.outcomes) > MOST_READ:
        return ""
    return _answer(result, _entries(result))


def _entries(result: CampaignResult) -> list[Entry]:
    trials = load_trials(outcome.job.directory for outcome in result.outcomes if outcome.digest is not None)
    with Bar(of="trials read") as bar:
        return gather(trials, result.checks, told=bar.count)


def _answer(result: CampaignResult, entries: Sequence[Entry], columns: int | None = None) -> str:
    wanted = [entry for entry in entries if entry.scenario.get("id") in result.wanted]
    return answer_of(wanted, columns) if wanted else ""


def _print_measured(
    result: CampaignResult, groups: Mapping[tuple[str, Mode], Sequence[Outcome]]
) -> tuple[str, list[Entry]]:
    """Prints the answer to each scenario's question, and its flows. Returns the answer and its entries."""
    entries = _entries(result)
    answer = _answer(result, entries)
    if answer:
        say_text(f"{_answer(result, entries, columns_of(sys.stdout))}\n")
    measured = {(group.scenario, group.mode): group for entry in entries for group in entry.groups}
    for (scenario, mode), outcomes in groups.items():
        _print_flows(scenario, mode, measured.get((scenario, mode)), len(outcomes))
    return answer, entries


def _print_flows(scenario: str, mode: Mode, group: Group | None, trials: int) -> None:
    shown = None if group is None else group.shown
    layer = "" if shown is None else f", {shown.layer} bytes"
    valid = 0 if group is None else len(group.valid)
    say(f"[b]{scenario}[/b] {mode}, {valid} of {trials} trials valid{layer}")
    if group is not None and group.valid:
        rows = [[escape(cell) for cell in row] for row in flow_rows(group)]
        table([heads("flow", *_SHOWN, style=DIM), *rows], f"l{'r' * len(_SHOWN)}", indent=2)
        names, seen = viewer_table(group)
        if seen:
            say()
            lines = [[escape(cell) for cell in row] for row in seen]
            table([heads(*names, style=DIM), *lines], f"l{'r' * (len(names) - 1)}", indent=2)


def viewer_table(group: Group) -> tuple[list[str], list[list[str]]]:
    """Headings and a row for each flow that shows pictures, its name first: means over the valid trials;
    empty without such a flow. The bit rate is that of the levels played, or of the pictures shown where there
    is one encoding."""
    watched = [name for name in group.numbers.infos if has_viewer(group, name)]
    rates = {name: group.over("level", name) or shown_rate_of(group, name) for name in watched}
    metrics = [one for one in _VIEWER if any(group.over(one, name) is not None for name in watched)]
    heads = ["viewer of", *([_SHOWN_RATE] if any(rates.values()) else []), *(_VIEWER[one] for one in metrics)]
    rows = []
    for name in watched if len(heads) > 1 else ():
        rate = rates[name]
        said = NOT_KNOWN if rate is None else say_half(rate, RATE)
        values = (group.over(one, name) for one in metrics)
        cells = [
            "–" if value is None else say_count(value, one)
            for one, value in zip(metrics, values, strict=True)
        ]
        rows.append([name, *([said] if any(rates.values()) else []), *cells])
    return heads, rows


def flow_rows(group: Group) -> list[list[str]]:
    """Returns a row a flow, its name first: means over the valid trials; metrics without any value are marked
    as unknown."""
    return [[name, *(group.say(metric, name) for metric in _SHOWN)] for name in group.numbers.infos]


def print_check(check: CheckResult) -> None:
    """Prints the verdict of a check with its numbers."""
    strict = ", strict" if check.strict else ""
    title = f" {escape(check.title)}." if check.title else ""
    mark = "[yellow]differs in size[/yellow]" if check.differs_in_size else _MARK[check.verdict]
    head = f"{mark} {check.scenario} {check.mode} [b]{check.id}[/b] ({check.origin}{strict}):"
    say(f"{head}{title} {escape(check.why)}")
    if check.differs:
        say(f"     {escape(check.differs)}", hanging=0)


def _print_alternatives(alternatives: Sequence[Alternative]) -> None:
    groups: dict[tuple[str, str], list[Alternative]] = {}
    for one in alternatives:
        groups.setdefault((one.address, one.value), []).append(one)
    for (address, value), mine in groups.items():
        turned = [one for one in mine if one.turned]
        kept = f"{len(mine) - len(turned)} of {len(mine)} verdicts stand"
        say(f"assumed otherwise, {escape(address)} = {escape(value)}: {kept}")
        for one in turned:
            change = f"{one.assumed_verdict} turns {_MARK[one.verdict]}"
            say(f"  {one.scenario} {one.mode} [b]{one.check}[/b] {change}: {escape(one.why)}")
    if not groups:
        say("nothing is assumed")


def _print_mutants(mutants: Sequence[MutantResult]) -> None:
    if mutants:
        say("Without the mechanism that it is about, a check must fail; with it removed,")
    for one in mutants:
        state = "[green]noticed[/green]" if one.killed else f"[red]not noticed[/red] ({one.verdict})"
        say(
            f"  {state} by {one.scenario} {one.mode} [b]{escape(one.check)}[/b] with {escape(one.change())}: "
            f"{escape(one.why)}"
        )
    say(score_words(mutants))


def score_words(mutants: Sequence[MutantResult]) -> str:
    """Returns the mutation score in a line."""
    share = score(mutants)
    if share is None:
        return "no predicted check has a mutant"
    counted = [one for one in mutants if one.origin == "predicted"]
    killed = sum(one.killed for one in counted)
    held = [one for one in counted if one.held]
    text = f"of {len(counted)} mutants of predicted checks {killed} are noticed: the check fails, as it must"
    if len(held) < len(counted):
        text += f"; where the check passes without, {sum(one.killed for one in held)} of {len(held)}"
    kinds = ", ".join(f"{kind} {caught} of {all_}" for kind, (caught, all_) in by_kind(mutants).items())
    return f"{text} (mutation score {dimension.say(share, PERCENT)}; by kind: {kinds})"
