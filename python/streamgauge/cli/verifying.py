"""``verify``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.cli.folders import WHERE
from streamgauge.cli.output import say_text
from streamgauge.errors import ScenarioError
from streamgauge.record import Record
from streamgauge.record.schema import TRIAL

__all__ = ["verify_command"]


def verify_command(directories: Mapping[Path, str], replay: bool, as_json: bool) -> int:
    """One line a record, of folders with what the user calls them; see `Record.verify` and `Record.replay`.

    Returns 1 if a record does not replay. Raises RecordError at the first damaged one.
    """
    found = [
        _verified(place, replay) | {"directory": _called(place, directory, name)}
        for directory, name in directories.items()
        for place in _records(directory)
    ]
    if as_json:
        json.dump({"schema": "streamgauge.verify/1", "records": found}, sys.stdout, indent=2)
        print()
    else:
        for record in found:
            say_text(_line(record))
    return 1 if any(record["replay"] and record["replay"]["different"] for record in found) else 0


def _records(directory: Path) -> list[Path]:
    places = sorted(trial.parent for trial in directory.rglob(TRIAL))
    if not places:
        raise ScenarioError("no record is here", file=directory, hint=WHERE)
    return places


def _called(place: Path, directory: Path, name: str) -> str:
    """A record as the user would name it."""
    if directory == Path(name):
        return str(place)
    below = place.relative_to(directory).as_posix()
    return name if below == "." else f"{name.rstrip('/')}/{below}"


def _verified(directory: Path, replay: bool) -> dict[str, Any]:
    record = Record.open(directory)
    checked = record.check()
    return {
        "digest": checked.digest,
        "left_out": list(checked.left_out),
        "replay": record.replay() if replay else None,
    }


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
