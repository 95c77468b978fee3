"""Sweeps: one scenario with several values of some of its addresses, as one table and its figures.

::

    from streamgauge.sweeps import sweep

    frame = sweep("hessler/ftp-medium", {"path.down.queue": ["10 kB", "50 kB"]}, repeat=5)
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.campaign import EmuSettings, Progress
from streamgauge.scenario.lower import Keep
from streamgauge.scenario.over import Axis, parse_overs
from streamgauge.sweeps.points import SweepPoint, Target, points_of
from streamgauge.sweeps.run import FOLDER, SweepResult, run_points
from streamgauge.sweeps.table import SweepRow
from streamgauge.systems.registry import Mode
from streamgauge.units import Quantity

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "FOLDER",
    "SweepPoint",
    "SweepResult",
    "SweepRow",
    "Target",
    "axes_of",
    "points_of",
    "run_points",
    "sweep",
]

Over = Mapping[str, Sequence[Any]] | Iterable[str]
"""Values by address, or the texts of ``--over``."""


def sweep(
    scenario: Target | Sequence[Target],
    over: Over,
    *,
    mode: Mode | None = None,
    repeat: int | None = None,
    seed: int = 1,
    settings: Sequence[str] = (),
    metrics: Sequence[str] = (),
    out: Path | str = "runs",
    keep: Keep = "metrics",
    jobs: int = 1,
    verify: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> pl.DataFrame:
    """Runs a scenario with every combination of some values; returns a tidy frame, a row a metric of a flow.

    Trials that lie in ``out`` already are not run again, so the same call again takes no time.

    Args:
        scenario: an id, a file, a scenario built in Python, or several of these.
        over: values by address, as text, quantities or numbers: ``{"path.down.rate": ["1 Mbit/s", ...]}``; or
            texts as for ``--over``.
        mode: ``sim`` or ``emu``; the first that it supports and this machine can do if ``None``.
        repeat: number of repetitions of each point; each scenario's own number if ``None``.
        seed: the first repetition's.
        settings: further settings, ``ADDRESS=VALUE``.
        metrics: ``METRIC`` or ``METRIC.FLOW``; if none is given those that matter (docs/sweep.md).
        out: folder of the records: each point's where a run with ``--set`` would put them.
        keep: how much of each record is stored.
        jobs: number of concurrent emu trials.
        verify: read existing records in full, and run damaged ones again.
        progress: called after each trial.

    Returns:
        The columns of `streamgauge.sweeps.table.frame_of`.

    Raises ScenarioError that names the invalid values, before anything runs; CannotRunError if the machine
    cannot run it. Ctrl-C raises KeyboardInterrupt; finished trials are kept.
    """
    targets = [scenario] if isinstance(scenario, Target) else list(scenario)
    axes = axes_of(over, settings)
    points = points_of(targets, axes, settings=settings, mode=mode, seed=seed)
    for one in points.left_out:
        at = ", ".join(axis.settings[place] for axis, place in zip(axes, one.at, strict=True))
        warnings.warn(f"left out: {at}: {one.why}", stacklevel=2)
    result = run_points(
        points,
        axes,
        Path(out),
        metrics=metrics,
        first_seed=seed,
        repeat=repeat,
        keep=keep,
        emu=EmuSettings(jobs=jobs),
        verify=verify,
        progress=progress,
    )
    if result.interrupted:
        raise KeyboardInterrupt
    return result.frame()


def axes_of(over: Over, settings: Sequence[str] = ()) -> tuple[Axis, ...]:
    """Returns the axes. Raises ScenarioError, naming ``--over``, for an invalid one."""
    if not isinstance(over, Mapping):
        return parse_overs([over] if isinstance(over, str) else over, settings)
    texts = [f"{address}=[{', '.join(map(_text, values))}]" for address, values in over.items()]
    return parse_overs(texts, settings)


def _text(value: Any) -> str:
    """Returns a value as a setting has it."""
    return str(value) if isinstance(value, str | Quantity) else json.dumps(value)
