"""`run` and `sweep`: campaigns from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Final, Literal, get_args

import polars as pl

from streamgauge import campaign, sweeps
from streamgauge.campaign import EmuSettings, Progress
from streamgauge.campaign.loaded import load_trials
from streamgauge.campaign.machine import ModeChoice, choose_mode
from streamgauge.errors import ScenarioError, StreamGaugeError
from streamgauge.notebook.bar import ProgressBar
from streamgauge.notebook.finding import Asked, settings_of, targets_of, wanted
from streamgauge.notebook.runs import Runs
from streamgauge.scenario import Scenario, lower
from streamgauge.scenario.lower import Keep
from streamgauge.scenario.settings import set_folder
from streamgauge.systems.registry import Mode

__all__ = ["REPLACE", "run", "sweep"]

REPLACE: Final = 2
"""Default number of further seeds that may replace an invalid trial of emu: as on the command line."""


def run(
    what: Asked,
    *,
    mode: Mode | None = None,
    repeat: int | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    out: str | Path = "runs",
    keep: Keep = "packets",
    jobs: int = 1,
    replace: int | None = None,
    way: Literal["root", "user"] | None = None,
    verify: bool = False,
    progress: bool | Callable[[Progress], None] = True,
) -> Runs:
    """Runs scenarios and judges their checks, as ``streamgauge run`` does.

    Equal trials in `out` are not run again: the same call continues after an interruption, which keeps
    finished trials.

    Args:
        what: an id of the catalogue, a glob of ids, a file, a `Scenario`, or several of these.
        mode: ``"sim"`` or ``"emu"``; the first that a scenario supports and this machine can do if None.
        repeat: repetitions, each with the next seed; each scenario's own number if None.
        seed: of the first repetition, 1 if None; given without `repeat` it is one trial.
        set: changes, from address to value, such as ``{"path.down.rate": "2 Mbit/s"}``. Such trials are in a
            folder of `out` that is named by it.
        out: folder of the records.
        keep: how much of each record is stored: ``"packets"`` is all, ``"events"`` leaves packets out,
            ``"metrics"`` both.
        jobs: emu trials at the same time; sim uses all cores by itself.
        replace: further seeds that may replace an invalid trial of emu; 2 if None, 0 where `seed` is given.
        way: emu's sandbox, as ``"root"`` or as an ordinary ``"user"``; by the current user if None.
        verify: read existing trials in full, and run damaged ones again.
        progress: a bar below the cell or on the terminal for runs of more than a second, none if False; or a
            function that receives the progress.

    Returns:
        The trials of the requested scenarios, and of those that their checks read.

    Raises:
        ScenarioError: if a scenario does not exist or is invalid; with file, line and key.
        CannotRunError: if this machine cannot, with the remedy.
        StreamGaugeError: for an invalid argument, or a trial that cannot run.
        KeyboardInterrupt: on Ctrl-C or a kernel's "interrupt"; names the kept trials.
    """
    _sound(mode=mode, repeat=repeat, seed=seed, keep=keep, jobs=jobs, replace=replace, way=way)
    settings = settings_of(set)
    scenarios = wanted(what, settings)
    first_seed = 1 if seed is None else int(seed)
    choices = _chosen(scenarios, mode, way, first_seed)
    folder = Path(out).expanduser() / set_folder(settings)
    count = None if repeat is None else int(repeat)
    if seed is not None and repeat is None:
        count = 1
    if replace is None:
        replace = REPLACE if seed is None else 0
    with ProgressBar(progress) as bar:
        result = campaign.run(
            scenarios,
            {name: [chosen.mode] for name, chosen in choices.items()},
            folder,
            first_seed=first_seed,
            repeat=count,
            settings=settings,
            keep=keep,
            emu=EmuSettings(way=way, jobs=jobs, replace=replace),
            verify=verify,
            progress=bar.update,
        )
    if result.interrupted:
        kept = sum(outcome.counts for outcome in result.outcomes)
        raise KeyboardInterrupt(
            f"{kept} of {result.planned} trials are kept in {folder}; the same call goes on from there, and "
            f"streamgauge.load({str(folder)!r}) reads them"
        )
    told = choices.values() if mode is None else ()
    why = dict.fromkeys(f"{chosen.mode}: {chosen.why}" for chosen in told)
    trials = load_trials(outcome.job.directory for outcome in result.outcomes if outcome.digest is not None)
    return Runs(
        trials,
        where=folder,
        checks=result.checks,
        asked=[scenario.id for scenario in scenarios],
        notes=[*why, *(one.words() for one in result.set_aside)],
    )


def sweep(
    what: Asked,
    over: Mapping[str, Sequence[Any]],
    *,
    mode: Mode | None = None,
    repeat: int | None = None,
    seed: int = 1,
    set: Mapping[str, Any] | None = None,
    metrics: Sequence[str] = (),
    out: str | Path = "runs",
    keep: Keep = "metrics",
    jobs: int = 1,
    verify: bool = False,
    progress: bool | Callable[[Progress], None] = True,
) -> pl.DataFrame:
    """Runs scenarios with every combination of some values, as ``streamgauge sweep`` does.

    Each point's trials lie where `run` would put them with the same values set, and those that are there
    already are not run again; `load` and `Runs.compare` read them as any others.

    Args:
        what: as of `run`.
        over: values by address, such as ``{"path.down.rate": ["1 Mbit/s", "2 Mbit/s"]}``.
        mode: as of `run`.
        repeat: repetitions of each point; each scenario's own number if None.
        seed: of each point's first repetition.
        set: changes in all of them.
        metrics: ``METRIC`` or ``METRIC.FLOW``; those that matter if none is given.
        out: as of `run`.
        keep: as of `run`.
        jobs: as of `run`.
        verify: as of `run`.
        progress: as of `run`.

    Returns:
        A row a metric of a flow or stage at a point: its values, ``mean``, ``low`` and ``high`` of the 95 %
        interval, in the ``unit`` of ``--json`` (docs/sweep.md).

    Raises:
        ScenarioError: if a scenario, value or metric is invalid.
        StreamGaugeError: as `run`.
        KeyboardInterrupt: as `run`; finished trials are kept.
    """
    _sound(mode=mode, repeat=repeat, seed=seed, keep=keep, jobs=jobs, replace=None, way=None)
    if not isinstance(over, Mapping):
        raise ScenarioError(
            f"over is {over!r}; it is a mapping from addresses to lists of values",
            hint="such as {'path.down.rate': ['1 Mbit/s', '2 Mbit/s']}",
        )
    with ProgressBar(progress) as bar:
        return sweeps.sweep(
            targets_of(what),
            over,
            mode=mode,
            repeat=None if repeat is None else int(repeat),
            seed=int(seed),
            settings=settings_of(set),
            metrics=metrics,
            out=Path(out).expanduser(),
            keep=keep,
            jobs=jobs,
            verify=verify,
            progress=bar.update,
        )


def _chosen(
    scenarios: Sequence[Scenario], mode: Mode | None, way: str | None, seed: int
) -> dict[str, ModeChoice]:
    """Returns each scenario's mode, by id. Refuses scenarios that cannot be planned, before the first trial
    starts."""
    found = {scenario.id: choose_mode(scenario, mode, way=way) for scenario in scenarios}
    for scenario in scenarios:
        lower(scenario, found[scenario.id].mode, seed)
    return found


def _sound(**arguments: Any) -> None:
    """Raises StreamGaugeError for a word or number that an argument cannot be."""
    words = {"mode": get_args(Mode), "keep": get_args(Keep), "way": ("root", "user")}
    for name, allowed in words.items():
        value = arguments[name]
        if value not in allowed and not (value is None and name != "keep"):
            raise StreamGaugeError(f"{name} is {value!r}; it is one of {', '.join(map(repr, allowed))}")
    for name, least in {"repeat": 1, "seed": 0, "jobs": 1, "replace": 0}.items():
        value = arguments[name]
        if value is None and name != "jobs":
            continue
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise StreamGaugeError(f"{name} is {value!r}; it is a whole number of at least {least}")
