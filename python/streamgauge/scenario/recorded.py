"""The scenario of a trial that was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamgauge.scenario.expect import RENAMED
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.population import drawn
from streamgauge.scenario.semantics import media_clip
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.media import ClipEncoding

__all__ = ["in_todays_words", "recorded_clip", "recorded_flows"]


def recorded_clip(trial: Mapping[str, Any], flow: str) -> ClipEncoding | None:
    """The clip that `flow` played in a trial (`trial.json`), as `streamgauge.media` knows it; None if it
    played none, or files as they are."""
    scenario = _as_played(trial)
    clip = scenario.flows[flow].clip if flow in scenario.flows else None
    as_it_is = isinstance(clip, Clip) and clip.files is not None
    return None if clip is None or as_it_is else media_clip(clip, Time.of(trial["plan"]["duration"]))


def recorded_flows(trial: Mapping[str, Any]) -> Mapping[str, Any]:
    """The flows of a trial's scenario as they ran, by name: what its population drew is in its place."""
    as_run = trial.get("scenario")
    if not isinstance(as_run, Mapping):
        return {}
    if not as_run.get("population"):
        return as_run.get("flows") or {}
    flows: Mapping[str, Any] = _as_played(trial).normalised()["flows"]
    return flows


def _as_played(trial: Mapping[str, Any]) -> Scenario:
    mode = trial["mode"]
    as_run = Scenario.model_validate(in_todays_words(trial["scenario"]))
    return drawn(as_run, trial["seed"], mode).in_mode(mode)


def in_todays_words(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """A recorded scenario, whose population may have the words of records before."""
    population = scenario.get("population")
    if not isinstance(population, Mapping):
        return scenario
    kept = {RENAMED.get(key, key): value for key, value in population.items()}
    return {**scenario, "population": kept}
