"""The path as a scenario says it: `down` and `up`, each a shorthand or a chain of named stages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.values import FLOW_NAME, TAG_MARK, Model, a_quantity, issue, nearest
from streamgauge.units import Bdp, Packets, Percent, Rate, Size, Time

__all__ = [
    "MAX_IP_BYTES",
    "Bernoulli",
    "Delay",
    "DelaySteps",
    "Direction",
    "DropTail",
    "Gilbert",
    "GilbertRuns",
    "Link",
    "Loss",
    "Path",
    "RateSteps",
    "Square",
    "SquareWave",
    "Stage",
]

#: The largest IP packet that we send; a bottleneck counts 14 bytes more unless its layer is ip.
MAX_IP_BYTES = 1500
QUEUES = ("droptail",)


def _ascending(times: list[Time], key: str) -> None:
    for index, (before, after) in enumerate(itertools.pairwise(times)):
        if not before < after:
            raise issue(f"{after} does not come after {before}; times must ascend", (key, index + 1, "at"))


class RateStep(Model):
    """From `at` on, `rate`. Zero is an outage."""

    at: Time
    rate: Rate


class RateSteps(Model):
    """A rate that changes at given times, the first at 0 s."""

    steps: tuple[RateStep, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> RateSteps:
        if self.steps[0].at.ns != 0:
            raise issue(f"the first step is at {self.steps[0].at}; it must be at 0 s", ("steps", 0, "at"))
        _ascending([step.at for step in self.steps], "steps")
        if self.steps[-1].rate.bps == 0:
            raise issue(
                "the last step's rate is 0, so nothing would ever get through",
                ("steps", len(self.steps) - 1, "rate"),
            )
        return self


class SquareWave(Model):
    """`first` for half a period, `second` for the other half, and again."""

    first: Rate
    second: Rate
    period: Time

    @model_validator(mode="after")
    def _sound(self) -> SquareWave:
        if self.period.ns < 2:
            raise issue(f"a period of {self.period} has no halves", "period")
        if self.first.bps == 0 and self.second.bps == 0:
            raise issue("both rates are 0, so nothing would ever get through", "first")
        return self


class Square(Model):
    """A square wave of the rate."""

    square: SquareWave


def _form(value: Any, plain: str, **forms: type[Any]) -> str:
    """The tag of the form that ``value`` has."""
    for name, form in forms.items():
        if isinstance(value, form):
            return TAG_MARK + name
    if isinstance(value, dict):
        for name in forms:
            if name in value:
                return TAG_MARK + name
        close = [found for key in value if (found := nearest(str(key), forms))]
        return TAG_MARK + (close[0] if close else next(iter(forms)))
    return TAG_MARK + plain


LinkRate = Annotated[
    Annotated[Rate, Tag("~constant")]
    | Annotated[RateSteps, Tag("~steps")]
    | Annotated[Square, Tag("~square")],
    Discriminator(lambda value: _form(value, "constant", steps=RateSteps, square=Square)),
]


class DropTail(Model):
    """Drops arrivals that do not fit. The limit counts the packet being sent too."""

    droptail: a_quantity(Size, Packets, Time, Bdp)  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _sound(self) -> DropTail:
        limit = self.droptail
        if isinstance(limit, Packets) and (limit.amount < 1 or limit.amount != int(limit.amount)):
            raise issue(
                f"a queue of {limit} cannot hold one packet; expected a whole number of packets, 1 or more",
                "droptail",
            )
        return self


def _queue_words(value: Any) -> Any:
    """``droptail 10 kB`` is short for ``{droptail: 10 kB}``."""
    if isinstance(value, str):
        discipline, _, limit = value.strip().partition(" ")
        if discipline in QUEUES:
            return {discipline: limit.strip() or "nothing"}
        if discipline[:1].isdigit():
            raise issue(f"{value!r} names no queue discipline; expected such as 'droptail {value}'")
        close = nearest(discipline, QUEUES)
        raise issue(
            f"unknown queue discipline '{discipline}'; expected one of {', '.join(QUEUES)}",
            hint=f"did you mean 'droptail {limit.strip()}'?" if close else None,
        )
    if not isinstance(value, dict | DropTail):
        raise issue(f"{value!r} is not a queue; expected such as 'droptail 10 kB'")
    return value


Queue = Annotated[
    DropTail,
    BeforeValidator(
        _queue_words, json_schema_input_type=Annotated[str, Field(pattern=r"^\s*droptail\s+\S.*$")] | DropTail
    ),
]


class Switch(Model):
    """Loss goes on or off at a time. It is on from the start unless the first switch is at 0 s."""

    at: Time
    to: Literal["on", "off"]


class GilbertRuns(Model):
    """Mean lengths of the runs of delivered and of lost packets."""

    good: Packets
    bad: Packets

    @model_validator(mode="after")
    def _sound(self) -> GilbertRuns:
        for key in ("good", "bad"):
            run: Packets = getattr(self, key)
            if run.amount < 1:
                raise issue(f"a mean run of {run} is shorter than one packet", key)
        return self


class _Switched(Model):
    switch: tuple[Switch, ...] = ()

    @model_validator(mode="after")
    def _switches_ascend(self) -> _Switched:
        _ascending([switch.at for switch in self.switch], "switch")
        return self


class Bernoulli(_Switched):
    """Each packet is lost with this probability, independently."""

    bernoulli: Percent

    @model_validator(mode="after")
    def _sound(self) -> Bernoulli:
        if self.bernoulli.amount > Decimal(100):
            raise issue(
                f"a loss of {self.bernoulli} is more than everything; expected 0 to 100 %", "bernoulli"
            )
        return self


class Gilbert(_Switched):
    """Two-state Markov loss (Gilbert 1960): the good state delivers, the bad state drops."""

    gilbert: GilbertRuns


def _loss_words(value: Any) -> Any:
    return {"bernoulli": value} if isinstance(value, str | Percent | int | float) else value


LossModel = Annotated[
    Annotated[Bernoulli, Tag("~bernoulli")] | Annotated[Gilbert, Tag("~gilbert")],
    Discriminator(lambda value: _form(value, "bernoulli", bernoulli=Bernoulli, gilbert=Gilbert)),
]
LossValue = Annotated[
    LossModel,
    BeforeValidator(_loss_words, json_schema_input_type=Percent | Bernoulli | Gilbert),
]


class DelayStep(Model):
    """From `at` on, `delay`."""

    at: Time
    delay: Time


class DelaySteps(Model):
    """A delay that changes at given times, the first at 0 s."""

    steps: tuple[DelayStep, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> DelaySteps:
        if self.steps[0].at.ns != 0:
            raise issue(f"the first step is at {self.steps[0].at}; it must be at 0 s", ("steps", 0, "at"))
        _ascending([step.at for step in self.steps], "steps")
        return self


DelayValue = Annotated[
    Annotated[Time, Tag("~constant")] | Annotated[DelaySteps, Tag("~steps")],
    Discriminator(lambda value: _form(value, "constant", steps=DelaySteps)),
]
Layer = Literal["ethernet", "ip"]


class Loss(Model):
    """A stage that loses packets at random."""

    name: str
    loss: LossValue


class Link(Model):
    """A bottleneck: a rate and the queue in front of it."""

    name: str
    rate: LinkRate
    queue: Queue
    layer: Layer = "ethernet"

    @property
    def packet_bytes(self) -> int:
        """The largest packet as this stage counts it."""
        return MAX_IP_BYTES + (14 if self.layer == "ethernet" else 0)

    def rates_bps(self) -> list[int]:
        """Every rate that it takes, bit/s."""
        if isinstance(self.rate, Rate):
            return [self.rate.bps]
        if isinstance(self.rate, Square):
            return [self.rate.square.first.bps, self.rate.square.second.bps]
        return [step.rate.bps for step in self.rate.steps]


class Delay(Model):
    """A propagation delay, one way."""

    name: str
    delay: DelayValue


Stage = Annotated[
    Annotated[Loss, Tag("~loss")] | Annotated[Link, Tag("~rate")] | Annotated[Delay, Tag("~delay")],
    Discriminator(lambda value: _stage_form(value)),
]


def _stage_form(value: Any) -> str:
    if isinstance(value, dict) and "queue" in value:
        return TAG_MARK + "rate"
    return _form(value, "rate", rate=Link, loss=Loss, delay=Delay)


class Direction(Model):
    """One direction of a path: ``loss``, then a bottleneck (``rate`` and ``queue``), then ``delay``, each of
    which may be left out; or the same and more as ``stages``, in the order that packets cross them."""

    loss: LossValue | None = None
    rate: LinkRate | None = None
    queue: Queue | None = None
    layer: Layer = "ethernet"
    delay: DelayValue | None = None
    stages: tuple[Stage, ...] | None = None

    @model_validator(mode="after")
    def _sound(self) -> Direction:
        short = [key for key in ("loss", "rate", "queue", "delay") if getattr(self, key) is not None]
        if self.stages is not None:
            if short:
                raise issue(
                    f"'{short[0]}' and 'stages' exclude each other; write {short[0]} as a stage", short[0]
                )
            names = [stage.name for stage in self.stages]
            for index, name in enumerate(names):
                if not FLOW_NAME.fullmatch(name):
                    raise issue(
                        f"{name!r} is not a name; expected a letter, then letters, digits or _",
                        ("stages", index, "name"),
                    )
                if name in names[:index]:
                    raise issue(
                        f"two stages are called '{name}'; names are unique within a direction",
                        ("stages", index, "name"),
                    )
        if self.rate is not None and self.queue is None:
            raise issue("a rate needs a queue in front of it", "rate", "add such as 'queue: droptail 10 kB'")
        if self.queue is not None and self.rate is None:
            raise issue("a queue needs the rate that drains it", "queue", "add such as 'rate: 1 Mbit/s'")
        for where, link in self.links():
            self._link_sound(where, link)
        return self

    @staticmethod
    def _link_sound(where: tuple[str | int, ...], link: Link) -> None:
        if isinstance(link.rate, Rate) and link.rate.bps == 0:
            raise issue("a rate of 0 lets nothing through; expected more than 0 bit/s", (*where, "rate"))
        limit, most = link.queue.droptail, link.packet_bytes
        held: float | None = None
        if isinstance(limit, Size):
            held = limit.bytes
        elif isinstance(limit, Time):
            held = max(link.rates_bps()) * limit.s / 8
        if held is not None and held < most:
            meaning = "" if isinstance(limit, Size) else f", {held:.0f} B at its highest rate,"
            raise issue(
                f"a queue of {limit}{meaning} cannot hold one packet of {most} B",
                (*where, "queue"),
                f"expected at least {most} B",
            )

    def chain(self) -> tuple[Any, ...]:
        """The stages in the order that packets cross them; empty for a plain wire."""
        if self.stages is not None:
            return self.stages
        made: list[Any] = []
        if self.loss is not None:
            made.append(Loss(name="loss", loss=self.loss))
        if self.rate is not None and self.queue is not None:
            made.append(Link(name="bottleneck", rate=self.rate, queue=self.queue, layer=self.layer))
        if self.delay is not None:
            made.append(Delay(name="delay", delay=self.delay))
        return tuple(made)

    def links(self) -> Iterator[tuple[tuple[str | int, ...], Link]]:
        """Every bottleneck with where it stands."""
        for index, stage in enumerate(self.chain()):
            if isinstance(stage, Link):
                yield (("stages", index) if self.stages is not None else ()), stage

    def delay_ns(self) -> int:
        """Propagation delay at t = 0, ns."""
        total = 0
        for stage in self.chain():
            if isinstance(stage, Delay):
                delay = stage.delay
                total += delay.ns if isinstance(delay, Time) else delay.steps[0].delay.ns
        return total


class Path(Model):
    """What packets cross: ``down`` from server to player, ``up`` back."""

    down: Direction
    up: Direction = Field(default_factory=Direction)

    def base_rtt_ns(self) -> int:
        """Round-trip propagation delay at t = 0, ns."""
        return self.down.delay_ns() + self.up.delay_ns()
