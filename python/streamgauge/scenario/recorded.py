"""The scenario of a trial that was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.clips import media_clip, media_ladder
from streamgauge.scenario.expect import RENAMED
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.population import drawn
from streamgauge.scenario.problems import problems_of
from streamgauge.units import Time

if TYPE_CHECKING:
    from streamgauge.media import ClipEncoding, Ladder

__all__ = ["in_todays_words", "members_of", "recorded_clip", "recorded_flows", "recorded_ladder"]


def recorded_clip(trial: Mapping[str, Any], flow: str) -> ClipEncoding | None:
    """Returns the clip that `flow` played in a trial (`trial.json`), in the types of `streamgauge.media`;
    None if it played none, or files as they are."""
    scenario = _as_played(trial)
    clip = scenario.flows[flow].clip if flow in scenario.flows else None
    as_it_is = isinstance(clip, Clip) and clip.files is not None
    return None if clip is None or as_it_is else media_clip(clip, Time.of(trial["plan"]["duration"]))


def recorded_ladder(trial: Mapping[str, Any], flow: str) -> Ladder | Clip | None:
    """Returns the ladder that `flow` played in a trial, in the types of `streamgauge.media`, or its clip if
    that is of files as they are; None if it played no ladder."""
    scenario = _as_played(trial)
    clip = scenario.flows[flow].clip if flow in scenario.flows else None
    if not isinstance(clip, Clip) or not clip.is_ladder:
        return None
    return clip if clip.files is not None else media_ladder(clip, Time.of(trial["plan"]["duration"]))


def recorded_flows(trial: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the flows of a trial's scenario as they ran, by name, with the draws of its population in their
    places."""
    as_run = trial.get("scenario")
    if not isinstance(as_run, Mapping):
        return {}
    if not as_run.get("population"):
        return as_run.get("flows") or {}
    flows: Mapping[str, Any] = _as_played(trial).normalised()["flows"]
    return flows


def _as_played(trial: Mapping[str, Any]) -> Scenario:
    """Raises ScenarioError for a scenario of an older version that is invalid in this one."""
    mode = trial["mode"]
    claims = ("checks", "assumed", "figures")
    as_run = {key: of for key, of in in_todays_words(trial["scenario"]).items() if key not in claims}
    # A stand-in is in its flow's place now. It need not play a clip, or one that decides the end of the
    # trial, as the flow's own did.
    if "plan" in trial:
        as_run["until"] = {"time": f"{trial['plan']['duration']} ns"}
    playing = [name for name, flow in as_run["flows"].items() if flow.get("clip")]
    players = (as_run.get("population") or {}).get("flow") or next(iter(playing), None)
    if not set([players] if isinstance(players, str) else players or [None]) <= set(playing):
        as_run["population"] = None
    seed = trial["seed"]
    population = as_run.get("population") or {}
    if written := population.get("members"):
        # It played one of them, and the others take longer to be read than all else.
        as_run["population"] = {**population, "members": [written[(seed - 1) % len(written)]]}
        seed = 1
    try:
        scenario = Scenario.model_validate(as_run)
    except ValidationError as error:
        first = problems_of(error)[0]
        raise ScenarioError(
            f"the scenario that was recorded makes no sense to this version: {first.why}",
            key=".".join(str(part) for part in first.path) or None,
            hint="run the trial again, or report it with the version that made it",
        ) from None
    return drawn(scenario, seed, mode).in_mode(mode)


def members_of(scenario: Mapping[str, Any]) -> int | None:
    """Returns how many members the population of a normalised scenario has; None without one. With n members,
    the trial with seed s plays member (s - 1) mod n + 1."""
    population = scenario.get("population") or {}
    listed = population.get("members") or population.get("clips")
    return len(listed) if listed else population.get("size")


def in_todays_words(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a recorded scenario in today's keys; its population may have former ones."""
    population = scenario.get("population")
    if not isinstance(population, Mapping):
        return scenario
    kept = {RENAMED.get(key, key): value for key, value in population.items()}
    return {**scenario, "population": kept}
