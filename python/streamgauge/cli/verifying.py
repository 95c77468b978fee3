"""``verify``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.campaign.index import FILE as INDEX
from streamgauge.campaign.index import listed_but_gone
from streamgauge.campaign.layout import campaign_of, is_trial_directory, trial_directory
from streamgauge.cli.folders import WHERE
from streamgauge.cli.output import say_text
from streamgauge.errors import RecordError, ScenarioError
from streamgauge.record import Record
from streamgauge.record.schema import TRIAL

__all__ = ["verify_command"]


def verify_command(directories: Mapping[Path, str], replay: bool, as_json: bool) -> int:
    """Prints one line a record, with the user's names of the folders; see `Record.verify` and
    `Record.replay`.

    Returns 1 if a record does not replay. Raises RecordError at the first one that is damaged, missing or
    in the place of another.
    """
    found = [
        _verified(place, replay) | {"directory": _called(place, directory, name)}
        for directory, name in directories.items()
        for place in _records(directory, is_whole=directory == Path(name))
    ]
    if as_json:
        json.dump({"schema": "streamgauge.verify/1", "records": found}, sys.stdout, indent=2)
        print()
    else:
        for record in found:
            say_text(_line(record))
    return 1 if any(record["replay"] and record["replay"]["different"] for record in found) else 0


def _records(directory: Path, *, is_whole: bool) -> list[Path]:
    """Returns the records below `directory`; with `is_whole` it holds all that its index lists.

    Raises RecordError if one has lost its ``trial.json``, or is gone.
    """
    places = sorted(trial.parent for trial in directory.rglob(TRIAL))
    for place in sorted(directory.rglob("seed=*")):
        if is_trial_directory(place) and any(place.iterdir()) and not (place / TRIAL).exists():
            raise RecordError(f"{place / TRIAL}: missing; the record is not complete, run the trial again")
    if is_whole:
        for file in sorted(directory.rglob(INDEX)):
            for place in listed_but_gone(file):
                raise RecordError(
                    f"{place}: missing, but listed in {file}; run the trial again, or delete {file} if you "
                    "removed it."
                )
    if not places:
        raise ScenarioError("no record is here", file=directory, hint=WHERE)
    return places


def _called(place: Path, directory: Path, name: str) -> str:
    """Returns a record as the user would name it."""
    if directory == Path(name):
        return str(place)
    below = place.relative_to(directory).as_posix()
    return name if below == "." else f"{name.rstrip('/')}/{below}"


def _verified(directory: Path, replay: bool) -> dict[str, Any]:
    record = Record.open(directory)
    checked = record.check()
    _check_place(directory, record.trial)
    return {
        "digest": checked.digest,
        "left_out": list(checked.left_out),
        "replay": record.replay() if replay else None,
    }


def _check_place(directory: Path, trial: Mapping[str, Any]) -> None:
    """Compares a trial with the names of its folders. Raises RecordError if it is another one."""
    if not is_trial_directory(directory):
        return
    scenario = trial.get("scenario")
    found = trial_directory(
        campaign_of(directory),
        str(scenario.get("id") if isinstance(scenario, Mapping) else None),
        trial["mode"],
        trial["seed"],
    )
    if found != directory:
        raise RecordError(
            f"{directory}: it contains the trial of {found.relative_to(campaign_of(directory))}; "
            "move it back or run the trial again."
        )


def _line(record: dict[str, Any]) -> str:
    line = f"{record['directory']}: {record['digest']}"
    replay = record["replay"]
    if replay is not None and replay["different"]:
        line += f", {replay['different']} of {replay['rows']} rows DO NOT replay: {replay['first']}"
    elif replay is not None:
        line += f", {replay['rows']} rows replay"
    if record["left_out"]:
        line += f"; left out: {'; '.join(record['left_out'])}"
    return line
