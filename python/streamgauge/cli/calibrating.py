"""``calibrate``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn
from rich.text import Text

from streamgauge.calibrate import CalibrationProgress as Told
from streamgauge.calibrate import busy, calibrate
from streamgauge.claims import dimension
from streamgauge.claims.dimension import TIME, number
from streamgauge.cli.output import heads, remark, say, table
from streamgauge.cli.progress import BAR, BarWithWords, Log, clock
from streamgauge.errors import ScenarioError
from streamgauge.report.certificate import row_cells

__all__ = ["calibrate_command"]

_STYLE = {"pass": "green", "fail": "red", "inconclusive": "yellow", "skipped": "dim"}
_WRITABLE = (".json", ".png", ".svg", ".pdf", ".html")


def calibrate_command(
    way: str | None, quick: bool, out: list[Path], as_json: bool, *, live: bool = False
) -> int:
    """Measures, shows, writes. Exit status 1 if a row fails, 2 if one is inconclusive, else 0."""
    for file in out:
        # Checked before a minute is spent.
        if file.suffix not in _WRITABLE:
            raise ScenarioError(
                f"--out {file}: its name must end in {', '.join(_WRITABLE[:-1])} or {_WRITABLE[-1]}"
            )
        if not file.absolute().parent.is_dir():
            raise ScenarioError(
                f"--out {file}: there is no folder {file.absolute().parent}", hint="make it first"
            )
    noise = None if (way or "").startswith("virtual") else busy()
    if noise:
        remark(noise)
    with _Bar() as bar:
        found = calibrate(way=way, quick=quick, live=live, say=bar.say, told=bar.update)
    if out:
        from streamgauge.calibrate.draw import write

        for file in out:
            write(found, file)
    if as_json:
        json.dump(found, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        _show(found, out)
    verdicts = {row["verdict"] for row in found["checks"]}
    return 1 if "fail" in verdicts else 2 if "inconclusive" in verdicts else 0


def _show(found: Mapping[str, Any], out: list[Path]) -> None:
    rows: list[list[Text | str]] = [[*heads("check", "asked", "measured", "error", "bound", "verdict")]]
    for row in found["checks"]:
        cells = row_cells(row)
        style = _STYLE[cells["verdict"]]
        verdict = f"[{style}]{cells['mark']} {cells['verdict']}[/{style}]"
        numbers = [escape(cells[key]) for key in ("asked", "measured", "error", "bound")]
        rows.append([escape(cells["id"]), *numbers, verdict])
    table(rows, "lrrrrl")
    for row in found["checks"]:
        if row["verdict"] in ("fail", "inconclusive"):
            say(f"[{_STYLE[row['verdict']]}]{row['id']}[/]: {escape(_why(row))}")
        elif row["verdict"] == "skipped":
            say(f"[dim]{row['id']} was not measured: {escape(str(row['skipped']))}[/dim]")
    load = found["load_average"]
    stolen = (
        f", {dimension.say(found['stolen_s'], TIME)} stolen by the hypervisor" if found["stolen_s"] else ""
    )
    say(
        f"{found['host']}, Linux {found['kernel']}, way {found['way']}, {found['class']}, load average "
        f"{load[0]:.1f} before and {load[1]:.1f} after{stolen}; {dimension.say(found['duration_s'], TIME)}",
    )
    if found["live"]:
        shown = [one["live"]["samples"] for one in found["passes"].values() if "live" in one]
        say(f"with a live page open, which took {sum(shown)} samples; not kept as this machine's certificate")
    if "kept" in found:
        say(f"kept as this machine's certificate: {escape(found['kept'])}")
    for file in out:
        say(f"written: {escape(str(file))}")


def _why(row: Mapping[str, Any]) -> str:
    cells = row_cells(row)
    if row["verdict"] == "inconclusive":
        resolution = f"{number(row['resolution'], 2)} {row['error_unit']}"
        return f"{row['what']}: the stamps tell the error only to {resolution}"
    if row["error"] is None:
        return f"{row['what']}: nothing that could be measured came through"
    return (
        f"{row['what']}: {cells['measured']} for {cells['asked']}, error {cells['error']}, bound "
        f"{cells['bound']}"
    )


class _Bar:
    """A bar on a terminal, a line at the start elsewhere."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._log = Log()
        self._bar: BarWithWords | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = BarWithWords(
                BarColumn(BAR),
                TextColumn("{task.fields[left]}"),
                TextColumn("{task.description}"),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=None, left="")
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, words: str) -> None:
        """Shows the current wait."""
        if self._bar is None or self._task is None:
            self._log.tell(f"streamgauge: {words}", words=words)
        else:
            self._bar.show(self._task, words)

    def update(self, told: Told) -> None:
        """How far it is."""
        if self._bar is not None and self._task is not None:
            left = clock(told.total_s - told.done_s)
            self._bar.show(self._task, told.what, total=told.total_s, completed=told.done_s, left=left)
        elif told.done_s == 0:
            remark(f"measuring, about {told.total_s:.0f} s")
