"""What a report is made of: trials, gathered by scenario and mode."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.checks import CheckResult, InvalidTrial, evaluate_all
from streamgauge.claims.dimension import Dimension, show
from streamgauge.errors import RecordError, StreamGaugeError
from streamgauge.metrics import METRICS, Interval, TrialMetrics, interval
from streamgauge.metrics.compute import compute
from streamgauge.metrics.result import Series
from streamgauge.scenario.settings import named, set_folder, sorting


@dataclass(frozen=True)
class LoadedTrial:
    """One trial: `header` is trial.json; `metrics` is None if the trial left nothing to measure."""

    header: Mapping[str, Any]
    provenance: Mapping[str, Any]
    metrics: TrialMetrics | None
    directory: Path | None = None
    damage: str | None = None
    """What is wrong with its files, if they are not what was written."""

    @property
    def scenario(self) -> str:
        """The scenario's id."""
        found = self.header.get("scenario") or {}
        return str(found.get("id", "") if isinstance(found, Mapping) else found)

    @property
    def settings(self) -> tuple[str, ...]:
        """What was set where it ran, ``ADDRESS=VALUE``: trials of one set belong together."""
        return tuple(self.header.get("set_with") or self.header.get("set") or ())

    @property
    def replaces(self) -> int | None:
        """The seed of the invalid trial for which it stands."""
        found = self.header.get("replaces")
        return None if found is None else int(found)

    @property
    def mode(self) -> str:
        """``sim`` or ``emu``."""
        return str(self.header.get("mode", ""))

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.header.get("seed", 0))

    @property
    def validity(self) -> Mapping[str, Any]:
        """The verdict with its bounds and measured values."""
        return self.header.get("validity") or {}

    @property
    def valid(self) -> bool:
        """Whether it may be averaged in."""
        return bool(self.validity.get("valid", True)) and self.metrics is not None

    @property
    def why(self) -> tuple[str, ...]:
        """Why it is not valid."""
        return tuple(str(reason) for reason in self.validity.get("why") or ())


@dataclass(frozen=True)
class Group:
    """The trials of one scenario in one mode."""

    scenario: str
    mode: str
    trials: tuple[LoadedTrial, ...]

    @cached_property
    def valid(self) -> list[TrialMetrics]:
        """Metrics of the valid trials, by seed; of a repetition one."""
        return [trial.metrics for trial in self.trials if self._counts(trial) and trial.metrics is not None]

    def _counts(self, trial: LoadedTrial) -> bool:
        """Valid, and not in the place of a trial that has become valid since."""
        return trial.valid and not any(one.valid and one.seed == trial.replaces for one in self.trials)

    def replaced_by(self, trial: LoadedTrial) -> int | None:
        """The seed of the valid trial that stands for an invalid one."""
        if trial.valid:
            return None
        whose = trial.seed if trial.replaces is None else trial.replaces
        standing = (one.seed for one in self.trials if one.valid and whose in (one.replaces, one.seed))
        return next(standing, None)

    @property
    def measured(self) -> list[TrialMetrics | InvalidTrial]:
        """The trials as checks read them: of a repetition's invalid trials one at most."""
        found: list[TrialMetrics | InvalidTrial] = []
        for trial in self.trials:
            by = self.replaced_by(trial)
            if self._counts(trial) and trial.metrics is not None:
                found.append(trial.metrics)
            elif not trial.valid and (trial.replaces is None or by is not None):
                found.append(InvalidTrial(trial.scenario, trial.mode, trial.seed, trial.why, by))
        return found

    @property
    def shown(self) -> TrialMetrics | None:
        """The trial whose time series is drawn: the valid one with the lowest seed."""
        return self.valid[0] if self.valid else None

    def over(
        self, metric: str, subject: str = "", begin_s: float | None = None, end_s: float | None = None
    ) -> Interval | None:
        """A metric's mean and interval over the valid trials; None if no trial has it."""
        return self.over_each(lambda trial: trial.value(metric, subject, begin_s, end_s))

    def over_each(self, measure: Callable[[TrialMetrics], float]) -> Interval | None:
        """Mean and interval of anything measured per trial; see `mean_over`."""
        return mean_over(self.valid, measure)

    def transfers(self, flow: str) -> list[Series]:
        """How many of a flow's short transfers completed, of each valid trial; empty if it has none."""
        mine = (trial.flows[flow].series for trial in self.valid if flow in trial.flows)
        return [series["transfers"] for series in mine if "transfers" in series]

    def say(
        self, metric: str, subject: str = "", begin_s: float | None = None, end_s: float | None = None
    ) -> str:
        """`over` in words: ``546 ± 6 kbit/s``; ``not known`` if there is nothing."""
        found = self.over(metric, subject, begin_s, end_s)
        return NOT_KNOWN if found is None else say_mean(found, metric)


NOT_KNOWN = "not known"
"""Stands for a number that there is none of, which is not 0."""


def mean_over(trials: Iterable[TrialMetrics], measure: Callable[[TrialMetrics], float]) -> Interval | None:
    """Mean and interval of anything measured per trial; trials that have no value are left out, None if none
    has."""
    values = []
    for trial in trials:
        try:
            value = measure(trial)
        except (KeyError, ValueError):
            continue
        if np.isfinite(value):
            values.append(value)
    return interval(values) if values else None


def say_mean(found: Interval, metric: str, digits: int = 3) -> str:
    """A metric's mean with half its interval, ``245 ± 1.2 kbit/s``; see `say_half`."""
    return say_half(found, METRICS[metric].dimension, digits, signed=METRICS[metric].signed)


def say_half(found: Interval, dimension: Dimension, digits: int = 3, *, signed: bool = True) -> str:
    """A mean with half its interval; without it if nothing varied, n is 1, or the digits do not show it.
    Where a quantity that is not `signed` would reach below zero, its interval's ends: ``1.0 [0, 2.7] %``."""
    return str(show(found.mean, found.half_width, dimension, digits, signed=signed))


@dataclass(frozen=True)
class Entry:
    """One scenario of the report, with its trials in each mode."""

    id: str
    """The scenario's, with what was set: ``my/download (path.down.rate=2Mbit/s)``."""
    scenario: Mapping[str, Any]
    """In normalised form, as it was run."""
    plan: Mapping[str, Any]
    groups: tuple[Group, ...]
    checks: tuple[CheckResult, ...]
    settings: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The id as a name in links and of files."""
        return re.sub(r"[^A-Za-z0-9._]+", "-", self.id).strip("-")

    @property
    def source(self) -> Mapping[str, Any]:
        """Where the experiment comes from; empty if it is nobody's but ours."""
        return self.scenario.get("source") or {}

    def group(self, mode: str) -> Group | None:
        """Its trials in one mode."""
        return next((group for group in self.groups if group.mode == mode), None)

    @property
    def best(self) -> Group:
        """The mode that answers: emulation, where it has a valid trial, else simulation."""
        usable = [group for group in self.groups if group.valid]
        emulated = [group for group in usable if group.mode == "emu"]
        return (emulated or usable or list(self.groups))[0]

    def names(self, role: str) -> list[str]:
        """Its flows of a role, probes left out."""
        shown = next((group.shown for group in self.groups if group.shown), None)
        if shown is None:
            flows = self.scenario.get("flows") or {}
            return [name for name, flow in flows.items() if flow.get("role") == role]
        return [
            name for name, flow in shown.flows.items() if flow.info.role == role and not flow.info.is_ping
        ]


def labels(ids: Sequence[str]) -> dict[str, str]:
    """What tells scenarios apart, in short: the end of each id, after a slash or dash, that no other has."""
    found = {}
    for id_ in ids:
        # What was set, in parentheses, is not taken apart.
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


def trial_folders(directory: Path) -> list[Path]:
    """Every whole trial under a folder, but those of `left_out`."""
    return [folder for folder in _whole(directory) if _apart(folder.relative_to(directory)) is None]


def left_out(directory: Path) -> dict[Path, int]:
    """Folders that are reported by themselves, with how many trials each holds: what a scenario was before it
    was changed (``earlier``), a paper's presets (``set-...``), mutants and alternatives (``variations``).
    """
    apart = [_apart(folder.relative_to(directory)) for folder in _whole(directory)]
    return {directory / place: count for place, count in Counter(filter(None, apart)).items()}


def _whole(directory: Path) -> list[Path]:
    folders = sorted({path.parent for path in directory.rglob("trial.json")})
    return [folder for folder in folders if not any(part.endswith(".partial") for part in folder.parts)]


def _apart(place: Path) -> Path | None:
    """The outermost folder above a trial that is reported by itself."""
    for depth, part in enumerate(place.parts, 1):
        if part == "earlier":
            return Path(*place.parts[: depth + 1])
        if part == "variations" or part.startswith("set-"):
            return Path(*place.parts[:depth])
    return None


def load(directory: Path) -> list[LoadedTrial]:
    """Every trial of `trial_folders`, measured.

    Raises:
        RecordError: if there is none, or if trials of one id are not of one scenario.
    """
    folders = trial_folders(directory)
    if not folders:
        raise RecordError(f"{directory} holds no trial; run one first: streamgauge run ID --out {directory}")
    with ThreadPoolExecutor(max_workers=2) as pool:
        trials = list(pool.map(load_trial, folders))
    _alike(trials)
    return trials


def _alike(trials: Sequence[LoadedTrial]) -> None:
    """Trials that would be averaged must be repetitions of one another."""
    first: dict[tuple[Path, str, str], LoadedTrial] = {}
    for trial in trials:
        other = first.setdefault((set_folder(trial.settings), trial.scenario, trial.mode), trial)
        ours, theirs = trial.header.get("scenario"), other.header.get("scenario")
        if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
            continue
        differ = [key for key in ("path", "flows", "until") if ours.get(key) != theirs.get(key)]
        if differ:
            raise RecordError(
                f"{trial.directory} and {other.directory} are of one scenario by name, but differ in "
                f"{', '.join(differ)}; report each run's folder alone, or remove the older."
            )


def load_trial(folder: Path) -> LoadedTrial:
    """One trial, measured. One whose record is not what was written is kept as invalid, with the reason.

    Raises:
        RecordError: if its trial.json cannot be read, which says whose trial it is.
    """
    from streamgauge.campaign.stored import load_metrics
    from streamgauge.record import Record

    header = _header(folder / "trial.json")
    provenance_file = folder / "provenance.json"
    provenance = json.loads(provenance_file.read_text(encoding="utf-8")) if provenance_file.exists() else {}
    try:
        scenario = header.get("scenario")
        measure = scenario.get("measure") or {} if isinstance(scenario, Mapping) else {}
        record = Record.open(folder)
        # Kept metrics tell nothing about a record that was damaged since; a million rows take 0.1 s.
        record.verify()
        metrics = load_metrics(folder, measure) or compute(record)
    except (StreamGaugeError, OSError) as error:
        validity = {**(header.get("validity") or {}), "valid": False}
        validity["why"] = [*(validity.get("why") or []), str(error)]
        return LoadedTrial({**header, "validity": validity}, provenance, None, folder, str(error))
    return LoadedTrial(header, provenance, metrics, folder)


def _header(file: Path) -> dict[str, Any]:
    try:
        header = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(header, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{file}: damaged ({error}); run the trial again, or remove its folder from the report."
        ) from error
    return header


def gather(trials: Iterable[LoadedTrial], checks: Sequence[CheckResult] | None = None) -> list[Entry]:
    """Trials by scenario, today's systems first, each paper's after.

    Args:
        trials: in any order.
        checks: verdicts, if they are known; otherwise every scenario's checks are judged here.
    """
    # The same written otherwise, 2Mbit/s and 2 Mbit/s, is one set, and lies in one folder.
    by_set: dict[Path, list[LoadedTrial]] = {}
    for trial in trials:
        by_set.setdefault(set_folder(trial.settings), []).append(trial)
    entries = [entry for found in by_set.values() for entry in _of_one_set(found, checks)]
    return sorted(entries, key=_order)


def _of_one_set(trials: Sequence[LoadedTrial], checks: Sequence[CheckResult] | None) -> list[Entry]:
    """The scenarios in which the same was set, checks judged among them."""
    settings = trials[0].settings
    by_scenario: dict[str, list[LoadedTrial]] = {}
    for trial in trials:
        by_scenario.setdefault(trial.scenario, []).append(trial)
    headers = {
        name: next((t.header for t in found if t.valid), found[0].header)
        for name, found in by_scenario.items()
    }
    scenarios = {
        name: header["scenario"] if isinstance(header.get("scenario"), Mapping) else {"id": name}
        for name, header in headers.items()
    }
    groups = {name: _groups(name, found) for name, found in by_scenario.items()}
    if checks is None:
        measured = [one for found in groups.values() for group in found for one in group.measured]
        checks = evaluate_all(scenarios.values(), measured, settings=settings)
    entries = []
    for name in by_scenario:
        mine = [check for check in checks if check.scenario == name]
        order = list(dict.fromkeys(check.id for check in mine))
        mine.sort(key=lambda check: (order.index(check.id), check.mode != "sim"))
        id_ = named(name, settings)
        plan = headers[name].get("plan") or {}
        entries.append(Entry(id_, scenarios[name], plan, groups[name], tuple(mine), settings))
    return entries


def _groups(scenario: str, trials: Sequence[LoadedTrial]) -> tuple[Group, ...]:
    """A scenario's trials by mode, sim first, each by seed."""
    modes = sorted({trial.mode for trial in trials}, key=lambda mode: (mode != "sim", mode))
    by_seed = sorted(trials, key=lambda trial: trial.seed)
    return tuple(Group(scenario, mode, tuple(t for t in by_seed if t.mode == mode)) for mode in modes)


_CLASSES = ("no", "little", "medium", "heavy", "burst")
"""Hessler and Welzl's classes of cross traffic in their own order."""


def _order(entry: Entry) -> tuple[object, ...]:
    # Over UDP before over TCP: what reacts comes after what it is compared with.
    id_ = str(entry.scenario.get("id") or entry.id)
    stem, _, last = id_.replace("-udp", "-\0udp").rpartition("-")
    order = (stem, _CLASSES.index(last)) if last in _CLASSES else (f"{stem}-{last}", -1)
    return (not id_.startswith("today/"), *order, sorting(entry.settings))
