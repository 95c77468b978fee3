"""What else may happen to packets on their way: blocked, corrupted, duplicated, fragmented, reordered."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, model_validator

from streamgauge.scenario.path.common import Settings, Switched, at_most_everything, not_zero
from streamgauge.scenario.values import issue, nearest
from streamgauge.units import Percent, Size, Time

__all__ = ["Blocking", "Corruption", "Duplication", "MtuLimit", "Reordering"]

#: The least MTU of an IPv4 link (RFC 791 section 3.2).
LEAST_MTU = 68
PROTOCOLS = ("udp", "tcp", "icmp")


class _Share(Settings, Switched):
    first: ClassVar[str | None] = "probability"

    probability: Percent
    """Of each packet, independently."""

    @model_validator(mode="after")
    def _share_sound(self) -> _Share:
        at_most_everything(self.probability, "probability", "probability")
        return self


class Corruption(_Share):
    """A bit of the packet's payload is turned over, so that its check sum fails where it is checked."""


class Duplication(_Share):
    """The packet goes on twice."""


class Reordering(_Share):
    """The packet is held back, so that those behind it overtake it."""

    extra: Time
    """How long."""

    @classmethod
    def from_words(cls, data: Any) -> Any:
        # `1 % 5 ms`: the two quantities need no keys.
        if isinstance(data, str) and "%" in data and "extra" not in data.split():
            share, _, rest = data.partition("%")
            data = f"{share}% extra {rest}" if rest.strip() else data
        return super().from_words(data)

    @model_validator(mode="after")
    def _sound(self) -> Reordering:
        not_zero(self.extra, "extra", "a delay")
        return self


class MtuLimit(Settings, Switched):
    """Longer packets are fragmented, or dropped if they may not be (RFC 791)."""

    first: ClassVar[str | None] = "size"

    size: Size
    """Most bytes of an IP packet, its header included."""

    @model_validator(mode="after")
    def _sound(self) -> MtuLimit:
        if self.size.bytes < LEAST_MTU:
            raise issue(f"an MTU of {self.size} is below {LEAST_MTU} B, the least that IPv4 allows", "size")
        return self


def _protocol(value: Any) -> Any:
    word = str(value).strip().lower()
    if word not in PROTOCOLS:
        close = nearest(word, PROTOCOLS)
        raise issue(
            f"unknown protocol '{value}'; expected one of {', '.join(PROTOCOLS)}",
            hint=f"did you mean '{close}'?" if close else None,
        )
    return word


class Blocking(Settings, Switched):
    """A firewall: no packet of a protocol passes."""

    first: ClassVar[str | None] = "protocol"

    protocol: Annotated[
        Literal["udp", "tcp", "icmp"],
        BeforeValidator(_protocol, json_schema_input_type=Literal["udp", "tcp", "icmp"]),
    ]
