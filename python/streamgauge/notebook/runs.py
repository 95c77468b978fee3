"""`Runs`: trials, and the queries on them."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, overload

import polars as pl

from streamgauge.campaign.loaded import LoadedTrial
from streamgauge.campaign.loaded import left_out as folders_left_out
from streamgauge.campaign.loaded import load as load_folder
from streamgauge.checks import CheckResult
from streamgauge.compare.metrics import COMPARED
from streamgauge.errors import RecordError, StreamGaugeError
from streamgauge.notebook import frames
from streamgauge.notebook.finding import settings_of
from streamgauge.notebook.judged import Checks
from streamgauge.notebook.markup import html_lines, html_table, once, text_table
from streamgauge.record import Record
from streamgauge.report import Entry, answer_of, build, gather
from streamgauge.report.model import NOT_KNOWN, Group, labels
from streamgauge.scenario.settings import named, set_folder, sorting
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.notebook.compared import ComparedRuns
    from streamgauge.notebook.plots import Plots

__all__ = ["Answers", "Runs", "load", "open_record"]

_MOST_READ: Final = 200
"""Most trials with metrics that are read only for display."""
_MOST_ROWS: Final = 40
_SHOWN_METRICS: Final = (
    "goodput", "loss", "queue_delay", "startup_delay", "frozen_share", "rebuffer_ratio", "qoe_lin", "level",
    "frames_lost", "completion_time",
)  # fmt: skip
"""In tables, those that any flow has."""


class Answers(str):
    """Sentences, shown as they read."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<div class="streamgauge" style="white-space:pre-wrap;max-width:60em">{escape(self)}</div>'


class Runs(Sequence[LoadedTrial]):
    """Trials of one campaign: a sequence of them, and tables, verdicts and figures of all.

    The header of a trial is in memory, the rest in its folder until it is read. Numbers are those of the
    trials that count, one valid trial a repetition; `trials` lists all, with why some do not.
    """

    def __init__(
        self,
        trials: Iterable[LoadedTrial],
        *,
        where: Path,
        checks: Sequence[CheckResult] | None = None,
        asked: Collection[str] = (),
        notes: Iterable[str] = (),
    ) -> None:
        self.where = where
        """The folder that they are from."""
        self._asked = tuple(asked)
        self._trials = tuple(sorted(trials, key=self._order))
        self._checks = checks
        self._notes = tuple(notes)

    def _order(self, trial: LoadedTrial) -> tuple[object, ...]:
        """Returns the sort key: by scenario, requested ones first and in their order; settings; mode and
        seed."""
        asked = self._asked.index(trial.scenario) if trial.scenario in self._asked else len(self._asked)
        return asked, trial.scenario, sorting(trial.settings), trial.mode != "sim", trial.seed

    @overload
    def __getitem__(self, index: int) -> LoadedTrial: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> LoadedTrial | Runs:
        return self._of(self._trials[index]) if isinstance(index, slice) else self._trials[index]

    def __len__(self) -> int:
        return len(self._trials)

    def _of(self, trials: Iterable[LoadedTrial]) -> Runs:
        """Some of them; checks are judged anew, as they are of all repetitions."""
        return Runs(trials, where=self.where, asked=self._asked)

    def only(
        self, scenario: str = "*", *, mode: Mode | None = None, set: Mapping[str, object] | None = None
    ) -> Runs:
        """Returns those of some scenarios.

        Args:
            scenario: an id or a glob of ids, such as ``"today/demo-*"``.
            mode: ``"sim"`` or ``"emu"``; both if None.
            set: settings, such as ``{"path.down.rate": "2 Mbit/s"}``, or a glob of it, ``"*"``; spaces do not
                matter. None is for an address that was not set.

        Raises:
            StreamGaugeError: if there is none, with the existing ones.
        """
        wanted = _spelt(settings_of({at: value for at, value in (set or {}).items() if value is not None}))
        without = {address for address, value in (set or {}).items() if value is None}

        def fits(one: LoadedTrial) -> bool:
            said = _spelt(one.settings)
            return (
                fnmatch.fnmatchcase(one.scenario, scenario)
                and mode in (None, one.mode)
                and all(_fits(said.get(address), value) for address, value in wanted.items())
                and without.isdisjoint(said)
            )

        found = [one for one in self._trials if fits(one)]
        if not found:
            there = dict.fromkeys(f"{named(one.scenario, one.settings)} {one.mode}" for one in self._trials)
            raise StreamGaugeError(f"no trial is of such a scenario; there are {', '.join(there) or 'none'}")
        return self._of(found)

    # Their headers.

    @cached_property
    def groups(self) -> list[tuple[str, Group]]:
        """Returns the repetitions of each scenario, set and mode, with their short names."""
        found: dict[tuple[str, Path, str], list[LoadedTrial]] = {}
        for one in self._trials:
            # The same written otherwise, 2Mbit/s and 2 Mbit/s, is one set.
            found.setdefault((one.scenario, set_folder(one.settings), one.mode), []).append(one)
        called = [named(mine[0].scenario, mine[0].settings) for mine in found.values()]
        short = labels(list(dict.fromkeys(called)))
        several = len({mode for *_, mode in found}) > 1
        return [
            (short[name] + (f", {mode}" if several else ""), Group(name, mode, tuple(mine)))
            for name, ((*_, mode), mine) in zip(called, found.items(), strict=True)
        ]

    @cached_property
    def _counted(self) -> tuple[LoadedTrial, ...]:
        """Returns the trials that count, in order."""
        counted = {id(one) for _, group in self.groups for one in group.valid}
        return tuple(one for one in self._trials if id(one) in counted)

    def _chosen(self, invalid: bool) -> tuple[LoadedTrial, ...]:
        return self._trials if invalid else self._counted

    def trials(self) -> pl.DataFrame:
        """Returns all trials, a row each: whether it is valid and, if not, ``why``; the seed that it
        ``replaces`` or that it is ``replaced_by``; how much of its record was ``kept``; its ``directory``."""
        place = {id(one): at for at, one in enumerate(self._trials)}
        replaced = {
            place[id(one)]: by
            for _, group in self.groups
            for one in group.trials
            if (by := group.replaced_by(one)) is not None
        }
        return frames.trials_frame(self._trials, replaced)

    @cached_property
    def entries(self) -> list[Entry]:
        """Returns the scenarios as the report has them: each with its trials, checks and small numbers."""
        return gather(self._trials, self._checks)

    def checks(self) -> Checks:
        """Returns the verdicts of all checks, in every mode."""
        return Checks(check for entry in self.entries for check in entry.checks)

    def answer(self) -> Answers:
        """Returns the answer to each question, in sentences."""
        asked = [
            entry for entry in self.entries if not self._asked or entry.scenario.get("id") in self._asked
        ]
        return Answers(answer_of(asked))

    # Tables.

    def metrics(self, *names: str, flow: str | None = None, invalid: bool = False) -> pl.DataFrame:
        """Metrics over the measurement window: a row a metric of a flow, a stage or a trial.

        Columns: ``scenario``, one for each address that was set, ``mode``, ``seed``, ``valid``, ``flow`` and
        its ``role`` (``subject``, or ``rival`` for cross traffic), ``stage``, ``metric``, ``value``,
        ``unit``, and ``min`` and ``max``, the extremes in the window where they are known. Values are in
        canonical units, the same for all rows of a metric: bit/s, s, bit, packets; a percentage is a fraction
        with unit 1. Null is nothing to measure.

        Args:
            names: only these metrics (docs/metrics.md lists them); all if none is given.
            flow: only this flow's.
            invalid: with the trials that do not count: ``valid`` is false, or another replaces them.

        Raises:
            StreamGaugeError: if there is no such metric or flow.
        """
        return frames.measured(self._chosen(invalid), names, flow)

    def series(
        self, metric: str, flow: str | None = None, stage: str | None = None, *, invalid: bool = False
    ) -> pl.DataFrame:
        """Returns a metric over time: a row a sample of a flow, a stage or a trial.

        Columns: those of `metrics` up to ``valid``, then ``flow``, ``stage``, ``metric``, ``begin_s`` and
        ``end_s`` of the sample, ``value`` in the canonical ``unit``; null where there is nothing to measure.

        Raises:
            StreamGaugeError: if there is no such metric or flow, or the metric has no course in time.
        """
        return frames.over_time(self._chosen(invalid), metric, flow, stage)

    def events(self, *names: str, flow: str | None = None, invalid: bool = False) -> pl.DataFrame:
        """Returns the events of players, servers and the path, from trials that were kept with their events.

        Columns: those of `metrics` up to ``valid``, then ``flow`` (null: the path's), ``name``, ``time_s``
        since the trial's start, ``value``, ``unit``, ``reason``.

        Raises:
            RecordError: if no trial was kept with its events.
            StreamGaugeError: if there is no such flow.
        """
        return frames.events(self._chosen(invalid), names, flow)

    def record(self, *, scenario: str = "*", mode: Mode | None = None, seed: int | None = None) -> Record:
        """Returns the record of one trial, with ``packets`` and ``events`` as polars frames; the first that
        fits.

        Raises:
            StreamGaugeError: if no trial fits.
        """
        for one in self.only(scenario, mode=mode):
            if seed in (None, one.seed) and one.directory is not None:
                return Record.open(one.directory)
        seeds = ", ".join(str(one.seed) for one in self.only(scenario, mode=mode))
        raise StreamGaugeError(f"no trial of that scenario has seed {seed}; there are {seeds}")

    def compare(
        self,
        *others: Runs,
        baseline: str | None = None,
        by: str | None = None,
        metrics: Sequence[str] = (),
        flow: str | None = None,
    ) -> ComparedRuns:
        """Returns the best, by how much, how sure: subjects against a baseline, like with like alone.

        Args:
            others: trials of other folders; each folder is then a subject, called by its path.
            baseline: the subject that is the reference of the others; the first if None.
            by: the key that distinguishes subjects: ``"system"``, all parts of the subject (systems, their
                parameters, queues), which compares scenarios that differ in nothing else; ``"scenario"``;
                ``"mode"``; or an address among the settings, such as ``"path.down.rate"``. The first of
                system, a single address among the settings and mode by which there are two subjects if None.
            metrics: only these (`streamgauge.compare.COMPARED`); all that are known if empty.
            flow: the subject flow, if its role does not show it.

        Raises:
            StreamGaugeError: if there are not two subjects, or no such baseline, metric or address.
        """
        from streamgauge.notebook.comparing import compare_trials

        folders: dict[Path, Sequence[LoadedTrial]] = {}
        for one in (self, *others):
            if one.where in folders:
                raise StreamGaugeError(
                    f"{one.where} is given twice; for one folder, by=... names the difference"
                )
            folders[one.where] = one
        return compare_trials(folders, baseline=baseline, by=by, metrics=metrics, flow=flow)

    # Figures and pages.

    @property
    def plot(self) -> Plots:
        """Figures of these trials, as Altair charts."""
        from streamgauge.notebook.plots import Plots

        return Plots(self.groups, self.compare)

    def report(self, out: str | Path) -> Path:
        """Writes the report, one page that needs nothing but itself; returns its file."""
        return build(self._trials, Path(out).expanduser(), checks=self._checks)

    # How they look.

    def _heading(self) -> str:
        valid = len([one for one in self._trials if one.valid])
        count = f"{len(self)} trial{'' if len(self) == 1 else 's'} in {self.where}"
        return count + (", all valid" if valid == len(self) else f", {valid} valid")

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Returns a row a flow of each scenario and mode; of too many trials to read them, a row a
        scenario."""
        rows: list[list[str]] = []
        for _, group in self.groups:
            n, of = len(group.valid), len(group.trials)
            head = [group.scenario, group.mode, f"{n} valid" if n == of else f"{n} of {of} valid"]
            if not n or len(self) > _MOST_READ or not _can_be_read(group):
                rows.append([*head, "", *("" for _ in _SHOWN_METRICS)])
                continue
            for name, info in group.numbers.infos.items():
                told = [group.say(metric, name) for metric in _SHOWN_METRICS]
                beside = "" if info.role == "subject" else " (cross traffic)"
                rows.append([*head, f"{name}{beside}", *("" if one == NOT_KNOWN else one for one in told)])
        called = [COMPARED[one].short if one in COMPARED else one.replace("_", " ") for one in _SHOWN_METRICS]
        headings = ["scenario", "mode", "trials", "flow", *called]
        shown = [at for at in range(len(headings)) if at < 3 or any(row[at] for row in rows)]
        kept = [[row[at] for at in shown] for row in rows[:_MOST_ROWS]]
        return [headings[at] for at in shown], once(kept, 3)

    def _remarks(self) -> list[str]:
        """Returns why trials are invalid, and other remarks."""
        said = []
        for _, group in self.groups:
            reasons = dict.fromkeys(reason for one in group.trials if not one.valid for reason in one.why)
            if reasons:
                said.append(f"{group.scenario} {group.mode}, invalid: {'; '.join(list(reasons)[:3])}")
        more = len(self.groups) - _MOST_ROWS
        if more > 0:
            said.append(f"and more, {len(self.groups)} scenarios and modes in all; trials() lists them")
        return [*said, *self._notes]

    def __repr__(self) -> str:
        headings, rows = self._table()
        return "\n".join(filter(None, [self._heading(), text_table(headings, rows), *self._remarks()]))

    def _repr_html_(self) -> str:
        headings, rows = self._table()
        before = html_lines([self._heading()])
        return html_table(headings, rows, before=before, after=html_lines(self._remarks(), faint=True))


def _fits(said: str | None, wanted: str) -> bool:
    return said is not None and (said == wanted or fnmatch.fnmatchcase(said, wanted))


def _can_be_read(group: Group) -> bool:
    """Returns whether all metrics of its trials can be read; a display must not fail."""
    try:
        return len(group.numbers) > 0
    except (StreamGaugeError, OSError):
        return False


def _spelt(settings: Iterable[str]) -> dict[str, str]:
    """Returns the settings, by address, without spaces."""
    return {address: "".join(value.split()) for address, _, value in (one.partition("=") for one in settings)}


def load(folder: str | Path = "runs", *, verify: bool = False) -> Runs:
    """Returns every trial below a folder, in sim and emu, valid or not.

    Trials of earlier versions of a scenario (``earlier``) and of mutants and alternatives (``variations``)
    are left out, with a message; name such a folder by itself.

    Args:
        folder: a folder that `run` or ``streamgauge run`` wrote, or one with such below it, or one trial's.
        verify: read every record in full, and count damaged ones as invalid.

    Raises:
        RecordError: if no trial lies there, one's ``trial.json`` is damaged, or trials of one id are not of
            one scenario.
    """
    where = Path(folder).expanduser()
    if not where.is_dir():
        raise RecordError(
            f"{where}: there is no such folder; streamgauge.run(..., out={str(folder)!r}) makes it."
        )
    trials = load_folder(where, verify=verify)
    apart = [f"{count} in {place}" for place, count in folders_left_out(where).items()]
    return Runs(trials, where=where, notes=[f"left out: {', '.join(apart)}"] if apart else [])


def open_record(folder: str | Path) -> Record:
    """Returns the record in one trial's folder: its ``packets`` and ``events`` as polars frames,
    `Record.verify` and `Record.replay`.

    Raises:
        RecordError: naming the file that is missing, cut short, of an unknown version or another trial's.
    """
    return Record.open(Path(folder).expanduser())
