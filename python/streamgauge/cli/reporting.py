"""``report``."""

from __future__ import annotations

from pathlib import Path

from streamgauge.cli.folders import check_folder
from streamgauge.errors import CannotRunError, RecordError
from streamgauge.report import build, load
from streamgauge.report.model import left_out

__all__ = ["report_command"]


def report_command(directory: Path, out: Path | None) -> None:
    """One page about a folder's trials. A damaged record is left out of every number, and is an error all the
    same: RecordError, once the page is written."""
    check_folder(directory)
    out = out or directory / "report.html"
    trials = load(directory)
    try:
        print(build(trials, out, left_out=left_out(directory)), flush=True)
    except OSError as error:
        raise CannotRunError(
            f"cannot write {out}: {error.strerror}; choose another file with --out."
        ) from error
    damaged = [trial.damage for trial in trials if trial.damage]
    if damaged:
        raise RecordError("\n".join(damaged))
