"""``evaluate``: runs suites, prints rows, writes result and page."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from streamgauge.campaign.trial import disk_errors
from streamgauge.cli.output import remark, say, table
from streamgauge.cli.progress import Bar, clock
from streamgauge.cli.running import interrupted
from streamgauge.cli.status import STATUS
from streamgauge.documents import write_whole
from streamgauge.errors import ScenarioError
from streamgauge.evaluate import (
    AGAINST,
    SUITES,
    Evaluation,
    EvaluationPlan,
    evaluate,
    known_controls,
    resolved,
)
from streamgauge.evaluate.answer import value_words
from streamgauge.evaluate.media import media_controls
from streamgauge.evaluate.page import write_page
from streamgauge.evaluate.reference import reference_text
from streamgauge.evaluate.rust_crate import STAND_IN, CrateControl, built_crate, is_crate
from streamgauge.scenario.values import nearest
from streamgauge.systems.registry import Mode

__all__ = ["EvaluateRequest", "evaluate_command"]

_COLOURS = {"pass": "green", "equal": "green", "fail": "red", "undecided": "yellow", "words": "dim"}


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest:
    """Request on the command line."""

    kind: str
    names: Sequence[str]
    against: str | None
    reference: str
    suite: str
    mode: Mode
    until_decided: bool
    quick: bool
    seeds: int
    as_json: bool
    out: Path
    report: Path | None
    docs: Path | None = None


def evaluate_command(request: EvaluateRequest) -> int:
    """Runs, writes, prints, and returns the exit status: the worst of all controls."""
    plans = [_plan(request, name) for name in request.names]
    if request.report is not None and len(plans) > 1:
        raise ScenarioError("--report is the page of one control", hint="leave it out; pages lie in --out")
    told: list[dict[str, Any]] = []
    every: list[Evaluation] = []
    status = 0
    for plan in plans:
        with Bar() as bar:
            found = evaluate(
                plan,
                request.out / "trials",
                foretold=lambda trials, seconds: remark(
                    f"{trials} trials, about {clock(seconds) or 'a second'} if none lies there"
                ),
                progress=bar.update,
            )
        files = _write(request, found)
        told.append(found.to_json())
        if not request.as_json:
            _print(found, files)
        if found.ran.interrupted:
            return interrupted(f"what has run is kept in {request.out}; the same command goes on there")
        status = max(status, STATUS[found.verdict], key=_badness)
        every.append(found)
    if request.docs is not None:
        with disk_errors(request.docs):
            write_whole(request.docs, reference_text(every))
    if request.as_json:
        json.dump(told[0] if len(told) == 1 else told, sys.stdout, indent=2, allow_nan=False)
        print()
    return status


def _badness(status: int) -> int:
    return (0, 2, 1).index(status)


def _plan(request: EvaluateRequest, name: str) -> EvaluationPlan:
    if request.suite not in (*SUITES, "all"):
        close = nearest(request.suite, [*SUITES, "all"])
        raise ScenarioError(
            f"--suite {request.suite}: there are {', '.join([*SUITES, 'all'])}",
            hint=f"did you mean '{close}'?" if close else None,
        )
    known = known_controls(request.mode)
    asked = request.against.split(",") if request.against else [one for one in AGAINST if one in known]
    against = [resolved(one.strip(), request.mode) for one in asked]
    crate = _crate(request, name, against) if is_crate(name) else None
    return EvaluationPlan(
        control=STAND_IN if crate is not None else _control(request, name),
        crate=crate,
        shown=name,
        suite=request.suite,
        against=tuple(dict.fromkeys(against)),
        reference=resolved(request.reference, request.mode),
        mode=request.mode,
        quick=request.quick,
        seeds=request.seeds,
        until_decided=request.until_decided,
    )


def _control(request: EvaluateRequest, name: str) -> str:
    media = request.suite == "rfc8867" and name in media_controls()
    return name if media else resolved(name, request.mode)


def _crate(request: EvaluateRequest, name: str, against: Sequence[str]) -> CrateControl:
    if request.mode == "emu":
        raise ScenarioError(f"{name}: emu runs the kernel's controls alone", hint="leave --mode out")
    if STAND_IN in (*against, request.reference):
        raise ScenarioError(f"{name}: a crate cannot run beside {STAND_IN}", hint="choose another control")
    remark(f"building {name}")
    return built_crate(name)


def _write(request: EvaluateRequest, found: Evaluation) -> list[Path]:
    plan = found.plan
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{plan.shown}-{plan.suite}").strip("-.")
    stem = request.out / (name + ("-emu" if plan.mode == "emu" else "") + ("-quick" if plan.quick else ""))
    result, page = Path(f"{stem}.json"), Path(f"{stem}.html")
    pages = [page] if request.report is None else [page, request.report]
    with disk_errors(result):
        write_whole(result, json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n")
    for one in pages:
        with disk_errors(one):
            write_page(found, one)
    return [result, *pages]


def _print(found: Evaluation, files: Sequence[Path]) -> None:
    for sentence in found.answer:
        say(escape(sentence))
    say()
    rows = [["verdict", "criterion", "value", "condition"]]
    for row in found.rows:
        colour = _COLOURS[row.verdict]
        asked = row.question
        why = f" ({row.why})" if row.why else ""
        rows.append(
            [
                f"[{colour}]{row.verdict}[/{colour}]",
                escape(asked.criterion),
                "" if row.value is None else escape(value_words(row)),
                escape(asked.condition + why),
            ]
        )
    table(rows, "llll")
    say(f"{found.ran.trials} trials ({found.ran.reused} there already) in {found.wall_s:.0f} s")
    say(escape("  ".join(map(str, files))))
