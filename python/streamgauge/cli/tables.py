"""Results as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streamgauge.campaign import Alternative, CampaignResult, MutantResult, Outcome, score
from streamgauge.campaign.junit import say_unjudged
from streamgauge.campaign.loaded import load_trials
from streamgauge.checks import CheckResult
from streamgauge.cli.progress import Bar
from streamgauge.report import answer_of, gather
from streamgauge.report.model import Entry, Group
from streamgauge.systems.registry import Mode

__all__ = ["MOST_READ", "answer_to", "print_result", "score_words"]

MOST_READ = 2_000
"""Of so many trials at most the metrics are read again after a run, for its answer and tables; verdicts are
there already. It takes some seconds, and of records in an object store they are fetched for it."""

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
    """Flows, verdicts, mutants, and where the records are. Of more than `MOST_READ` trials none is read.

    Returns the answer, empty if none was read.
    """
    console = Console(soft_wrap=False)
    groups: dict[tuple[str, Mode], list[Outcome]] = {}
    for outcome in result.outcomes:
        groups.setdefault((outcome.job.scenario.id, outcome.job.mode), []).append(outcome)
    answer = ""
    if len(result.outcomes) <= MOST_READ:
        answer = _print_measured(console, result, groups)
    for (scenario, mode), outcomes in groups.items():
        invalid = [outcome for outcome in outcomes if not outcome.valid]
        if invalid:
            reasons = dict.fromkeys(reason for outcome in invalid for reason in outcome.why)
            count = f"{len(invalid)} of {len(outcomes)} {mode} trials of {scenario} are invalid"
            _line(console, f"[yellow]{count}[/yellow]: {escape('; '.join(reasons))}")
            for outcome in invalid:
                if outcome.replaced_by is not None:
                    _line(console, f"  seed {outcome.job.seed} is replaced by seed {outcome.replaced_by}")
    for check in result.checks:
        _print_check(console, check)
    if bare := say_unjudged(result):
        _line(console, escape(bare))
    if mutants is not None:
        _print_mutants(console, mutants)
    if alternatives is not None:
        _print_alternatives(console, alternatives)
    reused = sum(outcome.reused for outcome in result.outcomes)
    again = f" ({reused} there already)" if reused else ""
    took = f"{result.simulated_s:,.0f} s of traffic in {result.wall_s:.1f} s"
    total = len(result.outcomes)
    for one in result.set_aside:
        _line(console, escape(one.words()))
    ran = f"{total} trial{'' if total == 1 else 's'}{again}, {took}"
    if not total:  # interrupted before anything was kept
        return answer
    draws = "draws them" if total <= MOST_READ else "reads so many, answers and draws them"
    _line(console, f"{ran}; records in {where}; 'streamgauge report {where}' {draws}")
    return answer


def answer_to(result: CampaignResult) -> str:
    """The answer to what was asked for, in words; empty of more than `MOST_READ` trials."""
    if len(result.outcomes) > MOST_READ:
        return ""
    return _answer(result, _entries(result))


def _entries(result: CampaignResult) -> list[Entry]:
    trials = load_trials(outcome.job.directory for outcome in result.outcomes if outcome.digest is not None)
    with Bar(of="trials read") as bar:
        return gather(trials, result.checks, told=bar.count)


def _answer(result: CampaignResult, entries: Sequence[Entry]) -> str:
    wanted = [entry for entry in entries if entry.scenario.get("id") in result.wanted]
    return answer_of(wanted) if wanted else ""


def _print_measured(
    console: Console, result: CampaignResult, groups: Mapping[tuple[str, Mode], Sequence[Outcome]]
) -> str:
    """The answer to each scenario's question, which it returns, and its flows."""
    entries = _entries(result)
    answer = _answer(result, entries)
    if answer:
        _line(console, escape(answer) + "\n")
    measured = {(group.scenario, group.mode): group for entry in entries for group in entry.groups}
    for (scenario, mode), outcomes in groups.items():
        _print_flows(console, scenario, mode, measured.get((scenario, mode)), len(outcomes))
    return answer


def _print_flows(console: Console, scenario: str, mode: Mode, group: Group | None, trials: int) -> None:
    shown = None if group is None else group.shown
    layer = "" if shown is None else f", {shown.layer} bytes"
    valid = 0 if group is None else len(group.valid)
    _line(console, f"[b]{scenario}[/b] {mode}, {valid} of {trials} trials valid{layer}")
    if group is not None and group.valid:
        console.print(flows_table(group))


def flows_table(group: Group) -> Table:
    """A row a flow: means over the valid trials; what no trial can tell is said not to be known."""
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("  flow", no_wrap=True)
    metrics = ("throughput", "goodput", "loss")
    for metric in metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    for name in group.numbers.infos:
        table.add_row(f"  {name}", *(group.say(metric, name) for metric in metrics))
    return table


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _print_check(console: Console, check: CheckResult) -> None:
    strict = ", strict" if check.strict else ""
    title = f" {escape(check.title)}." if check.title else ""
    head = f"{_MARK[check.verdict]} {check.scenario} {check.mode} [b]{check.id}[/b] ({check.origin}{strict}):"
    _line(console, f"{head}{title} {escape(check.why)}")
    if check.differs:
        _line(console, f"     {escape(check.differs)}")


def _print_alternatives(console: Console, alternatives: Sequence[Alternative]) -> None:
    groups: dict[tuple[str, str], list[Alternative]] = {}
    for one in alternatives:
        groups.setdefault((one.address, one.value), []).append(one)
    for (address, value), mine in groups.items():
        turned = [one for one in mine if one.turned]
        kept = f"{len(mine) - len(turned)} of {len(mine)} verdicts stand"
        _line(console, f"assumed otherwise, {escape(address)} = {escape(value)}: {kept}")
        for one in turned:
            change = f"{one.assumed_verdict} turns {_MARK[one.verdict]}"
            _line(console, f"  {one.scenario} {one.mode} [b]{one.check}[/b] {change}: {escape(one.why)}")
    if not groups:
        _line(console, "nothing is assumed")


def _print_mutants(console: Console, mutants: Sequence[MutantResult]) -> None:
    for one in mutants:
        state = "[green]noticed[/green]" if one.killed else f"[red]not noticed[/red] ({one.verdict})"
        which = f"{one.scenario} {one.mode} [b]{one.check}[/b] with {escape(one.change())}"
        _line(console, f"mutant {state} {which}: {escape(one.why)}")
    console.print(score_words(mutants), highlight=False, soft_wrap=True)


def score_words(mutants: Sequence[MutantResult]) -> str:
    """The mutation score in a line."""
    share = score(mutants)
    if share is None:
        return "no predicted check names a mutant"
    counted = [one for one in mutants if one.origin == "predicted"]
    killed = sum(one.killed for one in counted)
    held = [one for one in counted if one.held]
    text = f"mutation score: {killed} of {len(counted)} predicted checks fail under their mutants"
    text += f", {100 * share:.0f} %"
    if len(held) < len(counted):
        text += f"; of those that pass without, {sum(one.killed for one in held)} of {len(held)}"
    return text
