"""Settings of a path that change at times: changes by hand, kept as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from streamgauge.scenario.values import Flag, Model, issue
from streamgauge.units import Packets, Percent, Rate, Size, Time, UnitError, parse

__all__ = [
    "SETTINGS",
    "PathChange",
    "change_of",
    "changes_of",
    "make_steerable",
    "unfit_change",
    "with_changes",
]

Json = dict[str, Any]

SETTINGS = ("rate", "queue", "ecn", "delay", "jitter", "loss")
"""Settings of a direction that change while a trial runs."""
LIMITS = (Size, Packets, Time)
LONGEST_MARK = 200


def _limit(value: Any) -> Any:
    try:
        return parse(value, *LIMITS) if isinstance(value, str) else value
    except UnitError as error:
        raise issue(str(error)) from None


ChangedLimit = Annotated[
    Size | Packets | Time,
    BeforeValidator(_limit),
    PlainSerializer(str, return_type=str, when_used="json"),
]


class PathChange(Model):
    """From `at` on, other settings: ``{at: 5.2 s, down.rate: 500 kbit/s}``. Or a `mark`, a word in the
    record."""

    at: Time
    mark: str | None = Field(default=None, min_length=1, max_length=LONGEST_MARK)
    """A word in the record."""
    down_rate: Rate | None = Field(default=None, alias="down.rate")
    down_queue: ChangedLimit | None = Field(default=None, alias="down.queue")
    """How much the queue holds; its discipline stays."""
    down_ecn: Flag | None = Field(default=None, alias="down.ecn")
    """Whether the queue marks instead of dropping."""
    down_delay: Time | None = Field(default=None, alias="down.delay")
    down_jitter: Time | None = Field(default=None, alias="down.jitter")
    """Uniform, either way."""
    down_loss: Percent | None = Field(default=None, alias="down.loss")
    """At random, each packet by itself."""
    up_rate: Rate | None = Field(default=None, alias="up.rate")
    up_queue: ChangedLimit | None = Field(default=None, alias="up.queue")
    up_ecn: Flag | None = Field(default=None, alias="up.ecn")
    up_delay: Time | None = Field(default=None, alias="up.delay")
    up_jitter: Time | None = Field(default=None, alias="up.jitter")
    up_loss: Percent | None = Field(default=None, alias="up.loss")

    @model_validator(mode="after")
    def _sound(self) -> PathChange:
        if self.mark is None and not self.settings():
            raise issue(f"nothing changes at {self.at}", hint="add such as 'down.rate: 500 kbit/s'")
        for key in ("down", "up"):
            loss = getattr(self, f"{key}_loss")
            if loss is not None and loss.fraction > 1:
                raise issue(f"a loss of {loss} is more than every packet", f"{key}.loss")
        return self

    def settings(self) -> list[tuple[str, str, Any]]:
        """Direction, name and value of each setting that changes."""
        found = [
            (direction, name, getattr(self, f"{direction}_{name}"))
            for direction in ("down", "up")
            for name in SETTINGS
        ]
        return [one for one in found if one[2] is not None]


def change_of(name: str, value: Any) -> Json:
    """Returns a setting as crates/path/src/stage.rs reads it."""
    match name:
        case "rate":
            return {"rate": value.bps}
        case "delay" | "jitter":
            return {name: value.ns}
        case "loss":
            return {"loss": value.fraction}
        case "ecn":
            return {"ecn": value}
    if isinstance(value, Size):
        return {"limit": {"bytes": value.bytes}}
    if isinstance(value, Packets):
        return {"limit": {"packets": int(value.amount)}}
    return {"limit": {"time": value.ns}}


def _value_of(change: Mapping[str, Any]) -> tuple[str, Any]:
    """Returns `change_of` back: name and value."""
    ((name, value),) = change.items()
    match name:
        case "rate":
            return name, Rate.of(value)
        case "delay" | "jitter":
            return name, Time.of(value)
        case "loss":
            return name, _percent(value)
        case "ecn":
            return name, bool(value)
    ((unit, held),) = value.items()
    return "queue", {"bytes": Size.of, "packets": Packets.of, "time": Time.of}[unit](held)


def _percent(share: float) -> Percent:
    unit = Percent("100 %").amount
    return Percent.of(Decimal(repr(float(share))) * unit)


def changes_of(steered: Iterable[Mapping[str, Any]], until_ns: int) -> tuple[PathChange, ...]:
    """Returns the changes before `until_ns` that the driver of a path reports, in the form of a scenario."""
    at_once: dict[int, Json] = {}
    for one in steered:
        if one["t_ns"] >= until_ns:
            continue
        said = at_once.setdefault(one["t_ns"], {})
        if "mark" in one:
            said["mark"] = one["mark"]
            continue
        name, value = _value_of(one["change"])
        said[f"{one['dir']}.{name}"] = value
    return tuple(
        PathChange.model_validate({"at": Time.of(at), **said}) for at, said in sorted(at_once.items())
    )


_NEEDS = {
    "rate": "bottleneck",
    "queue": "bottleneck",
    "ecn": "bottleneck",
    "delay": "delay",
    "jitter": "delay",
    "loss": "loss",
}


def make_steerable(path: Json) -> None:
    """Adds the stages that loss and delay need, which do nothing yet, to both directions of a plan's path."""
    for direction in ("down", "up"):
        stages = path[direction]
        if not any("loss" in stage["kind"] for stage in stages):
            loss = {"model": {"bernoulli": {"probability": 0.0}}, "switches": []}
            stages.insert(0, {"name": _fresh("loss", stages), "kind": {"loss": loss}})
        if not any("delay" in stage["kind"] for stage in stages):
            stages.append({"name": _fresh("delay", stages), "kind": {"delay": {"delay": 0, "steps": []}}})
        delay = next(stage["kind"]["delay"] for stage in stages if "delay" in stage["kind"])
        if not _counts_delay(stages):
            none = {"distribution": {"uniform": {"spread": 0}}, "keep_order": True, "switches": []}
            delay.setdefault("jitter", none)


def _counts_delay(stages: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether a queue of NIST Net's counts packets in the delay behind it."""
    queues = [stage["kind"]["bottleneck"]["queue"] for stage in stages if "bottleneck" in stage["kind"]]
    return any("nistnet" in queue or "drd" in queue for queue in queues)


def _fresh(name: str, stages: Sequence[Mapping[str, Any]]) -> str:
    taken = {stage["name"] for stage in stages}
    return next(one for one in (name, *(f"{name}_{n}" for n in range(2, 99))) if one not in taken)


def with_changes(plan_path: Json, changes: Sequence[PathChange], end_ns: int | None) -> None:
    """Puts changes into a plan's path that `make_steerable` has been at.

    Rates and delays become steps of their own, which all readers of a plan support.
    """
    for change in sorted(changes, key=lambda one: one.at.ns):
        for direction, name, value in change.settings():
            stage = next(s for s in plan_path[direction] if _NEEDS[name] in s["kind"])
            kind = stage["kind"][_NEEDS[name]]
            if name == "rate":
                kind["rate"] = _stepped(kind["rate"], change.at.ns, value.bps, end_ns)
            elif name == "delay":
                kind["steps"] = _merged(kind.get("steps") or [], change.at.ns, value.ns)
            else:
                own = stage.setdefault("changes", [])
                own.append([change.at.ns, change_of(name, value)])
                own.sort(key=lambda one: one[0])  # a trace may have changes of its own


def _stepped(rate: Json, at: int, bps: int, end_ns: int | None) -> Json:
    if "constant" in rate:
        steps = [[0, rate["constant"]]]
    elif "square" in rate:
        wave = rate["square"]
        half, end = wave["period"] / 2, end_ns or at
        edges = range(int(end / half) + 1)
        steps = [[_edge(wave["period"], n), wave["second" if n % 2 else "first"]] for n in edges]
    else:
        steps = rate["steps"]
    return {"steps": _merged(steps, at, bps)}


def _edge(period: int, number: int) -> int:
    return period * (number // 2) + (period // 2 if number % 2 else 0)


def _merged(steps: Sequence[Sequence[int]], at: int, value: int) -> list[list[int]]:
    """Returns the steps with one more, which replaces any other of its time."""
    return sorted([*([*step] for step in steps if step[0] != at), [at, value]])


def unfit_change(path_plan: Json, direction: str, name: str) -> str | None:
    """Returns why a setting of a direction cannot change; None if it can."""
    stages = path_plan[direction]
    stage = next((s for s in stages if _NEEDS[name] in s["kind"]), None)
    if stage is None:
        return f"{direction} has no {'rate' if _NEEDS[name] == 'bottleneck' else name} that could change"
    kind = stage["kind"][_NEEDS[name]]
    if name == "rate" and "opportunities" in kind["rate"]:
        return f"a trace of delivery opportunities sets the rate of {direction}"
    if name == "ecn" and not {"codel", "fq_codel", "pie", "red", "dualpi2"} & kind["queue"].keys():
        return f"the queue of {direction} never marks; take such as codel"
    if name == "queue" and {"nistnet", "drd"} & kind["queue"].keys():
        return f"the limit of NIST Net's queue of {direction} is fixed"
    if name == "jitter" and _counts_delay(stages):
        return f"NIST Net's queue of {direction} counts packets in its delay, which stays as it is"
    return None
