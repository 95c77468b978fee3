"""``two-phases``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.text import Text

from streamgauge.claims.dimension import NUMBER, PERCENT, number, show
from streamgauge.cli.folders import check_folder
from streamgauge.cli.output import heads, say, table
from streamgauge.errors import ScenarioError
from streamgauge.two_phases.fit import fit
from streamgauge.two_phases.judging import ModelError, errors_of, thinned_alike
from streamgauge.two_phases.observed import QUANTITIES, ObservedStream, observe
from streamgauge.two_phases.parameters import FITTED, ModelParameters
from streamgauge.two_phases.table import as_json, grid, row_of, write_csv

__all__ = ["two_phases_command"]

_TABLES = (".csv", ".json")
_FIGURES = (".svg", ".png", ".pdf")


def two_phases_command(
    directory: Path,
    fitted: Sequence[str],
    judged: Sequence[str],
    flow: str | None,
    out: Sequence[Path],
    to_stdout: bool,
) -> None:
    """Fits, judges, shows, writes. Raises ScenarioError and RecordError for impossible requests."""
    check_folder(directory)
    _check_out(out)
    seen = observe(directory, fitted, flow)
    others = observe(directory, judged, flow) if judged else []
    known = {one.scenario for one in seen}
    others = [one for one in others if one.scenario not in known]
    if judged and not others:
        raise ScenarioError(
            "--judge names nothing that --fit does not: name other scenarios to judge the model by"
        )
    parameters = fit(seen)
    errors = {"fitted": errors_of(seen, parameters)}
    if others:
        errors["judged"] = errors_of(others, parameters)
    rows = [row_of(inputs, parameters) for inputs in grid([*seen, *others])]
    document = as_json(parameters, seen, others, errors, rows) if to_stdout or _has(out, ".json") else ""
    for file in out:
        if file.suffix == ".csv":
            write_csv(rows, file)
        elif file.suffix == ".json":
            file.write_text(document + "\n", encoding="utf-8")
        else:
            from streamgauge.report.chart import save
            from streamgauge.two_phases.drawing import figure

            save(figure([*seen, *others], parameters), file)
    if to_stdout:
        print(document)
        return
    _show(parameters, seen, others, errors)
    for file in out:
        say(f"written: {escape(str(file))}")


def _has(out: Sequence[Path], suffix: str) -> bool:
    return any(file.suffix == suffix for file in out)


def _check_out(out: Sequence[Path]) -> None:
    for file in out:
        if file.suffix not in _TABLES + _FIGURES:
            raise ScenarioError(f"--out {file}: its name must end in {', '.join(_TABLES + _FIGURES)}")
        if not file.absolute().parent.is_dir():
            raise ScenarioError(
                f"--out {file}: there is no folder {file.absolute().parent}", hint="make it first"
            )


def _show(
    parameters: ModelParameters,
    seen: Sequence[ObservedStream],
    others: Sequence[ObservedStream],
    errors: dict[str, list[ModelError]],
) -> None:
    rows: list[list[Text | str]] = [[*heads("parameter", "value", "")]]
    for field in dataclasses.fields(parameters):
        how = "fitted" if field.name in FITTED else "taken"
        rows.append([field.name, number(getattr(parameters, field.name), 4), how])
    table(rows, "lrl")
    for name, streams in (("fitted", seen), ("judged", others)):
        if not streams:
            continue
        alike = thinned_alike(streams, parameters)
        say()
        say(
            f"[bold]{name}[/bold] by {len(streams)} scenarios, {sum(one.trials for one in streams)} trials; "
            f"the model predicts later reductions correctly for {alike}"
        )
        lines: list[list[Text | str]] = [[*heads("quantity", "median error", "worst", "in", "n")]]
        for one in errors[name]:
            lines.append(
                [
                    QUANTITIES[one.quantity],
                    _off(one, one.median),
                    _off(one, one.worst),
                    escape(one.worst_in),
                    str(one.streams),
                ]
            )
        table(lines, "lrrlr")
    say()
    say("Errors are shares of the measured values, and points of loss.")


def _off(one: ModelError, value: float) -> str:
    shown = (
        show(value, None, PERCENT, signed=False).mean
        if one.relative
        else show(100 * value, None, NUMBER).mean
    )
    return shown if not one.relative else f"{shown} %" if "%" not in shown else shown
