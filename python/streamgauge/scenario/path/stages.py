"""The stages of a path, each with its name: entries of the long form, and expansions of the shorthand."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag, model_validator

from streamgauge.scenario.path.common import MAX_IP_BYTES, form
from streamgauge.scenario.path.delay import DelayValue
from streamgauge.scenario.path.elements import Blocking, Corruption, Duplication, MtuLimit, Reordering
from streamgauge.scenario.path.loss import LossValue
from streamgauge.scenario.path.queue import Queue
from streamgauge.scenario.path.rate import LinkRate, rates_bps
from streamgauge.scenario.path.shaper import Shaper
from streamgauge.scenario.values import TAG_MARK, Model, issue

__all__ = ["Block", "Bottleneck", "Corrupt", "Delay", "Duplicate", "Layer", "Loss", "Mtu", "Reorder", "Stage"]

Layer = Literal["ethernet", "ip"]


class Loss(Model):
    """A stage that loses packets at random."""

    name: str
    loss: LossValue


class Bottleneck(Model):
    """A bottleneck: a rate, the queue in front of it and the shaper that keeps to it."""

    name: str
    rate: LinkRate
    queue: Queue
    shaper: Shaper = None
    """Departure of packets: one after the other at the rate by default."""
    layer: Layer = "ethernet"

    @model_validator(mode="before")
    @classmethod
    def _both(cls, data: Any) -> Any:
        if isinstance(data, dict) and "rate" in data and "queue" not in data:
            raise issue("a rate needs a queue in front of it", "rate", "add such as 'queue: droptail 10 kB'")
        if isinstance(data, dict) and "queue" in data and "rate" not in data:
            raise issue("a queue needs the rate that drains it", "queue", "add such as 'rate: 1 Mbit/s'")
        return data

    @property
    def packet_bytes(self) -> int:
        """Returns the largest packet as this stage counts it."""
        return MAX_IP_BYTES + (14 if self.layer == "ethernet" else 0)

    def rates_bps(self) -> list[int]:
        """Returns every rate that it takes, bit/s."""
        return rates_bps(self.rate)


class Delay(Model):
    """A propagation delay, one way."""

    name: str
    delay: DelayValue


class Block(Model):
    """A firewall."""

    name: str
    block: Blocking


class Corrupt(Model):
    """A stage that damages packets at random."""

    name: str
    corrupt: Corruption


class Duplicate(Model):
    """A stage that sends packets on twice at random."""

    name: str
    duplicate: Duplication


class Mtu(Model):
    """A stage with a largest packet."""

    name: str
    mtu: MtuLimit


class Reorder(Model):
    """A stage that holds packets back at random."""

    name: str
    reorder: Reordering


#: Stages by the key that identifies them, in the order of the shorthand; `rate` is the key of the bottleneck.
STAGES: dict[str, type[Any]] = {
    "block": Block,
    "loss": Loss,
    "corrupt": Corrupt,
    "duplicate": Duplicate,
    "mtu": Mtu,
    "rate": Bottleneck,
    "delay": Delay,
    "reorder": Reorder,
}
AnyStage = Block | Loss | Corrupt | Duplicate | Mtu | Bottleneck | Delay | Reorder


def _stage_form(value: Any) -> str:
    if isinstance(value, dict) and ("queue" in value or "shaper" in value):
        return TAG_MARK + "rate"
    return form(value, "rate", **STAGES)


Stage = Annotated[
    Annotated[Block, Tag("~block")]
    | Annotated[Loss, Tag("~loss")]
    | Annotated[Corrupt, Tag("~corrupt")]
    | Annotated[Duplicate, Tag("~duplicate")]
    | Annotated[Mtu, Tag("~mtu")]
    | Annotated[Bottleneck, Tag("~rate")]
    | Annotated[Delay, Tag("~delay")]
    | Annotated[Reorder, Tag("~reorder")],
    Discriminator(_stage_form),
]
