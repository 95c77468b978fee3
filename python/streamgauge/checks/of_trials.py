"""Values of all trials together: of distributions, with their values in resamples of the trials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from streamgauge.checks.values import Repetition, Unmeasurable, apply, holds, value_of
from streamgauge.claims.syntax import Binary, Call, Negative, Node, QuantityTerm, Share, Term
from streamgauge.claims.typing import is_of_trials
from streamgauge.metrics import distributions
from streamgauge.metrics.grid import Floats, Ints
from streamgauge.metrics.interval import Interval, interval

__all__ = ["OverTrials", "has_trials"]


def has_trials(node: Node) -> bool:
    """Returns whether it is a value of all trials together, or a statement of such."""
    return any(is_of_trials(part) for part in node.walk())


class OverTrials:
    """Values of all trials, each with those of the resamples after it, [1 + resample], in canonical units.

    A trial that lacks one of a value's parts is not among its trials. The uncertainty is in a population's
    choice of members: trials of the same one are drawn together.
    """

    def __init__(self, repetitions: Sequence[Repetition], members: int | None = None) -> None:
        """Reads these repetitions; each plays one of the members in turn."""
        self._repetitions = repetitions
        seeds = [next(iter(one.values())).seed for one in repetitions]
        groups = range(len(seeds)) if members is None else [(seed - 1) % members for seed in seeds]
        self._groups: Sequence[int] = groups
        _, self._member = np.unique(np.asarray(groups), return_inverse=True)
        self._n = len(set(groups))
        self._found: dict[Term, Floats] = {}

    @cached_property
    def _counts(self) -> Floats:
        """Returns how often each trial is in each resample; most checks ask for none."""
        return distributions.resampled_by(self._groups)

    def mean(self, text: str, values: Floats) -> Interval:
        """Returns the mean of a value that each trial has: of each member's trials first, which makes a
        member that was played twice count once. Raises Unmeasurable if one is infinite: an event that never
        happens has no mean."""
        if not np.isfinite(values).all():
            raise Unmeasurable(f"{text} is not finite in every trial")
        by_member = np.bincount(self._member, values) / np.bincount(self._member)
        return interval(list(by_member))

    def spread(self, text: str, found: Floats) -> Interval:
        """Returns a value with its interval by the resamples. Raises Unmeasurable where it is not finite."""
        try:
            return distributions.spread(found, self._n)
        except ValueError:
            raise Unmeasurable(f"{text} is not finite") from None

    def margin(self, text: str, found: Floats) -> Interval:
        """Returns the same for the value that decides a verdict, without the bias that resamples have: two
        distances of equal distributions are further from nothing the fewer the trials (Efron and Tibshirani,
        section 10.2)."""
        with np.errstate(invalid="ignore"):
            bias = float(np.nanmean(np.where(np.isfinite(found[1:]), found[1:], np.nan))) - float(found[0])
        return self.spread(text, found - (bias if np.isfinite(bias) else 0.0))

    def value(self, node: Term) -> Floats:
        """Returns a value of all trials; asked for again, the same array.

        Raises:
            Unmeasurable: if no trial has one, or the distribution lacks the requested part.
        """
        if node not in self._found:
            self._found[node] = self._computed(node)
        return self._found[node]

    def _computed(self, node: Term) -> Floats:
        match node:
            case QuantityTerm():
                return np.full(1 + distributions.RESAMPLES, node.canonical)
            case Negative():
                return -self.value(node.operand)
            case Binary():
                left, right = self.value(node.left), self.value(node.right)
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.asarray(apply(node.operator, left, right))
            case Share():
                return self._share(node)
            case Call():
                return self._statistic(node)
        raise TypeError(f"{type(node).__name__} is no value of all trials")

    def _known(
        self, node: Term, read: Callable[[Repetition], Sequence[float]]
    ) -> tuple[Floats, Floats, Ints]:
        """Returns the values of each trial that has them, [trial, part]; how often it is in each resample;
        and the member that it plays."""
        rows: list[Sequence[float] | None] = []
        reason = ""
        for repetition in self._repetitions:
            try:
                rows.append(read(repetition))
            except Unmeasurable as error:
                reason = reason or str(error)
                rows.append(None)
        known = [row is not None for row in rows]
        if not any(known):
            raise Unmeasurable(f"{node} has no trial with a value: {reason}")
        values = np.array([row for row in rows if row is not None])
        if all(known):
            return values, self._counts, self._member
        counts = self._counts[:, known]
        # A resample without any trial that has a value carries no information.
        counts = np.where(counts.sum(axis=1, keepdims=True) > 0, counts, 1.0)
        return values, counts, self._member[known]

    def _share(self, node: Share) -> Floats:
        def read(repetition: Repetition) -> Sequence[float]:
            among = node.among is None or holds(node.among, repetition)
            return (float(among), float(among and holds(node.statement, repetition)))

        values, counts, member = self._known(node, read)
        among, true = (counts @ column for column in values.T)
        if not among[0]:
            raise Unmeasurable(f"{node} is of trials of which there is none")
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.asarray(true / among)
        return distributions.not_certain(found, len(np.unique(member[values[:, 0] > 0])))

    def _statistic(self, node: Call) -> Floats:
        arguments = node.arguments[:1] if node.function == "quantile" else node.arguments

        def read(repetition: Repetition) -> Sequence[float]:
            return [value_of(argument, repetition) for argument in arguments]

        values, counts, _ = self._known(node, read)
        columns = values.T
        if node.function == "quantile":
            return distributions.quantile(columns[0], value_of(node.arguments[1], {}), counts)
        x, y = np.concatenate(columns[::2]), np.concatenate(columns[1::2])
        if node.function == "ks":
            return distributions.ks(x, y, counts)
        if not np.isfinite(values).all():
            raise Unmeasurable(f"{node} is of values that are not finite")
        if node.function == "emd":
            return distributions.emd(x, y, counts)
        # Pairs after one another are of the same trials, which are drawn together.
        return distributions.correlation(x, y, np.tile(counts, len(arguments) // 2))
