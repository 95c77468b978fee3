"""Parts of a path that a user may change while a trial runs, and the parsing of requests into changes of
stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.path.changes import SETTINGS, PathChange, change_of, unfit_change
from streamgauge.scenario.problems import problems_of
from streamgauge.scenario.values import nearest
from streamgauge.units import Packets, Percent, Quantity, Rate, Size, Time

__all__ = ["Control", "controls_of", "read_change"]

KINDS = {"rate": "bottleneck", "queue": "bottleneck", "ecn": "bottleneck", "loss": "loss"}


@dataclass(frozen=True)
class Control:
    """One setting of one direction."""

    name: str
    """Such as ``down.rate``."""
    value: str
    """At the start, with its unit."""
    number: float
    """The same in `unit`."""
    unit: str
    """Range of a slider's numbers."""
    top: float
    """The largest that a slider offers."""
    stage: str
    """The stage that it belongs to."""

    def as_data(self) -> dict[str, Any]:
        """For a page."""
        return {
            "name": self.name,
            "value": self.value,
            "number": self.number,
            "unit": self.unit,
            "top": self.top,
        }


def controls_of(path: Mapping[str, Any]) -> list[Control]:
    """Returns the settings of a plan's path that can change, in the order of a page."""
    found = []
    for direction in ("down", "up"):
        for name in SETTINGS:
            if unfit_change(dict(path), direction, name) is None:
                stages = path[direction]
                kind = KINDS.get(name, "delay")
                stage = next(stage for stage in stages if kind in stage["kind"])
                value, number, unit, top = _at_start(name, stage["kind"][kind])
                found.append(Control(f"{direction}.{name}", value, number, unit, top, stage["name"]))
    return found


def _at_start(name: str, kind: Mapping[str, Any]) -> tuple[str, float, str, float]:
    """Value in words, number, unit and a slider's top."""
    match name:
        case "rate":
            bps = _first_rate(kind["rate"])
            return str(Rate.of(bps)), bps / 1e3, "kbit/s", max(4 * bps / 1e3, 1000.0)
        case "queue":
            return _limit(kind["queue"])
        case "ecn":
            ((_, queue),) = kind["queue"].items()
            on = bool(queue.get("ecn"))
            return "on" if on else "off", float(on), "", 1.0
        case "delay":
            steps = kind.get("steps") or []
            ns = steps[0][1] if steps and steps[0][0] == 0 else kind["delay"]
            return str(Time.of(ns)), ns / 1e6, "ms", max(4 * ns / 1e6, 400.0)
        case "jitter":
            spread = (kind.get("jitter") or {}).get("distribution", {}).get("uniform", {}).get("spread", 0)
            return str(Time.of(spread)), spread / 1e6, "ms", max(4 * spread / 1e6, 100.0)
    share = kind["model"].get("bernoulli", {}).get("probability", 0.0)
    return str(Percent.of(round(100 * share, 6))), 100 * share, "%", max(min(100.0, 400 * share), 10.0)


def _first_rate(rate: Mapping[str, Any]) -> int:
    if "constant" in rate:
        return int(rate["constant"])
    if "square" in rate:
        return int(rate["square"]["first"])
    return int(rate["steps"][0][1])


def _limit(queue: Mapping[str, Any]) -> tuple[str, float, str, float]:
    ((_, settings),) = queue.items()
    limit = settings.get("limit", settings)
    if "bytes" in limit:
        held = limit["bytes"]
        return str(Size.of(held)), held / 1e3, "kB", max(4 * held / 1e3, 100.0)
    if "time" in limit:
        return str(Time.of(limit["time"])), limit["time"] / 1e6, "ms", max(4 * limit["time"] / 1e6, 1000.0)
    return str(Packets.of(limit["packets"])), float(limit["packets"]), "packets", 4.0 * limit["packets"]


def read_change(
    asked: Any, controls: Mapping[str, Control], path: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], str | None, dict[str, str]]:
    """Reads a request, such as ``{"down.rate": "500 kbit/s"}``: changes of stages, a mark, and the settings
    in words.

    Raises ScenarioError with one line that names the setting and a valid value.
    """
    if not isinstance(asked, dict) or not asked:
        raise ScenarioError('a change is an object with settings; give such as {"down.rate": "500 kbit/s"}')
    for key in asked:
        if key != "mark" and key not in controls:
            raise ScenarioError(_unknown(str(key), controls, path))
    try:
        change = PathChange.model_validate({"at": "0 s", **asked})
    except ValidationError as error:
        problem = problems_of(error)[0]
        where = ".".join(str(part) for part in problem.path) or None
        raise ScenarioError(problem.why, key=where, hint=problem.hint) from None
    changes = []
    words = {}
    for direction, name, value in change.settings():
        key = f"{direction}.{name}"
        changes.append({"dir": direction, "stage": controls[key].stage, "change": change_of(name, value)})
        words[key] = _word(value)
    return changes, change.mark, words


def _word(value: Quantity | bool) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _unknown(key: str, controls: Mapping[str, Control], path: Mapping[str, Any]) -> str:
    direction, _, name = key.partition(".")
    if direction in ("down", "up") and name in SETTINGS:
        why = unfit_change(dict(path), direction, name)
        return f"{key}: {why}"
    close = nearest(key, controls)
    meant = f"; did you mean '{close}'?" if close else ""
    return f"there is no setting {key[:40]!r}; there are {', '.join(controls)} and mark{meant}"
