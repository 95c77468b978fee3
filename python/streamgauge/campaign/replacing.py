"""Further seeds in the place of invalid emu trials.

Each repetition has a line of seeds of its own: its seed, then that plus `STEP`, plus twice `STEP`, and so on.
The choice of a replacing seed therefore depends neither on the number of repetitions nor on their order. The
record of a replacing trial names the other (``replaces``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from streamgauge.campaign.index import Index
from streamgauge.campaign.layout import seed_of
from streamgauge.campaign.plan import Job, resume_key
from streamgauge.campaign.trial import Outcome, reuse
from streamgauge.checks import Leaves
from streamgauge.errors import RecordError
from streamgauge.record.header import read_trial
from streamgauge.scenario.lower import Keep

__all__ = ["STEP", "as_left", "further", "in_order"]

STEP: Final = 1_000_000
"""From one seed of a repetition's line to the next."""


def further(job: Job, taken: Iterable[Path]) -> Job:
    """Returns the trial in the place of an invalid one: the next seed of its repetition's line.

    ``taken`` are the places of the repetitions themselves, which replace nothing; a user's own trial under
    such a seed does not either.
    """
    own = set(taken)
    line = job.seed if job.replaces is None else job.replaces
    for seed in itertools.count(job.seed + STEP, STEP):
        place = job.directory.with_name(f"seed={seed}")
        header = _header(place)
        if place not in own and (header is None or header.get("replaces") == line):
            break
    return _with_seed(job, seed)


def _with_seed(job: Job, seed: int) -> Job:
    return replace(
        job,
        seed=seed,
        directory=job.directory.with_name(f"seed={seed}"),
        key=resume_key(job.scenario, job.mode, seed),
        replaces=job.seed if job.replaces is None else job.replaces,
    )


def as_left(
    job: Job,
    keep: Keep,
    taken: Iterable[Path],
    leaves: Leaves | None = None,
    *,
    index: Index | None = None,
    verify: bool = False,
) -> list[Outcome] | None:
    """Returns a repetition's trials as they lie there, if one of them is valid; ``None`` if it must run.

    An invalid emu trial with a replacing seed stays as it is. One without runs again: the machine was at
    fault, which proves nothing about its outcome. The other arguments are those of `reuse`.
    """

    def left(one: Job) -> Outcome | None:
        return reuse(one, keep, leaves, index=index, verify=verify, invalid_too=True)

    found = left(job)
    if job.mode == "sim" or (found is not None and found.valid):
        return None if found is None else [found]
    line = [found] if found is not None else []
    for seed in sorted(_standing_for(job, set(taken))):
        other = left(_with_seed(job, seed))
        if other is not None:
            line.append(other)
    return line if any(outcome.valid for outcome in line) else None


def _standing_for(job: Job, own: set[Path]) -> Iterator[int]:
    """Yields seeds of the records that replace a repetition's."""
    for folder in job.directory.parent.glob("seed=*"):
        if folder in own or folder == job.directory:
            continue
        header = _header(folder)
        if header is not None and header.get("replaces") == job.seed:
            yield seed_of(folder)


def _header(folder: Path) -> dict[str, Any] | None:
    try:
        return read_trial(folder / "trial.json")
    except RecordError:
        return None


def in_order(jobs: Sequence[Job], lines: Mapping[Job, Sequence[Outcome]]) -> list[Outcome]:
    """Returns each repetition's trials in turn; a replaced one names its replacement."""
    found: list[Outcome] = []
    for job in jobs:
        line = lines.get(job, ())
        by = next((outcome.job.seed for outcome in line if outcome.valid), None)
        found += [outcome if outcome.valid else replace(outcome, replaced_by=by) for outcome in line]
    return found
