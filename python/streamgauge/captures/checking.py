"""Checks on a record from captures, from a file with `checks:` as a scenario has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgauge.checks import CheckResult, evaluate_all, parse
from streamgauge.errors import CaptureFileError, ScenarioError
from streamgauge.record.observed import CAPTURE
from streamgauge.scenario.document import Document, parse_document, read_text
from streamgauge.scenario.expect import Check
from streamgauge.scenario.problems import problems_of

__all__ = ["judge_record", "read_checks"]

Checks = Mapping[str, Mapping[str, Any]]
_EXAMPLE = "write such as 'checks: {few: {that: loss.tcp_1 <= 2 %}}'"


def read_checks(file: Path) -> Checks:
    """Returns the checks of a file in their normalised form. `origin` may be left out: `predicted`.

    Raises:
        ScenarioError: naming the file, the line and the key of what is wrong.
    """
    document = parse_document(read_text(file), str(file))
    found = document.data.get("checks")
    if not isinstance(found, dict) or not found:
        raise ScenarioError("there are no checks in it", file=file, key="checks", hint=_EXAMPLE)
    return {str(name): _checked(document, str(name), value) for name, value in found.items()}


def _checked(document: Document, name: str, value: Any) -> Mapping[str, Any]:
    given = {"origin": "predicted", **value} if isinstance(value, dict) else value
    try:
        check = Check.model_validate(given)
    except ValidationError as error:
        problem = problems_of(error)[0]
        place, line = document.place(("checks", name, *problem.path))
        key = ".".join(("checks", name, *map(str, problem.path)))
        raise ScenarioError(problem.why, file=place, line=line, key=key, hint=problem.hint) from None
    others = sorted(parse(check.that).scenarios())
    if others:
        place, line = document.place(("checks", name, "that"))
        why = f"it reads the scenario {others[0]}, and captures are a record alone"
        raise ScenarioError(why, file=place, line=line, key=f"checks.{name}.that", hint=_EXAMPLE)
    return {**check.model_dump(mode="json"), "modes": [CAPTURE]}


def judge_record(directory: Path) -> list[CheckResult]:
    """Returns the verdicts on a record from captures, of the checks in it.

    Raises:
        CaptureFileError: if it has no metrics.
        RecordError: if it is damaged.
    """
    from streamgauge.campaign.stored import load_metrics
    from streamgauge.record import Record

    scenario = Record.open(directory).trial["scenario"]
    metrics = load_metrics(directory, scenario["measure"])
    if metrics is None:
        raise CaptureFileError(f"{directory} has no metrics; write the record anew.")
    return evaluate_all([scenario], [metrics])
