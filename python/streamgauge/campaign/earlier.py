"""A scenario that was changed since its trials ran, or another one with its id: theirs are kept apart.

Trials in one folder are repetitions of one another. Before a campaign runs, those of another experiment,
or of another version of the simulator, of emu or of a system that they use, go to ``OUT/earlier/<n>``,
laid out as ever; a scenario that is changed back finds its own there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamgauge.campaign.index import Index
from streamgauge.campaign.layout import seed_of
from streamgauge.campaign.plan import Job, resume_key, versions_used
from streamgauge.errors import RecordError
from streamgauge.record.header import read_trial
from streamgauge.scenario.recorded import in_todays_words
from streamgauge.scenario.words import as_written
from streamgauge.systems.registry import Mode

__all__ = ["EARLIER", "SetAside", "set_aside"]

EARLIER: Final = "earlier"
_MOST_SAID = 3
"""Most changes that are printed."""


@dataclass(frozen=True)
class SetAside:
    """Trials that were moved out of the way of a campaign."""

    scenario: str
    mode: Mode
    trials: int
    directory: Path
    """Where they are now: a folder as a campaign leaves it."""
    why: str

    def words(self) -> str:
        """In a sentence."""
        count = f"{self.trials} {self.mode} trial{'' if self.trials == 1 else 's'}"
        return f"{count} of an earlier {self.scenario} ({self.why}) are kept in {self.directory}"

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``streamgauge.run/1``."""
        return {
            "scenario": self.scenario,
            "mode": self.mode,
            "trials": self.trials,
            "directory": str(self.directory),
            "why": self.why,
        }


def set_aside(jobs: Sequence[Job], index: Index | None = None) -> list[SetAside]:
    """Moves trials of another scenario than its jobs' out of each folder, and those back that are of theirs.

    Trials of the same scenario with other seeds stay. ``index`` is that of the folder that all lie in. Raises
    OSError if a folder cannot be moved.
    """
    found = []
    by_folder: dict[Path, list[Job]] = {}
    for one in jobs:
        by_folder.setdefault(one.directory.parent, []).append(one)
    for folder, mine in by_folder.items():
        job = mine[-1]
        keys = {one.seed: one.key for one in mine}
        others = [place for place, key in _trials(folder, index) if key != _key(job, seed_of(place), keys)]
        out = folder.parent.parent
        if others:
            why = _why(others[0], job)
            home = _vacant(out, folder)
            _move(others, home / folder.relative_to(out))
            found.append(SetAside(job.scenario.id, job.mode, len(others), home, why))
        _bring_back(out, folder, job, keys)
    return found


def _key(job: Job, seed: int, keys: Mapping[int, str]) -> str:
    return keys.get(seed) or resume_key(job.scenario, job.mode, seed)


def _trials(folder: Path, index: Index | None = None) -> Iterator[tuple[Path, str]]:
    """Yields the complete trials in a folder, with the scenario of each. A damaged one is run again as it
    is."""
    for place in sorted(folder.glob("seed=*")):
        known = None if index is None else index.find(place)
        if known is not None:
            yield place, known.key
            continue
        file = place / "trial.json"
        try:
            key = read_trial(file)["resume_key"]
        except (RecordError, KeyError):
            continue
        yield file.parent, str(key)


def _vacant(out: Path, folder: Path) -> Path:
    """Returns the first ``OUT/earlier/<n>`` that holds nothing of this scenario and mode."""
    number = 1
    while (out / EARLIER / str(number) / folder.relative_to(out)).exists():
        number += 1
    return out / EARLIER / str(number)


def _bring_back(out: Path, folder: Path, job: Job, keys: Mapping[int, str]) -> None:
    """Moves trials of this very scenario back from where an earlier campaign set them aside."""
    for home in sorted((out / EARLIER).glob("*")):
        there = home / folder.relative_to(out)
        mine = [place for place, key in _trials(there) if key == _key(job, seed_of(place), keys)]
        _move([place for place in mine if not (folder / place.name).exists()], folder)
        for empty in (there, there.parent, home, home.parent):
            if not empty.is_dir() or any(empty.iterdir()):
                break
            empty.rmdir()


def _move(places: Iterable[Path], to: Path) -> None:
    for place in places:
        to.mkdir(parents=True, exist_ok=True)
        place.rename(to / place.name)


def _why(place: Path, job: Job) -> str:
    """Returns the differences of a trial's scenario, in words."""
    trial = read_trial(place / "trial.json")
    then = in_todays_words(trial.get("scenario") or {})
    now = job.scenario.in_mode(job.mode).normalised()
    keys = [key for key in now if key in ("path", "flows", "until")]
    keys += [key for key in now if key in ("randomize", "host_jitter", "start_phase", "population")]
    told = list(_changes({k: then.get(k) for k in keys}, {k: now[k] for k in keys}, ""))
    if not told and (systems := trial.get("systems")):
        told = list(_changes(systems, versions_used(job.scenario, job.mode), "versions"))
    if not told:
        return "made by another version of StreamGauge, of what it plays, or of a program that it runs"
    more = f" and {len(told) - _MOST_SAID} more" if len(told) > _MOST_SAID else ""
    return "; ".join(told[:_MOST_SAID]) + more


def _changes(then: Any, now: Any, at: str) -> Iterator[str]:
    """Yields each address at which two scenarios differ, with the old and the new value."""
    if then == now:
        return
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        then, now = _by_name(then), _by_name(now)
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*now, *then)):
            yield from _changes(then.get(key), now.get(key), f"{at}.{key}" if at else str(key))
        return
    was, is_ = ("not set" if value is None else as_written(value) for value in (then, now))
    yield f"{at} was {was}, is {is_}"


def _by_name(items: list[Any]) -> dict[Any, Any]:
    return {one.get("name", i) if isinstance(one, dict) else i: one for i, one in enumerate(items)}
