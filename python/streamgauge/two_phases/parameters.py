"""The model's parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from streamgauge.errors import ScenarioError

__all__ = ["FITTED", "ModelParameters"]


@dataclass(frozen=True)
class ModelParameters:
    """Behaviour of the server and the player, and the share of a TCP beside them. Rates in bit/s, times in s.

    The defaults are those of Windows Media Services 9 with its player where they are published (Nichols,
    *Measurement of Windows Streaming Media*, 2004), else of this project's machines.
    """

    accelerated_share: float = 0.88
    """The buffer is filled at this share of the capacity, in encoded bits."""
    most_acceleration: float = 4.0
    """Largest multiple of the encoded rate."""
    least_acceleration: float = 2.0
    """Below this multiple of the encoded rate, the encoded rate itself is used."""
    buffer_s: float = 15.0
    """Media in the buffer when play begins."""
    burst_s: float = 0.475
    """Media in a burst."""
    header_share: float = 0.05
    """Headers over the encoded rate, as a share of it."""
    padding_bps: float = 11_500.0
    """Overhead of packets that are not full."""
    tcp_window_share: float = 1.0
    """A TCP beside it has this share of its window under way on average."""
    tcp_yield: float = 0.4
    """Reduction of that share where the offered rate exceeds the link: by the capacity over the offered rate,
    to this power."""
    fit_share: float = 0.93
    """The highest pictures are selected that, with the sound, are encoded at no more than this share of the
    capacity: profiles' rates, which must fit it, are above the encoded rates."""
    most_loss: float = 0.035
    """Less is taken where more than this share is lost when that is judged."""
    judged_s: float = 13.5
    """Time after the first packet at which the loss of the current phase is judged, once."""
    key_share: float = 0.03
    """Rate of key frames alone over the pictures' rate."""
    resend_wait_s: float = 0.1
    """Wait after which a missing packet is requested."""
    resend_repeat_s: float = 1.5
    """Further wait after which it is requested once more."""
    tcp_timeout_s: float = 0.2
    """Time, besides a round trip, that a TCP beside it waits before it repeats unacknowledged data."""
    packet_bytes: float = 1500.0
    """A full packet, with the headers of IP."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value) or value < 0:
                raise ScenarioError(f"{field.name} is {value:g}: a number that is not below 0 is wanted")
        for name in ("buffer_s", "burst_s", "packet_bytes", "fit_share", "resend_repeat_s"):
            if getattr(self, name) == 0:
                raise ScenarioError(f"{name} is 0: a number above 0 is wanted")
        for name in ("tcp_window_share", "key_share", "most_loss"):
            if getattr(self, name) > 1:
                raise ScenarioError(f"{name} is {getattr(self, name):g}: a share is at most 1")
        for name in ("most_acceleration", "least_acceleration"):
            if getattr(self, name) < 1:
                raise ScenarioError(f"{name} is {getattr(self, name):g}: at least 1 is wanted")


FITTED = (
    "accelerated_share", "most_acceleration", "least_acceleration", "buffer_s", "burst_s", "header_share",
    "padding_bps", "tcp_window_share", "tcp_yield", "most_loss", "judged_s", "key_share",
)  # fmt: skip
"""Those that are fitted to records; the others are taken as they are."""
