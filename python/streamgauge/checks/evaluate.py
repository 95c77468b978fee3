"""Verdicts.

A comparison ``L >= R`` is decided on the margin d = L - R of each repetition (R - L for ``<=``), by the mean
of d and its 95 % interval (Student's t):

- it holds if the whole interval is on the right side of zero, and fails if all of it is on the wrong side;
- it is undecided if zero lies inside;
- of functions of all trials (``ks(a, b)``) d is one number, and its interval is by resamples of the members
  that were played (`streamgauge.checks.of_trials`);
- without variation, or with one repetition, there is no interval and the value of d decides, and the verdict
  says so.

``L == R +- t`` is ``L >= R - t and L <= R + t``. ``not``, ``and``, ``or`` follow Kleene: an undecided part
leaves the whole undecided only if it could turn it. The verdict is pass, fail or, where undecided,
inconclusive. It is inconclusive besides when there is no valid trial or more than a third of the trials are
invalid, here or in another scenario that the check reads, and when a term has nothing to measure.

Repetitions of several scenarios are paired by their seeds, for a seed draws the same in all of them: a seed
that is not valid in each is left out, and n is the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from streamgauge.checks.of_trials import OverTrials, has_trials
from streamgauge.checks.published import differs
from streamgauge.checks.readings import TrialReadings
from streamgauge.checks.result import CheckResult, Compared, Value, Verdict
from streamgauge.checks.values import (
    DIMENSIONS,
    Read,
    Repetition,
    Unmeasurable,
    events_of,
    is_count,
    leaves,
    reading,
    unit_leaf,
    value_of,
)
from streamgauge.claims.dimension import Dimension
from streamgauge.claims.expression import Expression, parse
from streamgauge.claims.syntax import (
    Call,
    Chain,
    First,
    Fraction,
    Logical,
    Negation,
    Negative,
    Node,
    Predicate,
    QuantityTerm,
    Reference,
    Relation,
    Share,
    Term,
)
from streamgauge.claims.typing import Told, Unlike, dimension_of, is_of_trials, is_signed
from streamgauge.claims.typing import check as check_dimensions
from streamgauge.metrics.grid import Floats
from streamgauge.metrics.interval import Interval
from streamgauge.metrics.result import NEVER_SAID, TrialMetrics
from streamgauge.scenario.origin import changed
from streamgauge.scenario.recorded import members_of


class TrialLike(Protocol):
    """Header of every trial, also of one without measurements."""

    @property
    def scenario(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def valid(self) -> bool: ...
    @property
    def why(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class InvalidTrial:
    """A trial that left no record to measure: it counts as invalid."""

    scenario: str
    mode: str
    seed: int
    why: tuple[str, ...]
    replaced_by: int | None = None
    """Seed of the trial that replaces it, if one does: then it does not count as invalid."""
    valid: bool = False


def evaluate_all(
    scenarios: Iterable[Any], trials: Sequence[TrialLike], *, settings: Sequence[str] = ()
) -> list[CheckResult]:
    """Returns every check of every scenario, once per mode in which the scenario has trials and the check
    applies.

    Args:
        scenarios: `streamgauge.scenario.Scenario` objects, or mappings in their normalised form.
        trials: metrics or readings of all trials, valid or not; those of scenarios that checks refer to
            included.
        settings: settings of the scenarios: published numbers are those of the shipped scenarios.
    """
    results = []
    groups = _Groups(trials)
    for scenario in scenarios:
        data: Mapping[str, Any] = scenario if isinstance(scenario, Mapping) else scenario.normalised()
        for mode in groups.modes(str(data["id"])):
            unlike: str | None = None
            for name, check in (data.get("checks") or {}).items():
                if mode in (check.get("modes") or (mode,)):
                    found = _evaluate(name, check, str(data["id"]), mode, groups, members_of(data))
                    # Looked up only where something hangs on it.
                    if found.published and (found.differs or settings):
                        if unlike is None:
                            unlike = changed(data, "sim" if mode == "sim" else "emu", settings)
                        if unlike:
                            said = f"{unlike}: not compared with the paper"
                            found = replace(found, changed=True, differs=said)
                    results.append(found)
    return results


def evaluate(
    name: str,
    check: Mapping[str, Any],
    scenario: str,
    mode: str,
    trials: Sequence[TrialLike],
    *,
    members: int | None = None,
) -> CheckResult:
    """Returns one check's verdict in one mode.

    Args:
        name: the check's id.
        check: its normalised form: `that`, `origin`, and the rest of `streamgauge.scenario.Check`.
        scenario: the id of its scenario.
        mode: ``sim`` or ``emu``; trials of the other mode are left aside.
        trials: metrics or readings of trials, of this and of other scenarios.
        members: number of the members of the scenario's population, each played in turn; None without one.

    Raises:
        ExpressionError: if `that` is not in the grammar.
    """
    return _evaluate(name, check, scenario, mode, _Groups(trials), members)


def _evaluate(
    name: str,
    check: Mapping[str, Any],
    scenario: str,
    mode: str,
    all_groups: _Groups,
    members: int | None = None,
) -> CheckResult:
    expression = parse(str(check["that"]))
    groups = {key: all_groups.of(key or scenario, mode) for key in ("", *sorted(expression.scenarios()))}
    published = check.get("published") or {}
    blank = CheckResult(
        id=name,
        scenario=scenario,
        mode=mode,
        verdict="inconclusive",
        why="",
        that=str(expression),
        title=check.get("title"),
        origin=str(check.get("origin", "predicted")),
        strict=bool(check.get("strict", False)),
        published=published if isinstance(published, Mapping) else {"value": published},
        measured=None,
        n=len(groups[""].valid),
        trials=groups[""].total,
        invalid=groups[""].invalid,
        replaced=groups[""].replaced,
        values={},
        comparisons=(),
        note=check.get("note"),
    )
    for group in groups.values():
        if (reason := group.unusable()) is not None:
            return replace(blank, why=reason)
    repetitions = _repetitions(groups)
    if not repetitions:
        which = ", ".join(group.scenario for group in groups.values())
        remedy = "run them with the same seeds"
        if blank.replaced:
            remedy = "further seeds in place of invalid trials have no partner there; run more repetitions"
        return replace(blank, why=f"no seed is valid in each of {which}; {remedy}", n=0)
    repetitions = _with_counts(expression, repetitions)
    try:
        told = _told(expression, repetitions)
        check_dimensions(expression.root, told)
    except Unmeasurable as error:
        return replace(blank, why=str(error), n=len(repetitions))
    except Unlike as error:
        said = "; ".join(f"{event} is {dimension} here" for event, dimension in told.items())
        return replace(blank, why=f"{error}: {said}", n=len(repetitions))
    over = OverTrials(repetitions, members)
    judged = _Judge(repetitions, told, over)
    holds = judged.decide(expression.root)
    verdict: Verdict = "inconclusive" if holds is None else "pass" if holds else "fail"
    deciding = _deciding(judged.comparisons, holds)
    values = _terms(expression, repetitions, told, over)
    return replace(
        blank,
        verdict=verdict,
        why=deciding.why + _replaced(groups) + _unpaired(groups, len(repetitions)),
        measured=deciding.measured,
        n=len(repetitions),
        values=values,
        comparisons=tuple(judged.comparisons),
        differs=differs(check, values, blank.published),
    )


@dataclass(frozen=True)
class _Group:
    """The trials of one scenario in one mode."""

    scenario: str
    mode: str
    valid: list[TrialMetrics | TrialReadings]
    total: int
    """Without those that were replaced."""
    replaced: int

    @classmethod
    def gather(cls, scenario: str, mode: str, mine: Sequence[TrialLike]) -> _Group:
        valid = [trial for trial in mine if isinstance(trial, TrialMetrics | TrialReadings) and trial.valid]
        replaced = sum(isinstance(trial, InvalidTrial) and trial.replaced_by is not None for trial in mine)
        valid.sort(key=lambda trial: trial.seed)
        return cls(scenario, mode, valid, len(mine) - replaced, replaced)

    @property
    def invalid(self) -> int:
        return self.total - len(self.valid)

    def unusable(self) -> str | None:
        if self.total == 0:
            return f"{self.scenario} has no {self.mode} trial here; run it too"
        if not self.valid:
            return f"none of the {self.total} {self.mode} trials of {self.scenario} is valid"
        if 3 * self.invalid > self.total:
            which = f"{self.mode} trials of {self.scenario}"
            return f"{self.invalid} of {self.total} {which} are invalid, more than a third"
        return None


class _Groups:
    """Trials by scenario and mode."""

    def __init__(self, trials: Iterable[TrialLike]) -> None:
        self._trials: dict[tuple[str, str], list[TrialLike]] = {}
        for trial in trials:
            self._trials.setdefault((trial.scenario, trial.mode), []).append(trial)
        self._gathered: dict[tuple[str, str], _Group] = {}

    def modes(self, scenario: str) -> list[str]:
        return [mode for one, mode in self._trials if one == scenario]

    def of(self, scenario: str, mode: str) -> _Group:
        key = (scenario, mode)
        if key not in self._gathered:
            self._gathered[key] = _Group.gather(scenario, mode, self._trials.get(key, ()))
        return self._gathered[key]


def _repetitions(groups: Mapping[str, _Group]) -> list[Repetition]:
    """Returns the units of comparison: each valid trial of one scenario, each seed that is valid in all of
    several."""
    if len(groups) == 1:
        ((key, group),) = groups.items()
        return [{key: trial} for trial in group.valid]
    by_seed = {key: {trial.seed: trial for trial in group.valid} for key, group in groups.items()}
    common = set.intersection(*(set(trials) for trials in by_seed.values()))
    return [{key: trials[seed] for key, trials in by_seed.items()} for seed in sorted(common)]


def _replaced(groups: Mapping[str, _Group]) -> str:
    """Returns a remark if a trial replaces another that was invalid."""
    count = sum(group.replaced for group in groups.values())
    if not count:
        return ""
    return f"; in place of {count} invalid trial{'' if count == 1 else 's'} by further seeds"


def _unpaired(groups: Mapping[str, _Group], pairs: int) -> str:
    """Returns a remark if a valid trial has no partner."""
    if all(len(group.valid) == pairs for group in groups.values()):
        return ""
    seeds = "1 seed is" if pairs == 1 else f"{pairs} seeds are"
    return f"; paired by seed: {seeds} valid in every scenario that it reads"


def _told(expression: Expression, repetitions: list[Repetition]) -> dict[Reference, Dimension]:
    """Returns the dimensions of the events that an expression reads, as in the trials; those in no trial are
    left out.

    Raises:
        Unmeasurable: if trials disagree.
    """
    found: dict[Reference, Dimension] = {}
    for event in events_of(expression.root):
        by_seed: dict[int, Dimension] = {}
        for repetition in repetitions:
            trial = repetition[event.scenario]
            try:
                by_seed[trial.seed] = DIMENSIONS[int(reading(unit_leaf(event), trial))]
            except Unmeasurable:
                continue
        first = next(iter(by_seed.items()), None)
        for seed, dimension in by_seed.items():
            if first is not None and dimension != first[1]:
                raise Unmeasurable(
                    f"{event} is {first[1]} in seed {first[0]} and {dimension} in seed {seed}: its unit must "
                    "be of one kind in all trials"
                )
        if first is not None:
            found[event] = first[1]
    return found


@dataclass(frozen=True)
class _WithCounts:
    """A trial that counts missing events as 0, for events that other trials have."""

    trial: TrialMetrics | Read
    counts: frozenset[str]

    @property
    def seed(self) -> int:
        return self.trial.seed

    def reading(self, leaf: Term) -> float:
        try:
            return reading(leaf, self.trial)
        except Unmeasurable as error:
            if str(leaf) in self.counts and NEVER_SAID in str(error):
                return 0.0
            raise


def _with_counts(expression: Expression, repetitions: list[Repetition]) -> list[Repetition]:
    """Returns the repetitions, where a counted event counts as 0 if it is missing, provided any other has it:
    a player reports events as they happen, and one that never reports an event at all may not support it."""
    counted: dict[str, set[str]] = {}
    for scenario, leaf in leaves(expression.root):
        if is_count(leaf) and any(_has(leaf, repetition[scenario]) for repetition in repetitions):
            counted.setdefault(scenario, set()).add(str(leaf))
    if not counted:
        return repetitions
    return [
        {
            scenario: _WithCounts(trial, frozenset(counted.get(scenario, ())))
            for scenario, trial in repetition.items()
        }
        for repetition in repetitions
    ]


def _has(leaf: Term, trial: TrialMetrics | Read) -> bool:
    try:
        reading(leaf, trial)
    except Unmeasurable:
        return False
    return True


_Spread = Callable[[Floats], Interval]


class _Judge:
    """Decides the parts of one expression and keeps every comparison."""

    def __init__(self, repetitions: list[Repetition], told: Told, over: OverTrials) -> None:
        self.repetitions = repetitions
        self.told = told
        self.over = over
        self.comparisons: list[Compared] = []

    def decide(self, node: Predicate) -> bool | None:
        match node:
            case Relation():
                compared = self._compare(node)
                self.comparisons.append(compared)
                return compared.holds
            case Chain():
                return _all([self.decide(link) for link in node.links])
            case Negation():
                inner = self.decide(node.operand)
                return None if inner is None else not inner
            case Logical():
                parts = [self.decide(node.left), self.decide(node.right)]
                if node.operator == "and":
                    return _all(parts)
                inverse = _all([None if part is None else not part for part in parts])
                return None if inverse is None else not inverse
        raise TypeError(f"{type(node).__name__} is no predicate")

    def _compare(self, node: Relation) -> Compared:
        try:
            (left, right), told, margin_of = self._sides(node)
            dimension = _dimension(node, self.told)
            a = Value(str(node.left), told(left), dimension, is_signed(node.left))
            b = Value(str(node.right), told(right), dimension, is_signed(node.right))
            differences = left - right
            within = np.zeros(len(right))
            if node.within is not None:
                size = node.within.canonical
                within = np.abs(right) * size if node.within.unit == "%" else np.full(len(right), size)
            operator = node.operator
            if operator in (">=", ">"):
                holds, margin = _side(margin_of(differences), strictly=operator == ">")
            elif operator in ("<=", "<"):
                holds, margin = _side(margin_of(-differences), strictly=operator == "<")
            elif operator == "==" and node.within is not None:
                # The side with less room shows how near it was.
                sides = [
                    _side(margin_of(within - differences), strictly=False),
                    _side(margin_of(within + differences), strictly=False),
                ]
                holds = _all([side[0] for side in sides])
                margin = min((side[1] for side in sides), key=lambda found: found.mean)
            else:
                holds, margin = _equal(margin_of(differences))
                holds = holds if operator == "==" or holds is None else not holds
        except Unmeasurable as error:
            return Compared(str(node), None, None, None, None, str(error))
        # The measured side is first in words, also in `0.5 % <= loss.a`.
        if _is_constant(node.left):
            a, b = b, a
        room = Value(f"margin of {node}", margin, dimension)
        return Compared(str(node), holds, a, b, room, _tell(node, holds, a, b, room))

    def _sides(self, node: Relation) -> tuple[tuple[Floats, Floats], _Spread, _Spread]:
        """Returns both sides, of each trial, or of all trials and of each resample; the interval of such, and
        that of their margin."""
        text = str(node)
        if has_trials(node):
            left, right = self.over.value(node.left), self.over.value(node.right)
            return (left, right), partial(self.over.spread, text), partial(self.over.margin, text)
        left, right = (
            np.array([value_of(side, repetition) for repetition in self.repetitions])
            for side in (node.left, node.right)
        )
        return (left, right), partial(self.over.mean, text), partial(self.over.mean, text)


def _is_constant(node: Term) -> bool:
    """Returns whether nothing in it is measured."""
    return not any(isinstance(part, Reference) for part in node.walk())


def _dimension(node: Relation, told: Told) -> Dimension:
    left = dimension_of(node.left, told)
    zero = isinstance(node.left, QuantityTerm) and node.left.value == 0 and not node.left.unit
    return dimension_of(node.right, told) if zero else left


def _all(parts: list[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def _side(found: Interval, *, strictly: bool) -> tuple[bool | None, Interval]:
    if found.half_width is None or found.no_variation:
        return (found.mean > 0 if strictly else found.mean >= 0), found
    low, high = found.mean - found.half_width, found.mean + found.half_width
    if low > 0 or (low == 0 and not strictly):
        return True, found
    return (False if high < 0 or (high == 0 and strictly) else None), found


def _equal(found: Interval) -> tuple[bool | None, Interval]:
    """Equality without tolerance: proved by exact agreement alone, refuted by an interval without zero."""
    if found.half_width is None or found.no_variation:
        return found.mean == 0, found
    return (False if abs(found.mean) > found.half_width else None), found


def _tell(node: Relation, holds: bool | None, measured: Value, bound: Value, margin: Value) -> str:
    said = f"{measured.text} is {measured.words()}"
    other = node.left if measured.text == str(node.right) and _is_constant(node.left) else node.right
    plain = isinstance(other.operand if isinstance(other, Negative) else other, QuantityTerm)
    against = str(other) if plain else f"{bound.text} = {bound.mean_words()}"
    operator = node.operator
    if other is node.left:
        operator = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}.get(operator, operator)
    wanted = {
        ">=": "at least", ">": "more than", "<=": "at most", "<": "less than", "==": "equal to",
        "!=": "other than",
    }[operator]  # fmt: skip
    tolerance = f" +- {node.within}" if node.within is not None else ""
    state = {True: "as claimed", False: "not as claimed", None: "undecided"}[holds]
    text = f"{said}; claimed is {wanted} {against}{tolerance}: {state}"
    if margin.interval.n < 2:
        return f"{text}, by one trial and so without an interval"
    if margin.interval.no_variation:
        return f"{text}; the trials do not vary, so the value decides"
    if holds is None:
        return f"{text}, because the 95 % interval of the difference contains zero"
    return text


def _deciding(comparisons: list[Compared], holds: bool | None) -> Compared:
    """Returns the comparison that made the verdict; for a pass, the one with the least room."""
    same = [compared for compared in comparisons if compared.holds is holds] or comparisons
    if holds is not True:
        return same[0]

    def room(compared: Compared) -> float:
        if compared.margin is None or compared.bound is None:
            return float("inf")
        scale = max(abs(compared.bound.interval.mean), abs(compared.margin.interval.mean), 1e-300)
        return compared.margin.interval.mean / scale

    return min(same, key=room)


def _terms(
    expression: Expression, repetitions: list[Repetition], told: Told, over: OverTrials
) -> dict[str, Value]:
    """Returns every outermost metric or function of metrics."""
    found: dict[str, Value] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Reference | Call | Fraction | First | Share):
            try:
                if is_of_trials(node):
                    of = over.spread(str(node), over.value(node))
                else:
                    values = np.array([value_of(node, repetition) for repetition in repetitions])
                    of = over.mean(str(node), values)
            except Unmeasurable:
                return
            found[str(node)] = Value(str(node), of, dimension_of(node, told), is_signed(node))
            if not isinstance(node, Call) or len(node.arguments) == 1 or is_of_trials(node):
                return
        for child in node.children():
            visit(child)

    visit(expression.root)
    return found
