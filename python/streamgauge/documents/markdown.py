"""Markdown for the summary of a job: GitHub's, which GitLab renders as well."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from streamgauge.documents.files import write_whole

__all__ = ["MOST_BYTES", "Summary", "plain", "table"]

MOST_BYTES = 2**20 - 2**10
"""GitHub refuses the whole summary of a step past 1 MiB; text of other programs counts."""
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
_BEGINS = re.compile(r"^(\d*)([-+=.)])(?=[-=]*(?: |$))")
"""Characters that make a list or a heading at the beginning of a line."""
_CUT = "\n\n*The rest is left out: a summary has 1 MiB at most.*\n"
_FENCE = "```"
_CLOSING = f"\n{_FENCE}\n\n</details>"


def plain(text: str) -> str:
    """Returns text that Markdown shows unchanged, with any content; on one line."""
    return _BEGINS.sub(r"\1\\\2", " ".join(_MARKUP.sub(r"\\\1", text).split()))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Returns a table; cells are Markdown already, the columns `right` are set flush right."""
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


class Summary:
    """Paragraphs, the most important first."""

    def __init__(self, *parts: str) -> None:
        self.parts: list[str] = [part for part in parts if part]

    def add(self, part: str) -> None:
        """Adds a further paragraph, unless it is empty."""
        if part:
            self.parts.append(part)

    def text(self, most: int = MOST_BYTES) -> str:
        """Returns all of it; past `most` bytes it is cut between lines, with a remark."""
        whole = "\n\n".join(self.parts) + "\n"
        if len(whole.encode()) <= most:
            return whole
        kept: list[str] = []
        # A fence, or a fold, that is open where the text is cut is closed.
        room = most - len((_CUT + _CLOSING).encode())
        for line in whole.splitlines():
            room -= len(line.encode()) + 1
            if room < 0:
                break
            kept.append(line)
        if not kept:
            return ""
        if sum(line.startswith(_FENCE) for line in kept) % 2:
            kept.append(_FENCE)
        if sum(line.startswith("<details") for line in kept) > kept.count("</details>"):
            kept += ["", "</details>"]
        return "\n".join(kept) + _CUT

    def write(self, file: Path, environment: Mapping[str, str] | None = None) -> None:
        """Writes it into a file: as a whole, or, for the job's own that GitHub reads
        (``$GITHUB_STEP_SUMMARY``), to which earlier commands of the step wrote, after the present text.

        Raises:
            OSError: if it cannot be written.
        """
        if not _is_step_summary(file, os.environ if environment is None else environment):
            write_whole(file, self.text())
            return
        there = file.stat().st_size if file.exists() else 0
        with file.open("a", encoding="utf-8") as out:
            out.write(("\n" if there else "") + self.text(MOST_BYTES - there - 1))


def _is_step_summary(file: Path, environment: Mapping[str, str]) -> bool:
    named = environment.get(STEP_SUMMARY, "")
    if named and file.absolute() == Path(named).absolute():
        return True
    # sudo takes the variable away; the runner's files have these names.
    return file.parent.name == "_runner_file_commands" and file.name.startswith("step_summary_")
