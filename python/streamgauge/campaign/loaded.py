"""Trials of a folder: the header of each is in memory, its metrics are on disk until they are read."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamgauge.campaign.stored import FILE, has_metrics, load_metrics
from streamgauge.errors import RecordError, StreamGaugeError
from streamgauge.metrics import TrialMetrics
from streamgauge.metrics.compute import compute
from streamgauge.record import Record
from streamgauge.record.header import REQUIRED, read_object, read_trial
from streamgauge.record.schema import PACKETS
from streamgauge.scenario.settings import set_folder

__all__ = ["LoadedTrial", "left_out", "load", "load_trial", "load_trials", "trial_folders"]

_KEPT_BYTES = 192 * 2**20
"""Most metrics in memory, those read last: some hundred trials, enough for two passes over the repetitions of
a scenario to read them once."""


@dataclass(frozen=True)
class LoadedTrial:
    """One trial: `header` is trial.json, or the needed part of it."""

    header: Mapping[str, Any]
    provenance: Mapping[str, Any]
    held: TrialMetrics | None = field(default=None, repr=False)
    """Its metrics, if they are not in its folder."""
    directory: Path | None = None
    damage: str | None = None
    """Fault of its files, if they are not as written."""

    @property
    def metrics(self) -> TrialMetrics | None:
        """Returns its metrics, from its folder if they are not held; measured anew if they are not kept
        there. None if it left nothing to measure.

        Raises:
            StreamGaugeError: if they can be neither read nor measured.
            OSError: likewise.
        """
        if self.held is not None or self.directory is None or self.damage is not None:
            return self.held
        return _metrics.of(self.directory, self._measure)

    @property
    def _measure(self) -> Mapping[str, Any]:
        scenario = self.header.get("scenario")
        return scenario.get("measure") or {} if isinstance(scenario, Mapping) else {}

    @property
    def plan(self) -> Mapping[str, Any]:
        """Returns the plan of the run; read from its folder if the header lacks it."""
        found = self.header.get("plan")
        if found is None and self.directory is not None:
            found = read_header(self.directory / "trial.json").get("plan")
        return found or {}

    @property
    def scenario(self) -> str:
        """Returns the scenario's id."""
        found = self.header.get("scenario") or {}
        return str(found.get("id", "") if isinstance(found, Mapping) else found)

    @property
    def changed(self) -> tuple[str, ...]:
        """Returns the settings of its run, ``ADDRESS=VALUE``."""
        return tuple(self.header.get("set_with") or self.header.get("set") or ())

    @property
    def settings(self) -> tuple[str, ...]:
        """Returns the settings that distinguish it from other trials of its scenario and mode, and, if it ran
        in a virtual machine, that and its speed, ``machine=virtual:2``. Trials of one set belong together,
        and no others are averaged."""
        machine = self.provenance.get("virtual_machine")
        if machine is None:
            return self.changed
        return (*self.changed, f"machine=virtual:{machine['instructions_per_s'] // 10**9}")

    @property
    def replaces(self) -> int | None:
        """Seed of the invalid trial that it replaces."""
        found = self.header.get("replaces")
        return None if found is None else int(found)

    @property
    def mode(self) -> str:
        """Returns ``sim`` or ``emu``."""
        return str(self.header.get("mode", ""))

    @property
    def seed(self) -> int:
        """Returns its seed."""
        return int(self.header.get("seed", 0))

    @property
    def validity(self) -> Mapping[str, Any]:
        """Returns the verdict with its bounds and measured values."""
        return self.header.get("validity") or {}

    @property
    def valid(self) -> bool:
        """Returns whether it may be averaged in."""
        has_metrics = self.held is not None or (self.directory is not None and self.damage is None)
        return bool(self.validity.get("valid", True)) and has_metrics

    @property
    def why(self) -> tuple[str, ...]:
        """Returns why it is not valid."""
        return tuple(str(reason) for reason in self.validity.get("why") or ())

    def damaged(self, reason: str) -> LoadedTrial:
        """Returns the same as an invalid trial, for this reason."""
        why = [*(self.validity.get("why") or []), reason]
        validity = {**self.validity, "valid": False, "why": why}
        return replace(self, header={**self.header, "validity": validity}, held=None, damage=reason)


class _Metrics:
    """Metrics of the trials that were read last, as many as `_KEPT_BYTES` hold."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, int, str], tuple[TrialMetrics, int]] = OrderedDict()
        self._bytes = 0

    def of(self, directory: Path, measure: Mapping[str, Any]) -> TrialMetrics:
        # A process that repeats a trial writes this file anew.
        key = (directory, (directory / "trial.json").stat().st_mtime_ns, json.dumps(measure))
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        metrics = load_metrics(directory, measure) or _measured_anew(directory)
        size = _size(metrics)
        self._kept[key] = metrics, size
        self._bytes += size
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1][1]
        return metrics


def _measured_anew(directory: Path) -> TrialMetrics:
    record = Record.open(directory)
    if PACKETS not in record.trial.get("kept", ()):
        what = "damaged, or measured otherwise" if has_metrics(directory) else "missing"
        raise RecordError(
            f"{directory / FILE}: {what}, and its packets were not kept to measure it anew; run it again."
        )
    return compute(record)


_metrics = _Metrics()


def _size(metrics: TrialMetrics) -> int:
    """Returns the size of its arrays, which series share, in bytes."""
    arrays = {
        id(array): array.nbytes
        for measured in (*metrics.flows.values(), *metrics.stages.values())
        for series in measured.series.values()
        for array in (series.numerator, series.denominator, series.low, series.high)
        if array is not None
    }
    return sum(arrays.values())


def trial_folders(directory: Path) -> list[Path]:
    """Returns every whole trial under a folder, but those of `left_out`."""
    return [folder for folder in _whole(directory) if _apart(folder.relative_to(directory)) is None]


def left_out(directory: Path) -> dict[Path, int]:
    """Returns folders that are reported by themselves, with the number of trials in each: a scenario before
    its change (``earlier``), a paper's presets (``set-...``), mutants and alternatives (``variations``).
    """
    apart = [_apart(folder.relative_to(directory)) for folder in _whole(directory)]
    return {directory / place: count for place, count in Counter(filter(None, apart)).items()}


def _whole(directory: Path) -> list[Path]:
    folders = sorted({path.parent for path in directory.rglob("trial.json")})
    return [folder for folder in folders if not any(part.endswith(".partial") for part in folder.parts)]


def _apart(place: Path) -> Path | None:
    """Returns the outermost folder above a trial that is reported by itself."""
    for depth, part in enumerate(place.parts, 1):
        if part == "earlier":
            return Path(*place.parts[: depth + 1])
        if part == "variations" or part.startswith("set-"):
            return Path(*place.parts[:depth])
    return None


def load(directory: Path, *, verify: bool = False) -> list[LoadedTrial]:
    """Returns every trial of `trial_folders`; `verify` as in `load_trial`.

    Raises:
        RecordError: if there is none, or if trials of one id are not of one scenario.
    """
    folders = trial_folders(directory)
    if not folders:
        raise RecordError(f"{directory} holds no trial; run one first: streamgauge run ID --out {directory}")
    trials = load_trials(folders, verify=verify)
    _alike(trials)
    return trials


def load_trials(folders: Iterable[Path], *, verify: bool = False) -> list[LoadedTrial]:
    """Returns `load_trial` of many; equal parts are in memory once."""
    shared = _Shared()
    return [load_trial(folder, verify=verify, shared=shared) for folder in folders]


def _alike(trials: Sequence[LoadedTrial]) -> None:
    """Trials that would be averaged must be repetitions of one another."""
    first: dict[tuple[Path, str, str], LoadedTrial] = {}
    for trial in trials:
        other = first.setdefault((set_folder(trial.settings), trial.scenario, trial.mode), trial)
        ours, theirs = trial.header.get("scenario"), other.header.get("scenario")
        if ours is theirs or not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
            continue
        differ = [key for key in ("path", "flows", "until") if ours.get(key) != theirs.get(key)]
        if differ:
            raise RecordError(
                f"{trial.directory} and {other.directory} have one scenario's name and differ in "
                f"{', '.join(differ)}; report each folder alone, or remove the older."
            )


_NEEDED = (
    "scenario", "mode", "seed", "replaces", "validity", "set", "set_with", "model_version", "systems",
    "observed",
)  # fmt: skip
"""Keys of trial.json: plan and counts are far larger than all of these."""


class _Shared:
    """Equal parts of trials, once in memory."""

    def __init__(self) -> None:
        self._scenarios: dict[Any, list[Any]] = {}
        self._texts: dict[str, str] = {}

    def header(self, header: Mapping[str, Any]) -> dict[str, Any]:
        found = {key: self.of(header[key]) for key in _NEEDED[1:] if key in header}
        if "scenario" in header:
            scenario = header["scenario"]
            id_ = scenario.get("id") if isinstance(scenario, Mapping) else scenario
            known = self._scenarios.setdefault(str(id_), [])
            same = next((one for one in known if one == scenario), None)
            if same is None:
                known.append(scenario)
            found["scenario"] = scenario if same is None else same
        return found

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._texts.setdefault(value, value)
        if isinstance(value, dict):
            return {self._texts.setdefault(key, key): self.of(inner) for key, inner in value.items()}
        return [self.of(inner) for inner in value] if isinstance(value, list) else value


def load_trial(folder: Path, *, verify: bool = False, shared: _Shared | None = None) -> LoadedTrial:
    """Returns one trial, its metrics left in its folder until they are asked for.

    Files are checked as by `Record.open`; `verify` recomputes the digests of all that they hold. A trial with
    a damaged record is kept as invalid, with the reason.

    Raises:
        RecordError: if its trial.json, which identifies the trial, cannot be read.
    """
    shared = shared or _Shared()
    header = shared.header(read_header(folder / "trial.json"))
    provenance_file = folder / "provenance.json"
    provenance, damage = {}, ""
    try:
        provenance = read_object(provenance_file) if provenance_file.exists() else {}
    except RecordError as error:
        damage = str(error)
    trial = LoadedTrial(header, shared.of(provenance), directory=folder)
    if damage:
        return trial.damaged(damage)
    try:
        record = Record.open(folder)
        if verify:
            record.verify()
    except (StreamGaugeError, OSError) as error:
        return trial.damaged(str(error))
    return trial


def read_header(file: Path) -> dict[str, Any]:
    """Returns a trial.json. Raises RecordError if it is damaged."""
    return read_trial(file, REQUIRED)
