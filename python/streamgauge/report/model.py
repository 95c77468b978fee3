"""Data of a report: trials, gathered by scenario and mode."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.campaign.loaded import LoadedTrial, left_out, load, load_trial, trial_folders
from streamgauge.checks import CheckResult, InvalidTrial, Leaves, TrialReadings, evaluate_all, take
from streamgauge.checks.values import leaves
from streamgauge.claims.dimension import RATE, TIME, Dimension, say, show
from streamgauge.claims.expression import parse
from streamgauge.claims.syntax import Term
from streamgauge.errors import StreamGaugeError
from streamgauge.metrics import METRICS, Interval, TrialMetrics, interval
from streamgauge.metrics.grid import Floats
from streamgauge.report.numbers import Numbers, Stretch, over_stretches
from streamgauge.report.phases import Phases, phases, spoken_stretches
from streamgauge.scenario.settings import named, set_folder, setting_labels, short_addresses, sorting

__all__ = [
    "NOT_KNOWN",
    "Entry",
    "Group",
    "LoadedTrial",
    "class_labels",
    "entry_labels",
    "gather",
    "labels",
    "left_out",
    "listed",
    "load",
    "load_trial",
    "mean_of",
    "say_half",
    "say_mean",
    "trial_folders",
]


@dataclass(frozen=True)
class Group:
    """The trials of one scenario in one mode."""

    scenario: str
    mode: str
    trials: tuple[LoadedTrial, ...]

    read: Numbers | None = field(default=None, compare=False, repr=False)
    """Small numbers of the valid trials; read when they are asked for if None."""

    @cached_property
    def valid(self) -> list[LoadedTrial]:
        """Returns the valid trials, by seed; of a repetition one."""
        return [trial for trial in self.trials if self._counts(trial)]

    def _counts(self, trial: LoadedTrial) -> bool:
        """Valid, and not in the place of a trial that has become valid since."""
        return trial.valid and (trial.replaces is None or trial.replaces not in self._valid_seeds)

    @cached_property
    def _valid_seeds(self) -> set[int]:
        return {trial.seed for trial in self.trials if trial.valid}

    def replaced_by(self, trial: LoadedTrial) -> int | None:
        """Returns the seed of the valid trial that replaces an invalid one."""
        if trial.valid:
            return None
        whose = trial.seed if trial.replaces is None else trial.replaces
        return self._standing.get(whose)

    @cached_property
    def _standing(self) -> dict[int, int]:
        """Returns seeds of valid trials, by their own and by the one that they replace."""
        found: dict[int, int] = {}
        for one in self.trials:
            if one.valid:
                for whose in {one.seed} if one.replaces is None else {one.replaces, one.seed}:
                    found.setdefault(whose, one.seed)
        return found

    @cached_property
    def numbers(self) -> Numbers:
        """Small numbers of the valid trials."""
        if self.read is not None:
            return self.read
        found = Numbers()
        for metrics in self.each():
            found.add(metrics)
        return found

    def each(self) -> Iterator[TrialMetrics]:
        """Metrics of the valid trials, one after the other: each is read from its folder."""
        for trial in self.valid:
            metrics = trial.metrics
            assert metrics is not None
            yield metrics

    @property
    def shown(self) -> TrialMetrics | None:
        """Returns the trial with the drawn time series: the valid one with the lowest seed."""
        return self.valid[0].metrics if self.valid else None

    def phases(self, subject: str) -> Phases | None:
        """Returns a subject's time without and with other flows; None if it was never beside one."""
        if subject not in self._phases:
            shown = self.shown
            found = None if shown is None else phases(shown, subject, self.numbers.first_sent)
            self._phases[subject] = found
        return self._phases[subject]

    @cached_property
    def _phases(self) -> dict[str, Phases | None]:
        return {}

    def asked(self, flow: str) -> Mapping[str, Any]:
        """Returns a flow as its scenario has it, in normalised form; empty if no record has it."""
        for trial in self.trials:
            scenario = trial.header.get("scenario")
            if isinstance(scenario, Mapping):
                found = (scenario.get("flows") or {}).get(flow) or {}
                return {**found, **(found.get(self.mode) or {})}
        return {}

    def over(
        self, metric: str, subject: str = "", begin_s: float | None = None, end_s: float | None = None
    ) -> Interval | None:
        """Returns a metric's mean and interval over the valid trials; None if no trial has it."""
        return mean_of(self.values(metric, subject, begin_s, end_s))

    def values(
        self, metric: str, subject: str = "", begin_s: float | None = None, end_s: float | None = None
    ) -> Floats:
        """Returns a metric over the window or a stretch of time, [valid trial]; NaN where it is not known."""
        if begin_s is None and end_s is None:
            return self.numbers.column(metric, subject)
        stretch = (metric, subject, begin_s, end_s)
        self.read_stretches([stretch])
        return self._stretches[stretch]

    def read_stretches(self, stretches: Iterable[Stretch]) -> None:
        """Reads metrics over stretches of time that will be asked for, all in one go through the trials."""
        missing = [one for one in stretches if one not in self._stretches]
        if missing:
            self._stretches.update(over_stretches(self.each(), missing))

    @cached_property
    def _stretches(self) -> dict[Stretch, Floats]:
        return {}

    def say(
        self, metric: str, subject: str = "", begin_s: float | None = None, end_s: float | None = None
    ) -> str:
        """Returns `over` in words: ``546 ± 6 kbit/s``; ``not known`` if there is nothing."""
        found = self.over(metric, subject, begin_s, end_s)
        return NOT_KNOWN if found is None else say_mean(found, metric)


NOT_KNOWN = "not known"
"""Placeholder for a missing value (not zero)."""


def mean_of(values: Floats) -> Interval | None:
    """Mean and interval of anything measured per trial; trials that have no value are left out, None if none
    has."""
    known = [float(value) for value in values if np.isfinite(value)]
    return interval(known) if known else None


def say_mean(found: Interval, metric: str, digits: int = 3) -> str:
    """Returns a metric's mean with half its interval, ``245 ± 1.2 kbit/s``; see `say_half`."""
    return say_half(found, METRICS[metric].dimension, digits, signed=METRICS[metric].signed)


def say_half(found: Interval, dimension: Dimension, digits: int = 3, *, signed: bool = True) -> str:
    """Returns a mean with half its interval; without it if nothing varied, n is 1, or the digits do not show
    it. Where a quantity that is not `signed` would reach below zero, its interval's ends: ``1.0 [0, 2.7]
    %``."""
    return str(show(found.mean, found.half_width, dimension, digits, signed=signed))


@dataclass(frozen=True)
class Entry:
    """One scenario of the report, with its trials in each mode."""

    id: str
    """The scenario's id, with its settings: ``my/download (path.down.rate=2Mbit/s)``."""
    scenario: Mapping[str, Any]
    """In normalised form, as it was run."""
    plan: Mapping[str, Any]
    groups: tuple[Group, ...]
    checks: tuple[CheckResult, ...]
    settings: tuple[str, ...] = ()
    shown_id: str = ""
    """The id with short settings, ``my/download (rate=2Mbit/s)``; the id if empty."""

    @property
    def label(self) -> str:
        """Returns the id in short."""
        return self.shown_id or self.id

    @property
    def slug(self) -> str:
        """Returns the id as a name in links and of files."""
        return re.sub(r"[^A-Za-z0-9._]+", "-", self.id).strip("-")

    @property
    def title(self) -> str:
        """Returns its name in words, with its settings; its id if it has no title."""
        title = str(self.scenario.get("title") or "")
        if not title:
            return self.id
        _, _, setting = self.label.partition(" (")
        return f"{title} ({setting}" if setting else title

    @property
    def source(self) -> Mapping[str, Any]:
        """Returns the source of the experiment; empty if it is our own."""
        return self.scenario.get("source") or {}

    def group(self, mode: str) -> Group | None:
        """Returns its trials in one mode."""
        return next((group for group in self.groups if group.mode == mode), None)

    @property
    def best(self) -> Group:
        """Returns the mode that answers: emulation, where it has a valid trial, else simulation."""
        usable = [group for group in self.groups if group.valid]
        emulated = [group for group in usable if group.mode == "emu"]
        return (emulated or usable or list(self.groups))[0]

    def names(self, role: str) -> list[str]:
        """Returns its flows of a role, probes left out."""
        infos = next((group.numbers.infos for group in self.groups if group.valid), None)
        if infos is None:
            flows = self.scenario.get("flows") or {}
            return [name for name, flow in flows.items() if flow.get("role") == role]
        return [name for name, info in infos.items() if info.role == role and not info.is_ping]


def listed(parts: Sequence[str]) -> str:
    """Returns ``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def labels(ids: Sequence[str]) -> dict[str, str]:
    """Returns short unique labels of scenarios: the end of each id, after a slash or dash, that no other
    has."""
    found = {}
    for id_ in ids:
        # Settings, in parentheses, are not taken apart.
        ends = [id_[cut.end() :] for cut in re.finditer("[/-]", id_.partition(" (")[0])][::-1]
        others = [other for other in ids if other != id_]
        found[id_] = next(
            (
                end
                for end in ends
                if end and not any(f"/{other}".endswith((f"/{end}", f"-{end}")) for other in others)
            ),
            id_,
        )
    return found


def entry_labels(entries: Sequence[Entry]) -> dict[str, str]:
    """Returns `labels` of scenarios, by their ids; for one scenario with several sets of settings, their
    differences."""
    if len({entry.scenario.get("id") for entry in entries}) == 1 and len(entries) > 1:
        found = setting_labels({entry.id: entry.settings for entry in entries})
        if len(set(found.values())) == len(found):
            return found
    by_label = labels([entry.label for entry in entries])
    return {entry.id: by_label[entry.label] for entry in entries}


def class_labels(entries: Sequence[Entry], groups: Sequence[Group]) -> dict[str, str]:
    """Returns `labels` of scenarios, classes of cross traffic with its rate: ``medium (cross 741
    kbit/s)``."""
    found = entry_labels(entries)
    for entry, group in zip(entries, groups, strict=True):
        if found[entry.id] in _CLASSES:
            beside = listed([_sends(group, name) for name in entry.names("rival")] or [""])
            found[entry.id] = f"{found[entry.id]} ({beside})" if beside else "no cross traffic"
    return found


def _sends(group: Group, flow: str) -> str:
    """Returns a flow with its rate while it sends, and for how long if that is short."""
    rate, time = group.over("sending_rate", flow), group.over("sending_time", flow)
    if rate is None or time is None:
        return flow
    brief = f" for {say(time.mean, TIME)}" if time.mean < _BRIEF_S else ""
    return f"{flow} {say(rate.mean, RATE)}{brief}"


def gather(
    trials: Iterable[LoadedTrial],
    checks: Sequence[CheckResult] | None = None,
    *,
    told: Callable[[int, int], None] | None = None,
) -> list[Entry]:
    """Trials by scenario, today's systems first, each paper's after.

    Every trial is read once, one after the other. One that cannot be is kept as invalid, with the reason.

    Args:
        trials: in any order.
        checks: verdicts, if they are known; otherwise every scenario's checks are judged here.
        told: receives after each trial the number of trials read, and the total.
    """
    # The same written otherwise, 2Mbit/s and 2 Mbit/s, is one set, and lies in one folder.
    by_set: dict[Path, list[LoadedTrial]] = {}
    for trial in trials:
        by_set.setdefault(set_folder(trial.settings), []).append(trial)
    count = _Count(sum(map(len, by_set.values())), told)
    entries = [entry for found in by_set.values() for entry in _of_one_set(found, checks, count)]
    short = short_addresses(one.partition("=")[0] for entry in entries for one in entry.settings)
    return [replace(entry, shown_id=_short_id(entry, short)) for entry in sorted(entries, key=_order)]


def _short_id(entry: Entry, short: Mapping[str, str]) -> str:
    """Returns an entry's id with the addresses that are set in it by their ends."""
    pairs = [one.partition("=")[::2] for one in entry.settings]
    plain = entry.id.partition(" (")[0] if entry.settings else entry.id
    return named(plain, [f"{short[address]}={value}" for address, value in pairs])


class _Count:
    """Reports the number of trials read."""

    def __init__(self, total: int, told: Callable[[int, int], None] | None) -> None:
        self._done, self._total, self._told = 0, total, told

    def one(self) -> None:
        self._done += 1
        if self._told is not None:
            self._told(self._done, self._total)


def _of_one_set(
    trials: Sequence[LoadedTrial], checks: Sequence[CheckResult] | None, count: _Count
) -> list[Entry]:
    """Returns the scenarios in which the same was set, checks judged among them."""
    settings = trials[0].settings
    by_scenario: dict[str, list[LoadedTrial]] = {}
    for trial in trials:
        by_scenario.setdefault(trial.scenario, []).append(trial)
    firsts = {name: next((t for t in found if t.valid), found[0]) for name, found in by_scenario.items()}
    scenarios = {
        name: first.header["scenario"] if isinstance(first.header.get("scenario"), Mapping) else {"id": name}
        for name, first in firsts.items()
    }
    wanted = _leaves(scenarios.values()) if checks is None else {}
    measured: list[TrialReadings | InvalidTrial] = []
    groups: dict[str, tuple[Group, ...]] = {}
    for name, mine in by_scenario.items():
        groups[name] = ()
        for mode, of_mode in _by_mode(mine):
            group, readings = _read(name, mode, of_mode, wanted.get(name, {}), count)
            groups[name] += (group,)
            measured += _as_checked(group, readings)
    if checks is None:
        checks = evaluate_all(scenarios.values(), measured, settings=trials[0].changed)
    entries = []
    for name in by_scenario:
        ours = [check for check in checks if check.scenario == name]
        order = list(dict.fromkeys(check.id for check in ours))
        ours.sort(key=lambda check: (order.index(check.id), check.mode != "sim"))
        id_ = named(name, settings)
        entries.append(Entry(id_, scenarios[name], firsts[name].plan, groups[name], tuple(ours), settings))
    return entries


def _leaves(scenarios: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Term]]:
    """Returns the leaves of the checks of scenarios, by the id of the scenario of their trials."""
    found: dict[str, dict[str, Term]] = {}
    for scenario in scenarios:
        for check in (scenario.get("checks") or {}).values():
            for other, leaf in leaves(parse(str(check["that"])).root):
                found.setdefault(other or str(scenario["id"]), {})[str(leaf)] = leaf
    return found


def _by_mode(trials: Sequence[LoadedTrial]) -> list[tuple[str, list[LoadedTrial]]]:
    """Returns a scenario's trials by mode, sim first, each by seed."""
    modes = sorted({trial.mode for trial in trials}, key=lambda mode: (mode != "sim", mode))
    by_seed = sorted(trials, key=lambda trial: trial.seed)
    return [(mode, [trial for trial in by_seed if trial.mode == mode]) for mode in modes]


def _read(
    scenario: str, mode: str, trials: Sequence[LoadedTrial], wanted: Leaves, count: _Count
) -> tuple[Group, dict[int, TrialReadings]]:
    """Reads a scenario's trials in a mode: for each the values for its page and its checks, the latter by
    `id`."""
    found: list[LoadedTrial] = []
    numbers, rows = Numbers(), dict[int, int]()
    readings: dict[int, TrialReadings] = {}
    for each in trials:
        trial = each
        if trial.valid:
            try:
                metrics = trial.metrics
            except (StreamGaugeError, OSError) as error:
                trial = trial.damaged(str(error))
            else:
                assert metrics is not None
                rows[id(trial)] = numbers.add(metrics)
                readings[id(trial)] = TrialReadings(
                    metrics.scenario,
                    metrics.mode,
                    metrics.seed,
                    metrics.valid,
                    metrics.why,
                    take(metrics, wanted),
                    partial(getattr, trial, "metrics"),
                )
        found.append(trial)
        count.one()
    group = Group(scenario, mode, tuple(found))
    group = replace(group, read=numbers.of([rows[id(trial)] for trial in group.valid]))
    # While the trials are still in memory.
    group.read_stretches(
        stretch
        for name, info in group.numbers.infos.items()
        if info.role == "subject" and not info.is_ping and (beside := group.phases(name)) is not None
        for stretch in spoken_stretches(name, beside)
    )
    return group, readings


def _as_checked(group: Group, readings: Mapping[int, TrialReadings]) -> list[TrialReadings | InvalidTrial]:
    """Returns the trials as checks read them: of a repetition's invalid trials one at most."""
    found: list[TrialReadings | InvalidTrial] = []
    counted = set(map(id, group.valid))
    for trial in group.trials:
        by = group.replaced_by(trial)
        if id(trial) in counted:
            found.append(readings[id(trial)])
        elif not trial.valid and (trial.replaces is None or by is not None):
            found.append(InvalidTrial(trial.scenario, trial.mode, trial.seed, trial.why, by))
    return found


_BRIEF_S = 3.0
"""Shorter sending is a burst."""
_CLASSES = ("no", "little", "medium", "heavy", "burst")
"""Hessler and Welzl's classes of cross traffic in their own order."""


def _order(entry: Entry) -> tuple[object, ...]:
    # UDP before TCP: a reacting flow follows the one that it is compared with.
    id_ = str(entry.scenario.get("id") or entry.id)
    stem, _, last = id_.replace("-udp", "-\0udp").rpartition("-")
    order = (stem, _CLASSES.index(last)) if last in _CLASSES else (f"{stem}-{last}", -1)
    return (not id_.startswith("today/"), *order, sorting(entry.settings))
