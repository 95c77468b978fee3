"""Fair rate of a TCP on a path, by equations of its packets' size, the round trip and the losses."""

from __future__ import annotations

import math

__all__ = ["tcp_rate", "tfrc_rate"]


def tcp_rate(size_bits: float, rtt_s: float, loss: float) -> float:
    """Returns the most that a TCP sends, in bit/s, of losses of single packets: T = 1.5 sqrt(2/3) B / (R
    sqrt(p)).

    Floyd and Fall, *Promoting the Use of End-to-End Congestion Control in the Internet* (1999), section 3.1,
    by which Chung, Claypool and Zhu (section V-E) and Nichols judge flows; it has no timeouts. Infinite
    without losses.

    Args:
        size_bits: B, of a packet.
        rtt_s: R.
        loss: p, from 0 to 1: of packets, or of loss events.

    Raises:
        ValueError: if the size or the round trip is not above 0, or the loss not from 0 to 1.
    """
    _check(size_bits, rtt_s, loss)
    return 1.5 * math.sqrt(2 / 3) * size_bits / (rtt_s * math.sqrt(loss)) if loss else math.inf


def tfrc_rate(size_bits: float, rtt_s: float, loss: float) -> float:
    """Returns the rate of a TCP with its timeouts, in bit/s (RFC 5348 section 3.1, with b = 1 and t_RTO = 4
    R).

    Args and errors as of `tcp_rate`; RFC 5348 takes `loss` of loss events, with losses within one round trip
    for one.
    """
    _check(size_bits, rtt_s, loss)
    if not loss:
        return math.inf
    timeouts = 4 * (3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return size_bits / (rtt_s * (math.sqrt(2 * loss / 3) + timeouts))


def _check(size_bits: float, rtt_s: float, loss: float) -> None:
    if not (size_bits > 0 and rtt_s > 0 and 0 <= loss <= 1):
        raise ValueError(
            "a TCP's rate needs a size and a round trip above 0 and a loss from 0 to 1. "
            f"Got {size_bits:g} bit, {rtt_s:g} s and {loss:g}."
        )
