"""The first screen: for each question the verdict, the ranking by metrics, and the place of each scenario."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from streamgauge.claims.dimension import PERCENT
from streamgauge.compare import (
    COMPARED,
    ComparedMetric,
    ComparedRow,
    Comparison,
    Margin,
    MetricSide,
    say_value,
    take_from,
)
from streamgauge.compare.answer import deciding_metrics, listed, sentences
from streamgauge.compare.metrics import left_out_of
from streamgauge.metrics import Interval, interval
from streamgauge.report.answer import Asked, answering, basis, by_question
from streamgauge.report.comparing import comparisons
from streamgauge.report.model import Entry, Group, class_labels, mean_of
from streamgauge.report.observed import CAPTURED
from streamgauge.report.ranking import (
    HEADS,
    SIGNS,
    Ranking,
    RowHead,
    Scatter,
    Values,
    chosen_metrics,
    in_order,
    ranking,
    scatters,
)
from streamgauge.systems.on_demand import is_on_demand

__all__ = [
    "AnsweredQuestion",
    "RankedScenario",
    "Strip",
    "StripCell",
    "StripRow",
    "Tile",
    "blocks",
    "own_rows",
    "trials_note",
]

MIXED = "◆"
_HEAD = 120
"""Characters of a heading."""


@dataclass(frozen=True)
class Tile:
    """One side's view of a subject against the baseline in a scenario: sign, verdict, words."""

    side: str
    sign: str
    verdict: str
    said: str


@dataclass(frozen=True)
class StripCell:
    """A subject in a scenario: its link, and the view of each side."""

    href: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class StripRow:
    """A scenario in a mode, or a subject."""

    label: str
    mode: str
    cells: tuple[StripCell | None, ...]


@dataclass(frozen=True)
class Strip:
    """Scenarios by subjects, or subjects by scenarios where those are more."""

    baseline: str
    heads: tuple[str, ...]
    rows: tuple[StripRow, ...]
    sides: tuple[str, ...]
    """Sides of the tiles, in turn: sides without data have none."""


@dataclass(frozen=True)
class RankedScenario:
    """One scenario of a comparison, or all of a question that has none."""

    label: str
    title: str
    scatters: tuple[Scatter, ...]
    basis: str
    """Basis of the scatters."""
    ranking: Ranking
    shown: bool
    """Whether it is the one that is seen first."""


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question's part of the first screen."""

    question: str
    verdict: str
    """The sentence that people quote."""
    beside: tuple[str, ...]
    """Its additions: another mode's verdict, yes or no, why simulation answers."""
    panels: tuple[RankedScenario, ...]
    strip: Strip | None
    more: tuple[str, ...]
    """Further sentences."""
    not_comparable: tuple[str, ...]
    baseline: str
    conditions: str
    comparison: Comparison | None = field(default=None, compare=False)

    @property
    def has_plots(self) -> bool:
        """Returns whether any panel has a drawing beside its table."""
        return any(panel.scatters for panel in self.panels)

    @property
    def head(self) -> str:
        """Returns the verdict up to its detailed part."""
        return self._parts[0]

    @property
    def rest(self) -> str:
        """Returns the detail; empty if the verdict has none."""
        return self._parts[1]

    @property
    def _parts(self) -> tuple[str, str]:
        head, found, rest = self.verdict.partition(": ")
        # A colon in a later sentence has no part of the verdict behind it, as in "Confidence: high".
        if found and len(head) <= _HEAD and ". " not in head:
            return f"{head}.", rest
        sentence = re.match(r"(.{10,160}?[^ .]\.)(?: (.+))?$", self.verdict, re.DOTALL)
        if sentence is not None and not sentence[1].endswith(").") and sentence[2]:
            return sentence[1], sentence[2]
        head, found, rest = self.verdict.partition(" (")
        whole = not found or self.comparison is None or len(head) > _HEAD
        return (self.verdict, "") if whole else (f"{head}.", f"({rest}")


def blocks(entries: Sequence[Entry], found: Sequence[Comparison] | None = None) -> list[AnsweredQuestion]:
    """Comparisons first, each under its question; then the questions of scenarios that are in none.

    Args:
        entries: the report's scenarios.
        found: their comparisons, if they are known.
    """
    by_id = {entry.id: entry for entry in entries}
    asked = by_question(entries)
    of_entry = {one.scenario: question for question in asked for one in question.answers}
    made, covered = [], set()
    for comparison in comparisons(entries) if found is None else found:
        ids = dict.fromkeys(comparison.entries.values())
        if not comparison.scenarios or not ids:
            continue
        # The question that most of its scenarios ask.
        question = Counter(of_entry[id_].question for id_ in ids).most_common(1)[0][0]
        mine = next(one for one in asked if one.question == question)
        covered |= {of_entry[id_].question for id_ in ids}
        made.append(_compared(comparison, mine, by_id))
    made += [
        _uncompared(one, [by_id[a.scenario] for a in one.answers])
        for one in asked
        if one.question not in covered
    ]
    return made


def _compared(found: Comparison, asked: Asked, by_id: Mapping[str, Entry]) -> AnsweredQuestion:
    scenario = _telling_scenario(found)
    verdict, beside, more = _verdicts(found)
    panels = tuple(_panel(found, label, by_id, shown=label == scenario) for label in found.scenarios)
    return AnsweredQuestion(
        question=asked.question,
        verdict=verdict,
        beside=(*([asked.verdict] if asked.verdict else []), *beside),
        panels=panels,
        strip=_strip(found, by_id),
        more=tuple(more),
        not_comparable=found.not_comparable,
        baseline=found.baseline,
        conditions="",
        comparison=found,
    )


def _verdicts(found: Comparison) -> tuple[str, list[str], list[str]]:
    """Returns the sentence of the mode that decides something, the answering one first; those of the others;
    and further ones of each mode."""
    said = []
    for mode in found.modes[::-1]:
        rows = tuple(row for row in found.rows if row.mode == mode)
        scenarios = tuple(one for one in found.scenarios if any(row.scenario == one for row in rows))
        if scenarios:
            alone = replace(found, rows=rows, modes=(mode,), scenarios=scenarios, not_comparable=())
            decided = any(row.verdict in ("better", "worse", "equal") for row in rows)
            said.append((not decided, sentences(alone)))
    if len(said) < 2:
        return found.answer[0], [], list(found.answer[1 : len(found.answer) - len(found.not_comparable)])
    said.sort(key=lambda one: one[0])
    (_, first), *others = said
    # A mode that decides nothing has no further sentences.
    more = [text for undecided, mine in said if not undecided for text in mine[1:]]
    beside = [mine[0] for _, mine in others]
    if emulated := _emulated_beside(found):
        # Real programs take precedence over their models: where these decide and those do not, both are
        # shown.
        mark = ": " if ": " in first[0] else " ("
        head, found_mark, rest = first[0].partition(mark)
        return f"{head} in simulation{found_mark}{rest}", [emulated], more
    return first[0], beside, more


def _emulated_beside(found: Comparison) -> str:
    """Returns emulation's values for a verdict of simulation alone, value beside value, in a sentence; empty
    where emulation decides something itself, or has nothing."""
    emulated = [row for row in found.rows if row.mode == "emu"]
    if any(row.verdict in ("better", "worse", "equal") for row in emulated):
        return ""
    scenario = _telling_scenario(found)
    parts, counts = [], set()
    for metric in deciding_metrics(found, scenario, "sim"):
        pairs = [
            (emu, sim)
            for subject in found.subjects
            if (emu := found.row(subject, scenario, "emu", metric)) is not None
            and emu.value is not None
            and (sim := found.row(subject, scenario, "sim", metric)) is not None
        ]
        counts |= {emu.n for emu, _ in pairs}
        told = [f"{emu.subject} {say_value(emu)} (simulated {say_value(sim)})" for emu, sim in pairs]
        parts += [f"{COMPARED[metric].short} {listed(told)}"] if told else []
    if not parts:
        return ""
    n = " to ".join(map(str, sorted({min(counts), max(counts)})))
    return f"Emulated, n = {n}, which decides nothing yet: {'; '.join(parts)}."


def _telling_scenario(found: Comparison) -> str:
    """Returns the scenario in which most is decided."""

    def decided(scenario: str) -> int:
        return sum(
            row.verdict in ("better", "worse") and row.side == "viewer"
            for row in found.rows
            if row.scenario == scenario
        ) * 100 + sum(row.verdict in ("better", "worse") for row in found.rows if row.scenario == scenario)

    return max(found.scenarios, key=decided)


def _panel(found: Comparison, scenario: str, by_id: Mapping[str, Entry], *, shown: bool) -> RankedScenario:
    rows = [row for row in found.rows if row.scenario == scenario]
    # Deciding modes first: the answering mode, unless another has more trials.
    deciding = {row.mode for row in rows if row.verdict in ("better", "worse", "equal")}
    best = found.best_mode(scenario)
    modes = sorted(found.modes, key=lambda mode: (mode not in deciding, mode != best))
    groups = {
        (subject, mode): by_id[id_].group(mode)
        for (subject, label, mode), id_ in found.entries.items()
        if label == scenario and id_ in by_id
    }
    heads, headings = [], {}
    for mode in modes:
        mine = {subject: group for (subject, of), group in groups.items() if of == mode and group is not None}
        if not mine:
            continue
        headings[mode], alike = _heading(list(mine.values()))
        for subject in in_order(found.subjects, [row for row in rows if row.mode == mode]):
            if subject in mine:
                id_ = found.entries[subject, scenario, mode]
                note = trials_note(mine[subject], alike=alike)
                heads.append(RowHead(subject, mode, by_id[id_].slug, note))
    values: Values = {(row.subject, row.mode, row.metric): row for row in rows}
    drawn = [mode for mode in headings if any(row.value is not None for row in rows if row.mode == mode)]
    telling = drawn[0] if drawn else best
    own = [
        row
        for (subject, mode), group in groups.items()
        if mode == telling and group is not None and (row := _own_share(subject, scenario, group)) is not None
    ]
    return RankedScenario(
        label=scenario,
        title=_conditions(found, scenario, by_id),
        scatters=tuple(
            scatters([*(row for row in rows if row.mode == telling), *own], {OWN_SHARE.name: OWN_SHARE})
        ),
        basis=headings.get(telling, ""),
        ranking=ranking(heads, values, baseline=found.baseline, headings=headings),
        shown=shown,
    )


def _conditions(found: Comparison, scenario: str, by_id: Mapping[str, Entry]) -> str:
    """Returns the common conditions of a scenario's subjects: the common end or beginning of their titles."""
    titles = [
        by_id[id_].title for (_, label, _), id_ in found.entries.items() if label == scenario and id_ in by_id
    ]
    parts = [title.rpartition(": ") for title in titles]
    begins, ends = {part[0] for part in parts}, {part[2] for part in parts}
    if len(ends) == 1:
        return ends.pop()
    return begins.pop() if len(begins) == 1 and "" not in begins else scenario


def _heading(groups: Sequence[Group]) -> tuple[str, bool]:
    """Returns the basis of a mode's trials, and whether it is the same for all."""
    said = {basis(group) for group in groups if group.valid}
    if len(said) == 1 and all(group.valid for group in groups):
        return said.pop(), True
    words = {"sim": "simulated", "emu": "emulated", CAPTURED: "captured"}
    return words.get(groups[0].mode, groups[0].mode), False


def trials_note(group: Group, *, alike: bool) -> str:
    """Returns the remark on a row's trials: their number, unless all have as many, and the invalid ones with
    reasons, where they count."""
    asked = {trial.seed if trial.replaces is None else trial.replaces for trial in group.trials}
    missing = len(asked) - len(group.valid)
    why = [
        f"seed {trial.seed}: {'; '.join(trial.why[:2]) or 'invalid'}"
        for trial in group.trials
        if not trial.valid and group.replaced_by(trial) is None
    ]
    reasons = "; ".join(why[:2]) + (f"; {len(why) - 2} more" if len(why) > 2 else "")
    if not group.valid:
        return f"no valid trial of {len(asked)}" + (f" ({reasons})" if reasons else "")
    if missing > 0:
        return f"{len(group.valid)} of {len(asked)} valid ({reasons})"
    return "" if alike else f"n = {len(group.valid)}"


def _strip(found: Comparison, by_id: Mapping[str, Entry]) -> Strip:
    others = tuple(one for one in found.subjects if one != found.baseline)
    places = [
        (scenario, mode)
        for scenario in found.scenarios
        for mode in found.modes
        if any((subject, scenario, mode) in found.entries for subject in others)
    ]

    known = {row.side for row in found.rows if row.value is not None and row.subject != found.baseline}
    sides = [side for side in HEADS if side in known]

    def cell(subject: str, scenario: str, mode: str) -> StripCell | None:
        id_ = found.entries.get((subject, scenario, mode))
        rows = [
            row for row in found.rows if (row.subject, row.scenario, row.mode) == (subject, scenario, mode)
        ]
        if id_ is None or id_ not in by_id or not rows:
            return None
        tiles = (_tile(side, [row for row in rows if row.side == side]) for side in sides)
        return StripCell(by_id[id_].slug, tuple(tiles))

    def name(scenario: str) -> str:
        return scenario if len(found.scenarios) > 1 else _conditions(found, scenario, by_id)

    said = tuple(HEADS[side] for side in sides)
    if len(others) <= len(places):
        by_scenario = (StripRow(name(s), m, tuple(cell(one, s, m) for one in others)) for s, m in places)
        return Strip(found.baseline, others, tuple(by_scenario), said)
    heads = tuple(
        f"{name(scenario)} {mode}" if len(found.modes) > 1 else name(scenario) for scenario, mode in places
    )
    by_subject = (StripRow(one, "", tuple(cell(one, s, m) for s, m in places)) for one in others)
    return Strip(found.baseline, heads, tuple(by_subject), said)


def _tile(side: MetricSide, rows: Sequence[ComparedRow]) -> Tile:
    by: dict[str, list[str]] = {}
    for row in rows:
        if row.verdict is not None:
            by.setdefault(row.verdict, []).append(row.about.short)
    said = "; ".join(
        f"{words} {', '.join(by[verdict])}"
        for verdict, words in (
            ("better", "better by"), ("worse", "worse by"), ("equal", "practically equal in"),
            ("undecided", "undecided in"),
        )
        if verdict in by
    )  # fmt: skip
    told = f"{HEADS[side]}: {said or 'nothing known'}"
    if "better" in by and "worse" in by:
        return Tile(side, MIXED, "mixed", told)
    for verdict in ("better", "worse"):
        if verdict in by:
            return Tile(side, SIGNS[verdict], verdict, told)
    if "undecided" in by:
        return Tile(side, SIGNS["undecided"], "undecided", told)
    return Tile(side, SIGNS["equal"], "equal", told) if by else Tile(side, "", "none", told)


def own_rows(label: str, group: Group) -> list[ComparedRow]:
    """Returns the compared metrics of a group's valid trials, without a comparison."""
    trials = []
    for place in range(len(group.valid)):

        def value(metric: str, name: str, at: int = place) -> float:
            return float(group.numbers.column(metric, name)[at])

        trials.append(take_from(value, group.numbers.infos))
    found = []
    subjects = [name for name, info in group.numbers.infos.items() if info.role == "subject"]
    on_demand = all(is_on_demand(group.asked(name)) for name in subjects)
    means = (
        {"loss": loss.mean}
        if (loss := mean_of(np.array([read.get("loss", np.nan) for read in trials])))
        else {}
    )
    for metric in COMPARED:
        if metric == "live_latency" and on_demand:
            continue
        known = [read[metric] for read in trials if metric in read]
        if known:
            own = interval(known)
            found.append(
                ComparedRow(
                    subject=label, scenario="", mode=group.mode, metric=metric, value=own.mean,
                    interval=ends_of(own), n=len(known), invalid=len(trials) - len(known),
                    no_variation=own.no_variation, without=left_out_of(metric, means),
                )
            )  # fmt: skip
    return found


def ends_of(own: Interval) -> tuple[float, float] | None:
    """Returns the ends of an interval; None of one repetition."""
    return None if own.low is None or own.high is None else (own.low, own.high)


OWN_SHARE = ComparedMetric(
    "own_share", "own fair share", "Share of its max-min fair allocation", "flow", PERCENT, "more",
    Margin(absolute=0.02),
    "max_min_share",
)  # fmt: skip
"""Share of a flow in its fair rate: beside the harm it does, the criterion of congestion."""


@dataclass(frozen=True, kw_only=True)
class _OwnShare(ComparedRow):
    @property
    def about(self) -> ComparedMetric:
        return OWN_SHARE


def _own_share(subject: str, scenario: str, group: Group) -> ComparedRow | None:
    names = [
        name for name, info in group.numbers.infos.items() if info.role == "subject" and not info.is_ping
    ]
    if not names or len(group.numbers.infos) < 2:
        return None
    columns = np.array([group.numbers.column(OWN_SHARE.reads, name) for name in names])
    values = [float(value) for value in columns.mean(axis=0) if np.isfinite(value)]
    if not values:
        return None
    own = interval(values)
    return _OwnShare(
        subject=subject, scenario=scenario, mode=group.mode, metric=OWN_SHARE.name, value=own.mean,
        interval=ends_of(own), n=len(values), invalid=0,
    )  # fmt: skip


def _uncompared(asked: Asked, entries: Sequence[Entry]) -> AnsweredQuestion:
    """Returns a question without comparable scenarios: their metrics, a row each."""
    names = class_labels(entries, answering(entries))
    heads: list[RowHead] = []
    values: dict[tuple[str, str, str], ComparedRow] = {}
    headings: dict[str, str] = {}
    for mode in ("emu", "sim", CAPTURED):
        mine = [(entry, group) for entry in entries if (group := entry.group(mode)) is not None]
        if not mine:
            continue
        headings[mode], alike = _heading([group for _, group in mine])
        for entry, group in mine:
            label = names[entry.id]
            heads.append(RowHead(label, mode, entry.slug, trials_note(group, alike=alike)))
            values |= {(label, mode, row.metric): row for row in own_rows(label, group)}
    chosen = chosen_metrics(values.values())
    table = ranking(heads, values, headings=headings, metrics=chosen)
    alone = asked.answers[0] if len(asked.answers) == 1 else None
    is_captured = alone is not None and entries[0].best.mode == CAPTURED
    verdict = asked.verdict or (
        # The section has the rest.
        (alone.sentences[0] if is_captured else " ".join(alone.sentences))
        if alone
        else _from_best_to_worst(entries, names, values)
    )
    if not verdict:
        verdict = asked.summary or " ".join(
            f"{names[one.scenario]}: {one.sentences[0]}" for one in asked.answers
        )
    beside = [asked.why_simulated] if asked.why_simulated else []
    return AnsweredQuestion(
        question=asked.question,
        verdict=verdict,
        beside=tuple(beside),
        panels=(RankedScenario("", "", (), "", table, True),),
        strip=None,
        more=(),
        not_comparable=(),
        baseline="",
        conditions=asked.basis,
    )


def _from_best_to_worst(entries: Sequence[Entry], names: Mapping[str, str], values: Values) -> str:
    """Returns the spread of one question's scenarios in the most important metric; empty if there is none."""
    modes = [mode for mode in ("emu", "sim") if all(entry.group(mode) for entry in entries)]
    flows = {name for entry in entries for name in entry.names("subject")}
    if not modes or len(flows) != 1:
        return ""
    for metric in chosen_metrics(values.values()):
        rows = [row for (_, mode, name), row in values.items() if name == metric.name and mode == modes[0]]
        known = [row for row in rows if row.value is not None]
        if len(known) < len(entries) or metric.side == "neighbour":
            continue
        known.sort(key=lambda row: row.value or 0.0, reverse=metric.better == "more")
        best, worst = known[0], known[-1]
        if best.value != worst.value:
            title = f"{metric.title} of {next(iter(flows))}"
            return (
                f"{title} goes from {say_value(best)} with {best.subject} to {say_value(worst)} with "
                f"{worst.subject}."
            )
    return ""
