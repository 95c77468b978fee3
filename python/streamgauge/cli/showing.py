"""``--live`` of `run` and `link`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamgauge.campaign import EmuSettings, Outcome
from streamgauge.campaign.judging import measured
from streamgauge.campaign.machine import choose_mode
from streamgauge.checks import Verdict, evaluate_all
from streamgauge.claims.dimension import plain
from streamgauge.cli.output import remark
from streamgauge.cli.status import STATUS
from streamgauge.cli.tables import print_check
from streamgauge.errors import ScenarioError
from streamgauge.live.showing import LiveAsked
from streamgauge.scenario import Scenario, find
from streamgauge.systems.registry import Mode

__all__ = ["live_asked", "run_shown"]


def live_asked(how: str | None, port: int, pace: float = 1.0) -> LiveAsked | None:
    """Returns the request in the options; None without ``--live``. Raises ScenarioError for another word."""
    if how is None:
        return None
    if how not in ("page", "terminal"):
        raise ScenarioError(f"--live={how}: there is no such way to show a trial; give page or terminal")
    if not 1e-3 <= pace <= 1e3:
        raise ScenarioError(f"--pace {plain(pace)}: no pace that can be watched; give 0.001 to 1000")
    return LiveAsked("terminal" if how == "terminal" else "page", port, pace)


def run_shown(
    names: Sequence[str],
    mode: Mode | None,
    how: str,
    *,
    port: int,
    pace: float,
    seed: int | None,
    repeat: int | None,
    settings: Sequence[str],
    out: str | Path,
    way: str | None,
    capture: bool,
    elsewhere: str | None,
) -> int:
    """Runs one trial that is shown, and prints its results. Returns the exit status."""
    from streamgauge.live.trial import run_live

    asked = live_asked(how, port, pace)
    assert asked is not None
    scenarios = find(names, settings=settings, mutants=False)
    if len(scenarios) != 1:
        raise ScenarioError(f"--live shows one trial, and these are {len(scenarios)} scenarios; name one")
    if repeat is not None and repeat != 1:
        raise ScenarioError(f"--live shows one trial, not {repeat}; leave out --repeat")
    if elsewhere is not None:
        raise ScenarioError("--live shows a trial of this machine; leave out --on")
    scenario = scenarios[0]
    chosen = choose_mode(scenario, mode, way=way, elsewhere=None)
    if capture and chosen.mode == "sim":
        raise ScenarioError(
            "--capture: a shown trial of sim keeps none; run its saved scenario again",
            hint="streamgauge run FILE --mode sim --capture",
        )
    remark(f"mode {chosen.mode}: {chosen.why}")
    outcome, file = run_live(
        scenario,
        chosen.mode,
        asked,
        Path(out),
        seed=1 if seed is None else seed,
        emu=EmuSettings(way=way, capture=capture),
        settings=tuple(settings),
        say=remark,
    )
    remark("valid" if outcome.valid else f"INVALID: {'; '.join(outcome.why)}")
    verdict = _checked(scenario, outcome, settings)
    remark(f"record: {outcome.job.directory}")
    remark(f"scenario with the changes: {file}")
    return STATUS[verdict if outcome.valid else "inconclusive"]


def _checked(scenario: Scenario, outcome: Outcome, settings: Sequence[str]) -> Verdict:
    """Prints the scenario's checks of the trial. Returns their verdict if the path stayed the scenario's own:
    checks are about that path."""
    checks = evaluate_all([scenario], measured([outcome]), settings=settings)
    for check in checks:
        print_check(check)
    changed = _changes(outcome.job.scenario) - _changes(scenario)
    if changed and checks:
        remark(f"{changed} changes by hand: the checks are about the path without them, and do not count")
        return "pass"
    verdicts = {check.verdict for check in checks}
    return "fail" if "fail" in verdicts else "inconclusive" if "inconclusive" in verdicts else "pass"


def _changes(scenario: Scenario) -> int:
    """Changes of the path, without those that only mark a time."""
    return sum(any(one.settings()) for one in scenario.path.changes or ())
