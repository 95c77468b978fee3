"""Whether a scenario is still the one for which its source's numbers hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.catalogue import load
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.overrides import OverrideError, override
from streamgauge.scenario.paper_readings import READING
from streamgauge.scenario.shipped import shipped_file
from streamgauge.systems.registry import Mode

__all__ = ["changed"]

_CLAIMS: Final = ("assumed", "checks", "figures")
_WORDS: Final = ("title", "question", "source", "repetitions", "limits", "modes", "based_on", *_CLAIMS)
"""Keys without an effect on the experiment."""


def changed(data: Mapping[str, Any], mode: Mode, settings: Sequence[str] = ()) -> str:
    """Returns how a scenario became another experiment than its source's, in words; empty if it did not.

    One with an id of the catalogue is compared with the catalogue's own, under the same reading. Values that
    the source leaves open (``assumed``) may differ, unless they were set by hand. Another scenario's numbers
    are its author's, for the scenario as the file has it.

    Args:
        data: in normalised form.
        mode: the mode in which it ran.
        settings: the settings by hand.
    """
    reading = [one for one in settings if one.partition("=")[0].strip() == READING]
    settings = [one for one in settings if one not in reading]
    if shipped_file(str(data["id"])) is None:
        return "changed by --set" if settings else ""
    try:
        own = load(str(data["id"]), settings=reading, mutants=False)[0]
        mine = Scenario.model_validate({key: value for key, value in data.items() if key not in _CLAIMS})
        as_set = _experiment(own, mode) == _experiment(mine, mode)
        if as_set or (not settings and _alike_but_assumed(own, mine, mode)):
            return ""
    except (ScenarioError, ValidationError):
        pass  # of another version of the catalogue, or of the scenario's form
    return "changed from the catalogue"


def _experiment(scenario: Scenario, mode: Mode) -> dict[str, Any]:
    data = scenario.in_mode(mode).normalised()
    return {key: value for key, value in data.items() if key not in _WORDS}


def _alike_but_assumed(own: Scenario, mine: Scenario, mode: Mode) -> bool:
    """Returns whether two scenarios are one where both have the same values for all that is assumed."""
    own, mine = own.in_mode(mode), mine.in_mode(mode)
    for address, assumed in own.assumed.items():
        # Keys that a stand-in does not have cannot differ.
        with suppress(OverrideError, ValidationError):
            both = [override(one, {address: assumed.values[0]}, drop_checks=True) for one in (own, mine)]
            own, mine = both[0].model_copy(update={"assumed": own.assumed}), both[1]
    return _experiment(own, mode) == _experiment(mine, mode)
