"""How a bottleneck sends at its rate: packet after packet, by tokens, as Linux's CBQ, or waking by ticks."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.path.common import Settings, choose, form, not_zero, whole_packets
from streamgauge.scenario.values import Model, issue
from streamgauge.units import Packets, Rate, Size, Time

__all__ = [
    "SHAPERS",
    "Cbq",
    "CbqSettings",
    "Shaper",
    "Sleeping",
    "SleepingSettings",
    "TokenBucket",
    "TokenBucketSettings",
]


class TokenBucketSettings(Settings):
    """A token bucket, as ``tc tbf``."""

    first: ClassVar[str | None] = "burst"

    burst: Size
    """Bytes that may leave at once after a pause; at least the largest packet."""

    @model_validator(mode="after")
    def _sound(self) -> TokenBucketSettings:
        not_zero(self.burst, "burst", "a burst")
        return self


class TokenBucket(Model):
    """A packet leaves at once when tokens for all of it have gathered."""

    token_bucket: TokenBucketSettings


class CbqSettings(Settings):
    """One bounded class of class-based queueing (Floyd and Van Jacobson 1995)."""

    device_rate: Rate = Field(default=Rate("100 Mbit/s"))
    """Rate of the interface that the class is on; packets leave at it."""
    average_packet: Size = Field(default=Size("1000 B"))
    """Average packet size of the estimator, ``avpkt``."""
    max_burst: Packets = Field(default=Packets("20 packets"))
    """Average packets that may leave at once after a pause, ``maxburst``."""
    min_burst: Packets = Field(default=Packets("0 packets"))
    """Packets that it waits for once it is over its limit, ``minburst``."""
    ewma_log: Annotated[int, Field(ge=1, le=16)] = 5
    """The estimator's weight is 2^-ewma_log, ``ewma``."""

    @model_validator(mode="after")
    def _sound(self) -> CbqSettings:
        not_zero(self.average_packet, "average_packet", "a packet")
        whole_packets(self.max_burst, "max_burst", "a burst")
        if self.min_burst.amount:
            whole_packets(self.min_burst, "min_burst", "a burst")
        return self


class Cbq(Model):
    """Class-based queueing."""

    cbq: CbqSettings


class SleepingSettings(Settings):
    """A program that sleeps while a packet's bits take their time (time(7): Linux before 2.6.21)."""

    first: ClassVar[str | None] = "tick"

    tick: Time = Field(default=Time("4 ms"))
    """Tick of its machine's clock: no sleep ends between two ticks."""
    late: Annotated[int, Field(ge=0, le=1000)] = 0
    """Ticks by which each sleep is longer than the whole ticks that its time needs."""

    @model_validator(mode="after")
    def _sound(self) -> SleepingSettings:
        not_zero(self.tick, "tick", "a tick")
        if self.tick.s > 1:
            raise issue(f"a clock that ticks each {self.tick} is none; expected at most 1 s", "tick")
        return self


class Sleeping(Model):
    """A packet leaves when the program wakes."""

    sleeping: SleepingSettings


SHAPERS: dict[str, type[Any]] = {"token_bucket": TokenBucket, "cbq": Cbq, "sleeping": Sleeping}


def shaper_words(value: Any) -> Any:
    """``token_bucket 1600 B``, ``cbq``, ``sleeping 4 ms``; ``serial``, the default, is no shaper at all."""
    if value is None or (isinstance(value, str) and value.strip() == "serial"):
        return None
    return choose(value, "shaper", ("serial", *SHAPERS), "token_bucket 1600 B")


Shaper = Annotated[
    Annotated[
        Annotated[TokenBucket, Tag("~token_bucket")]
        | Annotated[Cbq, Tag("~cbq")]
        | Annotated[Sleeping, Tag("~sleeping")],
        Discriminator(lambda value: form(value, "token_bucket", **SHAPERS)),
    ]
    | None,
    BeforeValidator(
        shaper_words,
        json_schema_input_type=Annotated[
            str, Field(pattern=r"^\s*(serial|token_bucket\s+\S.*|(cbq|sleeping)(\s+\S.*)?)$")
        ]
        | TokenBucket
        | Cbq
        | Sleeping
        | None,
    ),
]
