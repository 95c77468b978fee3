"""Other effects on packets in transit: blocked, corrupted, duplicated, fragmented, reordered."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, model_validator

from streamgauge.scenario.path.common import Settings, Switched, at_most_everything, not_zero, whole_packets
from streamgauge.scenario.values import issue, nearest
from streamgauge.units import Packets, Percent, Size, Time

__all__ = ["Blocking", "Corruption", "Duplication", "MtuLimit", "Reordering"]

#: The least MTU of an IPv4 link and the longest IPv4 packet (RFC 791 sections 3.2 and 3.1).
LEAST_MTU, LONGEST = 68, 65535
LARGEST_PORT = 65535
PROTOCOLS = ("udp", "tcp", "icmp")
#: The most ports that one firewall may name, which each packet is compared with.
MOST_PORTS = 16


class _Share(Settings, Switched):
    first: ClassVar[str | None] = "probability"

    probability: Percent
    """Probability for each packet, independently."""

    @model_validator(mode="after")
    def _share_sound(self) -> _Share:
        at_most_everything(self.probability, "probability", "probability")
        return self


class Corruption(_Share):
    """A bit of the packet's payload is turned over, so that its check sum fails where it is checked."""


class Duplication(_Share):
    """Sends the packet on twice."""


class Reordering(Settings, Switched):
    """Some packets are held back, so that those behind overtake them."""

    first: ClassVar[str | None] = "probability"

    probability: Percent | None = None
    """Probability for each packet, independently."""
    every: Packets | None = None
    """Every so-many-th packet, instead."""
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
        if (self.probability is None) == (self.every is None):
            raise issue("has either a 'probability' or 'every'", "every" if self.every else "probability")
        if self.probability is not None:
            at_most_everything(self.probability, "probability", "probability")
        if self.every is not None:
            whole_packets(self.every, "every", "a period")
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
        if self.size.bytes > LONGEST:
            raise issue(f"an MTU of {self.size} is above {LONGEST} B, the longest IPv4 packet", "size")
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


def _ports(value: Any) -> Any:
    """Returns a port, several in a list, or several in a line with blanks between them."""
    listed = value if isinstance(value, list | tuple) else str(value).split()
    found: list[int] = []
    for one in listed:
        text = str(one)
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= LARGEST_PORT:
            raise issue(f"'{one}' is no port; expected a whole number from 1 to {LARGEST_PORT}")
        if int(text) in found:
            raise issue(f"port {text} is named twice")
        found.append(int(text))
    if len(found) > MOST_PORTS:
        raise issue(f"{len(found)} ports; one firewall names at most {MOST_PORTS}")
    return found


class Blocking(Settings, Switched):
    """A firewall: no packet of a protocol passes, or none from or to certain ports."""

    first: ClassVar[str | None] = "protocol"

    protocol: Annotated[
        Literal["udp", "tcp", "icmp"],
        BeforeValidator(_protocol, json_schema_input_type=Literal["udp", "tcp", "icmp"]),
    ]
    ports: Annotated[
        tuple[int, ...], BeforeValidator(_ports, json_schema_input_type=int | str | list[int])
    ] = ()
    """Ports of TCP or UDP: only packets from or to one of these."""

    @model_validator(mode="after")
    def _sound(self) -> Blocking:
        if self.protocol == "icmp" and self.ports:
            raise issue("ICMP has no ports", "ports", "leave them away, or block tcp or udp")
        return self
