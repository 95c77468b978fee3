"""``report``."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

from streamgauge.cli.folders import check_folder
from streamgauge.cli.output import say_text
from streamgauge.cli.progress import Bar
from streamgauge.cli.tables import print_in_short
from streamgauge.errors import CannotRunError, RecordError, ScenarioError
from streamgauge.report import Entry, gather, load
from streamgauge.report.answer import answer_text
from streamgauge.report.build import write_page
from streamgauge.report.exports import SUFFIXES
from streamgauge.report.files import write_all
from streamgauge.report.model import left_out

__all__ = ["figure_formats", "report_command"]


def figure_formats(given: str | None) -> list[str]:
    """Returns the formats of ``--figures``; raises ScenarioError for an unknown format."""
    known = [suffix.removeprefix(".") for suffix in SUFFIXES]
    asked = [] if given is None else list(dict.fromkeys(one.strip().lower() for one in given.split(",")))
    for one in asked:
        if one not in known:
            raise ScenarioError(
                f"a figure is not written as '{one}'",
                key="--figures",
                hint=f"one or more of {', '.join(known)}, with commas between",
            )
    return asked


def report_command(
    directory: Path,
    out: Path | None,
    answer: str | None = None,
    *,
    verify: bool = False,
    formats: Sequence[str] = (),
) -> None:
    """One page about a folder's trials, and before its path the answers of scenarios like ``answer``; in
    these formats its figures as files.

    A damaged record is left out of every number, and is an error all the same: RecordError, once the page is
    written. Raises ScenarioError if no scenario is like ``answer``.
    """
    check_folder(directory)
    out = out or directory / "report.html"
    trials = load(directory, verify=verify)
    with Bar(of="trials read") as bar:
        entries = gather(trials, told=bar.count)
    wanted = [] if answer is None else _wanted(entries, answer, directory)
    files: list[Path] = []
    try:
        page = write_page(entries, out, left_out=left_out(directory))
        if formats:
            files = write_all(entries, out.parent / "figures", formats)
    except OSError as error:
        raise CannotRunError(
            f"cannot write {error.filename or out}: {error.strerror}; choose another file with --out."
        ) from error
    if wanted:
        say_text(answer_text(wanted))
        print_in_short(wanted)
        print()
    print(page, flush=True)
    if files:
        print(f"{len(files)} files in {files[0].parent}", flush=True)
    groups = [group for entry in entries for group in entry.groups]
    damaged = [trial.damage for group in groups for trial in group.trials if trial.damage]
    if damaged:
        raise RecordError("\n".join(damaged))


def _wanted(entries: Sequence[Entry], wanted: str, directory: Path) -> list[Entry]:
    ids = {entry.id: str(entry.scenario.get("id") or entry.id) for entry in entries}
    mine = [entry for entry in entries if fnmatch.fnmatchcase(ids[entry.id], wanted)]
    if not mine:
        known = ", ".join(dict.fromkeys(ids.values()))
        hint = f"here are {known}"
        raise ScenarioError(f"no scenario here is called '{wanted}'", file=directory, hint=hint)
    return mine
