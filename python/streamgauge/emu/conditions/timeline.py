"""A stage over time by the plan: the changes that it reports, and the settings between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.claims.dimension import plain

Kind = Mapping[str, Any]

LONGEST_IP_BYTES = 65_535


@dataclass(frozen=True)
class Change:
    """A change as the stage reports it."""

    at: int
    """ns since the trial's start."""
    name: str
    value: float | None
    """SI units; None where it depends on the packets that came."""


@dataclass(frozen=True)
class Span:
    """A setting for arrivals after `begin` and before `end`, ns.

    An arrival at an edge itself may have met either setting: departures of the previous stage precede a
    change at the same time, arrivals from outside follow it.
    """

    begin: int
    end: int
    value: Any

    def __str__(self) -> str:
        return f"from {plain(max(self.begin, 0) / 1e9)} s to {plain(self.end / 1e9)} s"


def switches(settings: Mapping[str, Any]) -> list[tuple[int, bool]]:
    """Returns the times at which a switched element is on, the state at 0 first."""
    given = [(int(at), bool(on)) for at, on in settings.get("switches") or ()]
    first = given[0][1] if given and given[0][0] == 0 else True
    return [(0, first), *((at, on) for at, on in given if at > 0)]


def delays(settings: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The base delay over time, ns, that at 0 first."""
    steps = [(int(at), int(delay)) for at, delay in settings.get("steps") or ()]
    first = steps[0][1] if steps and steps[0][0] == 0 else int(settings["delay"])
    return [(0, first), *((at, delay) for at, delay in steps if at > 0)]


def rates(settings: Mapping[str, Any], duration: int) -> list[tuple[int, int]] | None:
    """A bottleneck's rate over time, bit/s, that at 0 first; None where a trace sets it packet by packet."""
    rate = settings["rate"]
    if "constant" in rate:
        return [(0, int(rate["constant"]))]
    if "steps" in rate:
        return [(int(at), int(bps)) for at, bps in rate["steps"]]
    if "square" in rate:
        wave = rate["square"]
        return [(at, int(wave["first" if first else "second"])) for at, first in _edges(wave, duration)]
    return None


def _edges(wave: Mapping[str, Any], duration: int) -> Iterator[tuple[int, bool]]:
    period, edge = int(wave["period"]), 0
    while (at := period * (edge // 2) + (period // 2 if edge % 2 else 0)) < duration:
        yield at, edge % 2 == 0
        edge += 1


def spans(settings: Sequence[tuple[int, Any]], duration: int) -> list[Span]:
    """Settings with the time from which each holds, ascending from 0, as spans up to `duration`."""
    ends = [at for at, _ in settings[1:]] + [duration + 1]
    begins = [-1, *(at for at, _ in settings[1:])]
    return [
        Span(begin, min(end, duration + 1), value)
        for begin, end, (_, value) in zip(begins, ends, settings, strict=True)
        if begin <= duration
    ]


def changes(kind: Kind, duration: int) -> list[Change]:
    """Returns a stage's reports after time 0 and before `duration`, in order of time."""
    (name, settings), *_ = kind.items()
    found: list[Change] = []
    if name == "bottleneck":
        found = [Change(at, "rate", float(bps)) for at, bps in rates(settings, duration) or ()]
    elif name == "delay":
        found = [Change(at, "delay", delay / 1e9) for at, delay in delays(settings)]
        jitter = settings.get("jitter")
        if jitter is not None:
            size = jitter_size(jitter["distribution"]) / 1e9
            found += [Change(at, "jitter", size if on else 0.0) for at, on in switches(jitter)]
    else:
        what, value, off = _switched(name, settings)
        found = [Change(at, what, value if on else off) for at, on in switches(settings)]
    found += _steered(settings)
    return sorted((one for one in found if 0 < one.at < duration), key=lambda one: one.at)


def _steered(settings: Mapping[str, Any]) -> list[Change]:
    """Returns the reports of a value that only `changes` change."""
    found = []
    for at, change in settings.get("changes") or ():
        ((name, value),) = change.items()
        match name:
            case "loss":
                found.append(Change(int(at), "loss_ratio", float(value)))
            case "jitter":
                found.append(Change(int(at), "jitter", value / 1e9))
            case "ecn":
                found.append(Change(int(at), "ecn", float(value)))
            case "limit":
                ((unit, held),) = value.items()
                found.append(Change(int(at), "queue_limit", held / 1e9 if unit == "time" else float(held)))
    return found


def steered(settings: Mapping[str, Any], name: str, first: Any) -> list[tuple[int, Any]]:
    """A setting over time that `changes` change, `first` at 0."""
    later = [(int(at), change[name]) for at, change in settings.get("changes") or () if name in change]
    at_start = [value for at, value in later if at == 0]
    return [(0, at_start[-1] if at_start else first), *((at, value) for at, value in later if at > 0)]


def _switched(name: str, settings: Mapping[str, Any]) -> tuple[str, float | None, float]:
    """Returns the name of a switched stage's report, its value while on and its value while off."""
    match name:
        case "loss":
            if "list" in settings["model"]:
                return "loss_list", None, 0.0
            return "loss_ratio", loss_ratio(settings["model"]), 0.0
        case "reorder":
            share = settings.get("probability")
            return "reorder_ratio", share if share is not None else 1 / settings["every"], 0.0
        case "mtu":
            return "mtu", float(settings["bytes"]), float(LONGEST_IP_BYTES)
        case "block":
            return f"{settings['protocol']}_blocked", 1.0, 0.0
    return f"{name}_ratio", settings["probability"], 0.0


def loss_ratio(model: Mapping[str, Any]) -> float:
    """Mean share of packets that a random loss model loses."""
    if "bernoulli" in model:
        return float(model["bernoulli"]["probability"])
    (runs,) = model.values()
    good, bad = runs["good_packets"], runs["bad_packets"]
    return float((good * runs.get("loss_good", 0.0) + bad * runs.get("loss_bad", 1.0)) / (good + bad))


def jitter_size(distribution: Mapping[str, Any]) -> int:
    """The measure by which a stage reports its jitter, ns: spread, deviation, scale, or a table's range."""
    ((name, settings),) = distribution.items()
    if name == "table":
        return int(settings["quantiles"][-1] - settings["quantiles"][0])
    return int(settings[{"uniform": "spread", "normal": "deviation"}.get(name, "scale")])
