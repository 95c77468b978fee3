"""Plain ARQ: the least latency of a receiver that asks at once and again each round trip."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["arq_latency_s", "arq_rounds", "arq_share"]

_MOST_ROUNDS = 1000


def arq_share(loss: float, pictures: Mapping[int, float], rounds: int) -> float:
    """Returns the share of pictures that are whole after so many rounds.

    Derived for selective repeat (RFC 3366 section 1.4) with packets, requests and repetitions lost on their
    own with the probability `loss`. A round mends a packet if request and repetition arrive,
    (1 - loss)^2. After k rounds a packet is missing with loss · (1 - (1 - loss)^2)^k. A picture of n packets
    is whole with one minus that, to the power of n.

    Args:
        loss: share of lost packets, the same both ways, 0 to less than 1.
        pictures: shares of the pictures by their number of packets; they add up to 1.
        rounds: rounds of request and repetition, 0 or more.
    """
    missing = loss * (1 - (1 - loss) ** 2) ** rounds
    return float(sum(share * (1 - missing) ** packets for packets, share in pictures.items()))


def arq_rounds(loss: float, pictures: Mapping[int, float], share: float) -> int | None:
    """Returns the least rounds after which `share` of the pictures are whole; None if 1000 are too few."""
    return next((k for k in range(_MOST_ROUNDS) if arq_share(loss, pictures, k) >= share), None)


def arq_latency_s(loss: float, rtt_s: float, pictures: Mapping[int, float], share: float) -> float | None:
    """Returns the latency in s: each round is one round trip of `rtt_s`, and all else takes no time."""
    rounds = arq_rounds(loss, pictures, share)
    return None if rounds is None else rounds * rtt_s
