"""Queue disciplines and their settings. Defaults are those of the RFC or of Linux, as stated at each.

A limit counts the packet being sent too. It is bytes, packets, a time that the rate takes to drain it, BDP,
or the greatest or the least of these: ``max(0.5 BDP, 4 packets)``.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.path.commas import CHOICES
from streamgauge.scenario.path.common import (
    Flag,
    LimitChoice,
    QueueLimit,
    Settings,
    at_most_everything,
    choose,
    form,
    not_zero,
    whole_packets,
)
from streamgauge.scenario.values import Model, a_quantity, issue
from streamgauge.units import Frequency, Packets, Percent, Quantity, Size, Time

__all__ = [
    "QUEUES",
    "CoDel",
    "CoDelSettings",
    "Drd",
    "DrdSettings",
    "DropTail",
    "DualPi2",
    "DualPi2Settings",
    "FqCoDel",
    "FqCoDelSettings",
    "NistNet",
    "Pie",
    "PieSettings",
    "Queue",
    "Red",
    "RedSettings",
    "limit_of",
    "red_thresholds",
]

Threshold = a_quantity(Size, Packets)


def _limit_sound(limit: Any, key: str) -> None:
    for one in limit.limits if isinstance(limit, LimitChoice) else (limit,):
        if isinstance(one, Packets):
            whole_packets(one, key)


def _target_sound(target: Time, interval: Time) -> None:
    not_zero(target, "target", "a target")
    if not target < interval:
        raise issue(
            f"a target of {target} is not below the interval of {interval}",
            "target",
            "RFC 8289 section 4 sets it to 5 to 10 % of the interval",
        )


class DropTail(Model):
    """Drops arrivals that do not fit. The limit counts the packet being sent too."""

    droptail: QueueLimit

    @model_validator(mode="after")
    def _sound(self) -> DropTail:
        _limit_sound(self.droptail, "droptail")
        return self


class NistNet(Model):
    """Drop-tail as NIST Net has it: the limit counts packets in the delay behind the link too."""

    nistnet: Packets

    @model_validator(mode="after")
    def _sound(self) -> NistNet:
        whole_packets(self.nistnet, "nistnet")
        return self


class DrdSettings(Settings):
    """Derivative random drop, NIST Net's own: drops more the more packets are held, those in the delay behind
    the link included."""

    min: Packets
    """Up to here nothing is dropped (drdmin)."""
    max: Packets
    """From here on 95 % are dropped (drdmax)."""
    congested: Packets | None = None
    """From here on ECN-capable packets that are taken are marked (drdcongest); never if left out."""
    limit: QueueLimit | None = None
    """None if left out."""

    @model_validator(mode="after")
    def _sound(self) -> DrdSettings:
        for key in ("min", "max", "congested"):
            count: Packets | None = getattr(self, key)
            if count is not None:
                whole_packets(count, key, "a threshold")
        if not self.min < self.max:
            raise issue(f"a min of {self.min} is not below the max of {self.max}", "min")
        _limit_sound(self.limit, "limit")
        if isinstance(self.limit, Packets) and self.limit < self.max:
            raise issue(f"a max of {self.max} is above the limit of {self.limit}, which drops first", "max")
        return self


class Drd(Model):
    """Derivative random drop."""

    drd: DrdSettings


class RedSettings(Settings):
    """Random early detection (Floyd and Jacobson 1993)."""

    first: ClassVar[str | None] = "limit"

    limit: QueueLimit
    """Arrivals that do not fit are dropped."""
    min: Threshold | None = None  # type: ignore[valid-type]
    """Below this average nothing is dropped; a third of `max` if left out, as tc-red does."""
    max: Threshold | None = None  # type: ignore[valid-type]
    """The average at which the probability reaches `max_probability`; a quarter of `limit` if left out."""
    max_probability: Percent = Field(default=Percent("10 %"))
    """Probability of a drop or mark at `max` (Floyd 1997 recommends 10 %)."""
    weight: Percent = Field(default=Percent("0.2 %"))
    """Weight of the newest queue length in the average (Floyd and Jacobson 1993, section 6: 0.002)."""
    gentle: Flag = True
    """Above `max` the probability rises to 1 at twice `max`, instead of at once (Floyd 2000)."""
    ecn: Flag = False
    """Marks ECN-capable packets instead of dropping them (RFC 3168)."""
    mean_packet: Size = Field(default=Size("1000 B"))
    """For the decay of the average while the queue is empty."""

    @model_validator(mode="after")
    def _sound(self) -> RedSettings:
        _limit_sound(self.limit, "limit")
        for key in ("min", "max"):
            threshold = getattr(self, key)
            if threshold is None:
                continue
            if threshold.amount == 0:
                raise issue("a threshold of 0 makes no sense; expected such as 10 packets", key)
            if isinstance(self.limit, Size | Packets) and type(threshold) is not type(self.limit):
                raise issue(
                    f"a threshold of {threshold} beside a limit of {self.limit}; both are counted alike, in "
                    "bytes or in packets",
                    key,
                )
        if self.min is not None and self.max is not None and not self.min < self.max:
            raise issue(f"a min of {self.min} is not below the max of {self.max}", "min")
        if self.max is not None and type(self.max) is type(self.limit) and self.limit < self.max:
            raise issue(f"a max of {self.max} is above the limit of {self.limit}", "max")
        for key in ("max_probability", "weight"):
            share: Percent = getattr(self, key)
            at_most_everything(share, key, key)
            if share.amount == 0:
                raise issue(f"a {key} of 0 never drops anything; expected more than 0 %", key)
        not_zero(self.mean_packet, "mean_packet", "a packet")
        return self


def red_thresholds(red: RedSettings, held: int) -> tuple[int, int]:
    """Returns `min` and `max` as numbers in the unit of a limit of ``held``. Missing values are tc-red's:
    `max` a quarter of the limit, `min` a third of that."""
    most = int(red.max.amount) if red.max is not None else max(2, held // 4)
    return int(red.min.amount) if red.min is not None else max(1, most // 3), most


class Red(Model):
    """Random early detection."""

    red: RedSettings


class CoDelSettings(Settings):
    """Controlled delay (RFC 8289)."""

    first: ClassVar[str | None] = "limit"

    limit: QueueLimit = Field(default=Packets("1000 packets"))
    """Linux's by default."""
    target: Time = Field(default=Time("5 ms"))
    """Acceptable standing delay (section 4)."""
    interval: Time = Field(default=Time("100 ms"))
    """A worst-case round-trip time (section 4)."""
    ecn: Flag = False
    """Marks ECN-capable packets instead of dropping them."""
    mtu: Size = Field(default=Size("1514 B"))
    """A queue of no more bytes is never too long."""

    @model_validator(mode="after")
    def _sound(self) -> CoDelSettings:
        _limit_sound(self.limit, "limit")
        _target_sound(self.target, self.interval)
        not_zero(self.mtu, "mtu", "a packet")
        return self


class CoDel(Model):
    """Controlled delay."""

    codel: CoDelSettings


class FqCoDelSettings(Settings):
    """Flow queue CoDel (RFC 8290): a CoDel queue for each flow, served by deficit round robin."""

    first: ClassVar[str | None] = "limit"

    limit: QueueLimit = Field(default=Packets("10240 packets"))
    """Limit of all queues together (section 5.2)."""
    target: Time = Field(default=Time("5 ms"))
    interval: Time = Field(default=Time("100 ms"))
    flows: Annotated[int, Field(ge=1, le=65536)] = 1024
    """How many queues flows are hashed to (section 5.2)."""
    quantum: Size = Field(default=Size("1514 B"))
    """Bytes that a queue may send in its turn (section 5.2)."""
    ecn: Flag = True
    """Marks ECN-capable packets instead of dropping them; on by default (section 5.2)."""
    mtu: Size = Field(default=Size("1514 B"))
    """Each queue's CoDel ``mtu``."""

    @model_validator(mode="after")
    def _sound(self) -> FqCoDelSettings:
        _limit_sound(self.limit, "limit")
        _target_sound(self.target, self.interval)
        not_zero(self.mtu, "mtu", "a packet")
        if self.quantum < self.mtu:
            raise issue(
                f"a quantum of {self.quantum.bytes} B is less than a packet of {self.mtu.bytes} B, so a turn "
                "may send nothing",
                "quantum",
                f"expected at least {self.mtu.bytes} B, or a smaller mtu",
            )
        return self


class FqCoDel(Model):
    """Flow queue CoDel."""

    fq_codel: FqCoDelSettings


class PieSettings(Settings):
    """Proportional integral controller enhanced (RFC 8033)."""

    first: ClassVar[str | None] = "limit"

    limit: QueueLimit = Field(default=Packets("1000 packets"))
    """Linux's by default."""
    target: Time = Field(default=Time("15 ms"))
    """Queueing delay aimed at (section 4.2)."""
    update: Time = Field(default=Time("15 ms"))
    """Between two updates of the drop probability."""
    alpha: Frequency = Field(default=Frequency("0.125 Hz"))
    """Change of the probability per second of delay off the target."""
    beta: Frequency = Field(default=Frequency("1.25 Hz"))
    """Change of the probability per second by which the delay has changed."""
    max_burst: Time = Field(default=Time("150 ms"))
    """Bursts up to this length are let through (section 4.4)."""
    ecn: Flag = False
    """Marks ECN-capable packets instead of dropping them while the probability is low (section 5.1)."""
    mark_below: Percent = Field(default=Percent("10 %"))
    """The probability above which ECN-capable packets too are dropped."""
    mean_packet: Size = Field(default=Size("1514 B"))
    """While no more than two of these wait nothing is dropped."""
    delay: Literal["timestamps", "departure_rate"] = "timestamps"
    """How the queueing delay is found (sections 4.3 and 5.2)."""
    derandomize: Flag = True
    """Spaces the drops out (section 5.4), as Linux does."""

    @model_validator(mode="after")
    def _sound(self) -> PieSettings:
        _limit_sound(self.limit, "limit")
        _limit_above_target(self)
        not_zero(self.mean_packet, "mean_packet", "a packet")
        not_zero(self.target, "target", "a target")
        not_zero(self.update, "update", "an update interval")
        _gains(self)
        at_most_everything(self.mark_below, "mark_below", "probability")
        return self


class Pie(Model):
    """Proportional integral controller enhanced."""

    pie: PieSettings


class DualPi2Settings(Settings):
    """DualQ coupled AQM with a PI2 base (RFC 9332, appendix A): ECT(1) packets have a queue of their own."""

    first: ClassVar[str | None] = "limit"

    limit: QueueLimit = Field(default=Time("250 ms"))
    """Limit of both queues together."""
    target: Time = Field(default=Time("15 ms"))
    """Queueing delay aimed at for classic traffic."""
    update: Time = Field(default=Time("16 ms"))
    """Between two updates of the base probability."""
    alpha: Frequency = Field(default=Frequency("0.16 Hz"))
    """Change of the base probability per second of delay off the target."""
    beta: Frequency = Field(default=Frequency("3.2 Hz"))
    """Change of the base probability per second by which the delay has changed."""
    coupling: Annotated[float, Field(gt=0, le=100)] = 2.0
    """The L4S probability is the base probability times this (k); the classic one is its square."""
    l4s_step: Time | None = None
    """Every L4S packet that has waited this long is marked; instead of the ramp."""
    l4s_min: Time = Field(default=Time("800 us"))
    """Sojourn time from which L4S packets are marked at all (minTh)."""
    l4s_range: Time = Field(default=Time("400 us"))
    """Width of the ramp; at its end all packets are marked."""
    l4s_packets: Annotated[int, Field(ge=0, le=10_000)] = 1
    """Number of packets in the L4S queue up to which none is marked for its own delay."""
    classic_share: Percent = Field(default=Percent("10 %"))
    """Share of the bytes sent while both queues hold packets, in weighted round robin; the default is
    Linux's."""
    time_shift: Time | None = None
    """Serves the queue with the longer wait at its head, the L4S one with this head start; instead of
    weights."""

    @model_validator(mode="after")
    def _sound(self) -> DualPi2Settings:
        _limit_sound(self.limit, "limit")
        _limit_above_target(self)
        not_zero(self.target, "target", "a target")
        not_zero(self.update, "update", "an update interval")
        _gains(self)
        for key, instead in _INSTEAD:
            default = type(self).model_fields[instead].default
            if getattr(self, key) is not None and getattr(self, instead) != default:
                raise issue(f"'{key}' and '{instead}' exclude each other", instead)
        if self.l4s_step is not None:
            not_zero(self.l4s_step, "l4s_step", "a sojourn time")
        not_zero(self.l4s_range, "l4s_range", "a ramp")
        share = self.classic_share.amount
        if share != int(share) or not 1 <= share <= 99:
            raise issue(
                f"a share of {self.classic_share} starves a queue; expected a whole 1 to 99 %",
                "classic_share",
            )
        return self


_INSTEAD = (("l4s_step", "l4s_min"), ("l4s_step", "l4s_range"), ("time_shift", "classic_share"))


class DualPi2(Model):
    """DualQ coupled AQM."""

    dualpi2: DualPi2Settings


def _limit_above_target(model: PieSettings | DualPi2Settings) -> None:
    if isinstance(model.limit, Time) and not model.target < model.limit:
        raise issue(
            f"a target of {model.target} is not below the limit of {model.limit}, which drops first", "target"
        )


def _gains(model: PieSettings | DualPi2Settings) -> None:
    for key in ("alpha", "beta"):
        gain: Frequency = getattr(model, key)
        if gain.amount == 0:
            raise issue(f"a gain of 0 never changes the probability; expected such as {gain.example}", key)


QUEUES: dict[str, type[Any]] = {
    "droptail": DropTail,
    "nistnet": NistNet,
    "drd": Drd,
    "red": Red,
    "codel": CoDel,
    "fq_codel": FqCoDel,
    "pie": Pie,
    "dualpi2": DualPi2,
}
_NEED_LIMIT = ("droptail", "nistnet", "red")


def queue_words(value: Any) -> Any:
    """``droptail 10 kB`` is short for ``{droptail: 10 kB}``."""
    if isinstance(value, str) and (value.strip()[:1].isdigit() or value.strip().startswith(CHOICES)):
        raise issue(f"{value!r} names no queue discipline; expected such as 'droptail {value}'")
    chosen = choose(value, "queue discipline", QUEUES, "droptail 10 kB")
    if isinstance(chosen, dict):
        for name in _NEED_LIMIT:
            if name in chosen and chosen[name] is None:
                raise issue(f"{name} needs a limit; expected such as '{name} 100 packets'", name)
    return chosen


_SHORT = r"^\s*((droptail|nistnet|red|drd)\s+\S.*|(codel|fq_codel|pie|dualpi2)(\s+\S.*)?)$"
AnyQueue = DropTail | NistNet | Drd | Red | CoDel | FqCoDel | Pie | DualPi2
Queue = Annotated[
    Annotated[DropTail, Tag("~droptail")]
    | Annotated[NistNet, Tag("~nistnet")]
    | Annotated[Drd, Tag("~drd")]
    | Annotated[Red, Tag("~red")]
    | Annotated[CoDel, Tag("~codel")]
    | Annotated[FqCoDel, Tag("~fq_codel")]
    | Annotated[Pie, Tag("~pie")]
    | Annotated[DualPi2, Tag("~dualpi2")],
    Discriminator(lambda value: form(value, "droptail", **QUEUES)),
    BeforeValidator(queue_words, json_schema_input_type=Annotated[str, Field(pattern=_SHORT)] | AnyQueue),
]


def limit_of(queue: AnyQueue) -> tuple[tuple[str, ...], Quantity | LimitChoice | None]:
    """Returns the place of a queue's limit, relative to the queue, and the limit; ``None`` for no limit."""
    name = next(iter(type(queue).model_fields))
    inner = getattr(queue, name)
    if isinstance(inner, Quantity | LimitChoice):
        return (name,), inner
    return (name, "limit"), inner.limit
