"""The model: how long a stream fills its player's buffer and plays, and its offered, received and lost bits
then.

A fixed point of three sums: bits sent, and sent again; the link's share beside a TCP; and the queue.
docs/two-phases.md has the equations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from streamgauge.errors import ScenarioError
from streamgauge.two_phases.parameters import ModelParameters

__all__ = ["StreamInputs", "StreamPhase", "TwoPhases", "predict"]

_STEPS = 400
"""Steps of the fixed point; with halving at each, it converges long before."""
_CLOSE = 1e-10


@dataclass(frozen=True)
class StreamInputs:
    """A clip and the path that it crosses. Rates in bit/s, sizes in bytes, times in s."""

    pictures_bps: tuple[float, ...]
    """Encoded rates of the pictures, from the lowest; one for a clip of one rate."""
    sound_bps: float
    capacity_bps: float
    duration_s: float = 60.0
    """How long the clip plays."""
    loss: float = 0.0
    """The share that the path loses of every sender's packets."""
    tcp_window_bytes: float | None = None
    """The receive window of a TCP beside it; None without one."""
    queue_packets: float = 80.0
    """Packets of full size that wait at the bottleneck at most."""
    round_trip_s: float = 0.045
    """Round trip of an empty path."""

    def __post_init__(self) -> None:
        positive = {"capacity_bps": self.capacity_bps, "duration_s": self.duration_s}
        positive |= {"pictures_bps": min(self.pictures_bps, default=0.0)}
        if self.tcp_window_bytes is not None:
            positive["tcp_window_bytes"] = self.tcp_window_bytes
        others = {
            "sound_bps": self.sound_bps,
            "queue_packets": self.queue_packets,
            "round_trip_s": self.round_trip_s,
        }
        for name, value in (positive | others).items():
            if not math.isfinite(value) or value < 0 or (value == 0 and name in positive):
                least = "above 0" if name in positive else "not below 0"
                raise ScenarioError(f"{name} is {value:g}: a number {least} is wanted")
        if not 0 <= self.loss < 1:
            raise ScenarioError(f"loss is {self.loss:g}: a share from 0 to below 1 is wanted")
        if list(self.pictures_bps) != sorted(self.pictures_bps):
            raise ScenarioError("pictures_bps: rates ascend, the lowest first")


@dataclass(frozen=True)
class StreamPhase:
    """A phase as a whole. Where it has no length, or sends nothing, rates are 0."""

    time_s: float
    encoded_bps: float
    """Rate of the selected media, pictures and sound."""
    offered_bps: float
    """Rate at the entry of the path, with headers and repeats."""
    received_bps: float
    loss: float
    """The share of the packets offered that is dropped meanwhile."""
    burst_packets: float
    """Average rate, without repeats."""
    burst_spacing_s: float
    tcp_bps: float
    """Received rate of the TCP beside it; 0 without one."""


@dataclass(frozen=True)
class TwoPhases:
    """Both phases."""

    filling: StreamPhase
    playing: StreamPhase
    acceleration: float
    """Sending rate over its encoded rate while it fills the buffer."""
    chosen_bps: float
    """Encoded rate of the pictures and sound selected at first."""
    is_thinned: bool
    """Less is taken once the buffer is full: the next lower pictures, or key frames alone."""


@dataclass(frozen=True)
class _Link:
    """The bottleneck as the stream finds it. Each flow in its queue gets the link in proportion."""

    of: StreamInputs
    parameters: ModelParameters
    half_burst_s: float = 0.0
    """Half the time that a burst takes to leave: this much of the queue must be free on average."""

    @property
    def window_bits(self) -> float:
        """Bits in flight of a TCP by its window."""
        return self.parameters.tcp_window_share * 8 * (self.of.tcp_window_bytes or 0.0)

    @property
    def full_s(self) -> float:
        """Returns a full queue."""
        return 8 * self.of.queue_packets * self.parameters.packet_bytes / self.of.capacity_bps

    @property
    def standing_s(self) -> float:
        """Returns the queue that a TCP leaves by itself."""
        return min(self.settles_s(0.0), self.full_s)

    @property
    def most_s(self) -> float:
        """Returns the wait at which bursts begin to be cut off."""
        return max(self.standing_s, self.full_s - self.half_burst_s)

    @property
    def room_bits(self) -> float:
        """Other bits that fit in the queue."""
        return (self.most_s - self.standing_s) * self.of.capacity_bps

    def tcp_bps(self, waits_s: float, offered_bps: float) -> float:
        """Returns the received rate of a TCP with packets that wait for `waits_s` and `offered_bps` beside
        it."""
        if self.window_bits == 0:
            return 0.0
        capacity, round_trip_s = self.of.capacity_bps, self.of.round_trip_s + waits_s
        yields = min(1.0, capacity / max(offered_bps, 1.0)) ** self.parameters.tcp_yield
        most_bps = min(capacity, self.window_bits / round_trip_s) if round_trip_s > 0 else capacity
        return float(yields * min(most_bps, self._by_loss_bps(round_trip_s)))

    def settles_s(self, brought_bps: float) -> float:
        """Returns the wait at which TCP leaves as much of the link as is brought beside it; infinite where
        all of it is less."""
        rest = self.of.capacity_bps - brought_bps
        if rest <= 0:
            return math.inf
        steep, wait_s = self._by_loss
        round_trip_s = self.window_bits / rest
        if steep > 0:
            round_trip_s = min(round_trip_s, (8 * self.parameters.packet_bytes / rest - wait_s) / steep)
        return max(0.0, round_trip_s - self.of.round_trip_s)

    def _by_loss_bps(self, round_trip_s: float) -> float:
        """By the path's own losses."""
        steep, wait_s = self._by_loss
        return 8 * self.parameters.packet_bytes / (steep * round_trip_s + wait_s) if steep > 0 else math.inf

    @property
    def _by_loss(self) -> tuple[float, float]:
        """Time a packet, in round trips and in s: Padhye et al. 1998, equation 30, each packet
        acknowledged."""
        loss = self.of.loss
        slow = min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
        return math.sqrt(2 * loss / 3) + slow, slow * self.parameters.tcp_timeout_s


@dataclass(frozen=True)
class _Sums:
    """Totals of a phase."""

    time_s: float
    offered_bits: float
    received_bits: float
    loss: float
    waits_s: float
    """In the queue, on average."""
    waits_last_s: float
    """And at the end."""
    queued_bits: float
    """Bits in flight at the end."""
    late_bits: float
    """Bits that were lost and are sent again later."""


def predict(inputs: StreamInputs, parameters: ModelParameters | None = None) -> TwoPhases:
    """Returns both phases of a stream.

    Args:
        inputs: the clip and the path.
        parameters: the model's; those of Windows Media Services 9 if None.
    """
    of = parameters or ModelParameters()
    at = _chosen(inputs, of)
    encoded = inputs.pictures_bps[at] + inputs.sound_bps
    link = _Link(inputs, of, of.burst_s * _network_bps(encoded, of) / inputs.capacity_bps / 2)
    acceleration = _acceleration(encoded, inputs.capacity_bps, of)
    full = _filling(link, encoded, acceleration)
    filling = _phase(link, full, encoded, _network_bps(encoded, of), of.burst_s / acceleration)

    told_s = full.time_s + inputs.round_trip_s / 2
    left_s = inputs.duration_s - min(inputs.duration_s, of.burst_s / 2 + acceleration * told_s)
    plain = _playing(link, full, encoded, encoded, left_s)
    judged = full.loss if full.time_s > of.judged_s else plain.loss
    is_thinned = judged > of.most_loss and left_s > 0
    taken, kept = encoded, plain
    if is_thinned:
        lower = inputs.pictures_bps[at - 1] if at else of.key_share * inputs.pictures_bps[0]
        taken = lower + inputs.sound_bps
        kept = _playing(link, full, encoded, taken, left_s)
    playing = _phase(link, kept, taken, _network_bps(taken, of), of.burst_s)
    return TwoPhases(filling, playing, acceleration, encoded, is_thinned)


def _chosen(inputs: StreamInputs, of: ModelParameters) -> int:
    fits = of.fit_share * inputs.capacity_bps - inputs.sound_bps
    return max((at for at, rate in enumerate(inputs.pictures_bps) if rate <= fits), default=0)


def _acceleration(encoded_bps: float, capacity_bps: float, of: ModelParameters) -> float:
    fits = of.accelerated_share * capacity_bps / encoded_bps
    return min(of.most_acceleration, fits) if fits >= of.least_acceleration else 1.0


def _network_bps(encoded_bps: float, of: ModelParameters) -> float:
    return (1 + of.header_share) * encoded_bps + of.padding_bps


def _filling(link: _Link, encoded_bps: float, acceleration: float) -> _Sums:
    inputs, of = link.of, link.parameters
    capacity, rate = inputs.capacity_bps, _network_bps(encoded_bps, of)
    wanted_bits = min(of.buffer_s, inputs.duration_s) * rate
    bursts = math.ceil(min(of.buffer_s, inputs.duration_s) / of.burst_s)
    lag_s = inputs.round_trip_s + link.standing_s
    sent_s = inputs.round_trip_s + (bursts - 1) * of.burst_s / acceleration + of.burst_s * rate / capacity
    least_s = sent_s + link.standing_s
    last_s = inputs.duration_s / acceleration + link.full_s + lag_s
    time_s, loss, waits_s, lossy_s = min(least_s, last_s), inputs.loss, link.standing_s, 0.0
    for _ in range(_STEPS):
        before = time_s, loss, waits_s, lossy_s
        sent_bits = rate * min(inputs.duration_s, of.burst_s / 2 + acceleration * time_s)
        again, useful = _sent_again(link, loss, time_s if inputs.loss else lossy_s)
        offered_bits = max(sent_bits * again, wanted_bits if time_s < last_s else 0.0)
        brought_bits = offered_bits * (1 - inputs.loss)
        left_bps = capacity - link.tcp_bps(waits_s, offered_bits / time_s)
        most_bits = left_bps * max(0.0, time_s - inputs.round_trip_s)
        over_bits = max(0.0, brought_bits - most_bits)
        settled_s = link.settles_s(brought_bits / time_s)
        is_lossy = settled_s > link.most_s and over_bits > link.room_bits
        queued_bits = min(over_bits, max(0.0, min(settled_s, link.most_s) - link.standing_s) * capacity)
        wanted_s = sent_s + link.standing_s + queued_bits / capacity
        if is_lossy:
            wanted_s = max(wanted_s, lag_s + wanted_bits / (useful * max(left_bps, 1.0)))
        filled = queued_bits / over_bits if over_bits > 0 else 1.0
        ramp_s, end_s = queued_bits / capacity / 2, queued_bits / capacity
        now = (
            min(wanted_s, last_s),
            inputs.loss + ((over_bits - queued_bits) / offered_bits if is_lossy else 0.0),
            link.standing_s + filled * ramp_s + (1 - filled) * end_s,
            time_s * (1 - filled) if is_lossy else 0.0,
        )
        time_s, loss, waits_s, lossy_s = ((old + new) / 2 for old, new in zip(before, now, strict=True))
        if all(abs(old - new) <= _CLOSE * max(1.0, old) for old, new in zip(before, now, strict=True)):
            break
    # Where the clip ends before enough of it arrived, the link carried all it could.
    received_bits = wanted_bits / useful if wanted_s <= last_s else left_bps * time_s
    received_bits = min(received_bits, brought_bits, capacity * time_s)
    under_way = min(brought_bits - received_bits, queued_bits + rate * acceleration * lag_s)
    shown_s = lossy_s if inputs.loss == 0 else time_s
    late_bits = max(0.0, sent_bits * (1 + loss) - offered_bits) if shown_s > 0 else 0.0
    waits_last_s = link.standing_s + queued_bits / capacity
    return _Sums(
        time_s, offered_bits, received_bits, loss, waits_s, waits_last_s, max(0.0, under_way), late_bits
    )


def _sent_again(link: _Link, loss: float, lossy_s: float) -> tuple[float, float]:
    """Returns the ratio of offered to sent bits, if packets are lost over `lossy_s`, and the useful share of
    received bits.

    A missing packet is requested twice at most. Where the first answer takes longer than the player waits, it
    asks again in any case.
    """
    of, inputs = link.parameters, link.of
    if loss <= 0 or lossy_s <= 0:
        return 1.0, 1.0
    answer_s = inputs.round_trip_s + (link.full_s if loss > inputs.loss + 1e-6 else link.standing_s)
    first_s = answer_s + of.resend_wait_s
    in_time = answer_s <= of.resend_repeat_s
    once = loss * max(0.0, 1 - first_s / lossy_s)
    twice = (loss if in_time else 1.0) * loss * max(0.0, 1 - (first_s + of.resend_repeat_s) / lossy_s)
    useful = 1.0 if in_time else (1 + once + once**2) / (1 + 2 * once)
    return 1 + once + twice, useful


def _playing(link: _Link, full: _Sums, before_bps: float, encoded_bps: float, left_s: float) -> _Sums:
    """Returns the sums for the rest of the clip. Until the player's request arrives and the queue is empty,
    the earlier sending continues."""
    inputs, of = link.of, link.parameters
    capacity, rate = inputs.capacity_bps, _network_bps(encoded_bps, of)
    if left_s <= 0:
        return _Sums(0, 0, 0, inputs.loss, 0, 0, 0, 0)
    was_full = full.loss > inputs.loss + 1e-6
    is_less = encoded_bps < before_bps
    carried_s = min(left_s, link.full_s) if was_full and is_less else 0.0
    carried_bits = carried_s * full.offered_bits / full.time_s
    own_bits, own_loss = rate * left_s, inputs.loss
    for _ in range(_STEPS):
        loss = own_loss
        own_bits = rate * left_s * _sent_again(link, loss, left_s)[0]
        brought_bits = own_bits * (1 - inputs.loss)
        left_bits = (capacity - link.tcp_bps(link.most_s, own_bits / left_s)) * left_s
        now = max(inputs.loss, 1 - left_bits / own_bits)
        own_loss = (loss + now) / 2
        if abs(now - loss) < _CLOSE:
            break
    is_full = brought_bits > left_bits
    waits_s = link.full_s if is_full else link.standing_s
    lossy_until_s = left_s if is_full or inputs.loss > 0 else min(left_s, link.full_s) if was_full else 0.0
    again_s = waits_s + inputs.round_trip_s + of.resend_wait_s + of.resend_repeat_s if lossy_until_s else 0.0
    if was_full and lossy_until_s == left_s:
        again_s = link.full_s + inputs.round_trip_s + of.resend_wait_s + of.resend_repeat_s
    time_s = max(left_s, lossy_until_s + again_s) if is_full or was_full else left_s
    late_bits = 0.0 if is_less else full.late_bits
    offered_bits = own_bits + carried_bits + late_bits
    lost_bits = own_bits * own_loss + carried_bits * full.loss + late_bits * inputs.loss
    came_bits = offered_bits - lost_bits + full.queued_bits
    received_bits = min(came_bits, capacity * time_s)
    return _Sums(time_s, offered_bits, received_bits, lost_bits / offered_bits, waits_s, waits_s, 0, 0)


def _phase(link: _Link, sums: _Sums, encoded: float, network_bps: float, spacing_s: float) -> StreamPhase:
    time_s, of = sums.time_s, link.parameters
    # Sound and pictures each end a burst with a packet that is half full.
    packets = of.burst_s * network_bps / (8 * of.packet_bytes) + 1
    if time_s <= 0:
        return StreamPhase(0, encoded, 0, 0, 0, packets, spacing_s, 0)
    offered, received = sums.offered_bits / time_s, sums.received_bits / time_s
    rest = max(0.0, link.of.capacity_bps - received)
    tcp = min(rest, link.tcp_bps(sums.waits_s, offered)) if link.window_bits else 0.0
    return StreamPhase(time_s, encoded, offered, received, sums.loss, packets, spacing_s, tcp)
