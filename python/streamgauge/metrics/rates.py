"""Sent, received and lost packets of a flow: M1 to M4, M7 to M9 and M28.

Each function counts for all flows at once and returns [flow, sample]; a rate is a count over the sample's
length, and over a window the sum of counts over the window's length. `bits` are those of the trial's layer.
"""

from __future__ import annotations

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import DATA, PACKET_RATE, PACKET_SIZE, PACKETS, PERCENT, RATE
from streamgauge.metrics.frame import DOWN, RETRANSMIT, RTCP, UP, Trial
from streamgauge.metrics.grid import Floats, Ints, Mask
from streamgauge.metrics.passage import HIDDEN, Passage
from streamgauge.metrics.result import Series


def sent_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """M1 throughput and M7 sender rate, as counts: bits offered to the path, before any drop.

    TP = Δsent / ΔT in bit/s (De Cicco et al., section V: ΔT = 0.5 s; Hessler and Welzl, section 2: bytes/s at
    the monitor). IP bytes by default. A packet counts at its first stage, when it arrives there.
    """
    return _bits(trial, trial.offered[direction])


def received_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """M7 receiver rate, as counts: bits that left the last stage of their direction.

    Hessler and Welzl, section 2: bytes/s at the sink. IP bytes by default.
    """
    return _bits(trial, trial.delivered[direction])


def lost_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """M3 loss rate, as counts: bits of packets lost, when they were dropped, or arrived corrupted.

    LR = Δloss / ΔT, a bit rate (De Cicco et al., section V, Tables I and II). IP bytes by default. M4 is
    100 LR / TP over the same window.
    """
    return _bits(trial, trial.dropped[direction])


def sent_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """M8 packet transmission rate, as counts: packets offered (Hessler and Welzl, Figures 6, 7 and 13)."""
    return trial.offered[direction].total()


def received_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """M8 at the receiver, as counts: packets that left the last stage."""
    return trial.delivered[direction].total()


def reports(trial: Trial) -> Floats:
    """M28 report rate, as counts: packets of RTCP from player to server (Nichols, *Measurement of Windows
    Streaming Media*, section 4.2)."""
    back = trial.offered[UP]
    return back.count(back["kind"] == RTCP)


def lost_packets(trial: Trial, direction: int = DOWN) -> Floats:
    """Packets lost, as counts; a datagram in fragments is one (RFC 7680 section 2.4)."""
    return trial.dropped[direction].total()


def good_bits(trial: Trial, direction: int = DOWN) -> tuple[Floats, Floats]:
    """M2 goodput, as counts: payload bits delivered for the first time. Always the payload layer. Counted
    when they arrive, and counted when the packets that brought them were sent.

    A retransmission counts if its data had not arrived, and not otherwise: each byte of the stream counts
    once, as in RFC 2647 section 3.17. (De Cicco et al. write (Δsent - Δloss) / ΔT; without retransmissions
    and up to headers and queueing it is the same.)
    """
    delivered, offered = trial.delivered[direction], trial.offered[direction]
    entries = trial.entries[direction]
    bits = new_bits(trial, direction)
    known = entries != -1
    sent = np.zeros(len(offered))
    sent[entries[known]] = bits[known]
    return delivered.total(bits), offered.total(sent)


def new_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """Returns for each delivered packet the payload bits that had not arrived before."""
    delivered, offered = trial.delivered[direction], trial.offered[direction]
    bits = delivered.bits("payload_bytes")
    first = _first_deliveries(delivered, offered, trial.entries[direction])
    return bits if first.all() else bits * first


def first_sent_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """Payload bits of offered packets that carry something for the first time, counted when sent."""
    offered = trial.offered[direction]
    return _of_those(offered, "payload_bytes", ~_repeats(offered))


def sent_and_lost_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """Bits of packets that are lost anywhere on their way, counted when they were sent."""
    offered = trial.offered[direction]
    return _of_those(offered, trial.bytes_column, trial.lost[direction])


def repeated_bits(trial: Trial, direction: int = DOWN) -> Floats:
    """Returns bits of offered packets that repeat earlier data, as counts."""
    offered = trial.offered[direction]
    return _of_those(offered, trial.bytes_column, _repeats(offered))


def _bits(trial: Trial, passage: Passage) -> Floats:
    return passage.total(passage.bits(trial.bytes_column))


def _of_those(passage: Passage, column: str, rows: Mask) -> Floats:
    """Bits of some rows of a passage."""
    if not rows.any():
        return np.zeros(passage.shape)
    return passage.total(passage.bits(column) * rows)


def _repeats(passage: Passage) -> Mask:
    repeats: Mask = (passage["flags"] & RETRANSMIT) != 0
    return repeats


def _first_deliveries(delivered: Passage, offered: Passage, entries: Ints) -> Mask:
    """Returns which delivered packets bring something new."""
    fresh = ~_repeats(delivered)
    if fresh.all():
        return fresh
    known = (entries != -1) & (delivered["seq"] != HIDDEN)
    content = _contents(offered)[entries[known]]
    # Written from the last to the first, a content's place is that of its first delivery.
    first = np.empty(len(offered), dtype=np.int64)
    first[content[::-1]] = np.arange(len(content))[::-1]
    fresh[known] = first[content] == np.arange(len(content))
    return fresh


def _contents(offered: Passage) -> Ints:
    """Returns for each offered packet a number that it shares with its retransmissions alone.

    Sequence numbers wrap: a generation of a flow's number begins with each first transmission of it.
    """
    number = (offered.flow << 32) | offered["seq"].astype(np.int64)
    # Flow by flow numbers nearly ascend, which is sorted many times faster.
    by_flow = offered.by_flow
    order = by_flow[np.argsort(number[by_flow], kind="stable")]
    begins = ~_repeats(offered)[order]
    begins[1:] |= np.diff(number[order]) != 0
    contents = np.empty(len(order), dtype=np.int64)
    contents[order] = np.cumsum(begins) - 1
    return contents


def up_bits(trial: Trial) -> Floats:
    """M1 of the way back, as counts: bits that a flow's player offers."""
    return sent_bits(trial, UP)


def of_packets(trial: Trial, flow: int) -> dict[str, Series]:
    """Returns a flow's counts as metrics: over the samples' lengths, or over other counts."""
    widths = trial.grid.widths_s
    sent, received, lost = (trial.row(bits, flow) for bits in (sent_bits, received_bits, lost_bits))
    packets = trial.row(sent_packets, flow)
    arrived = trial.row(received_packets, flow)
    good, good_of_sent = (bits[flow] for bits in trial.once(good_bits))
    first_sent = trial.row(first_sent_bits, flow)
    return {
        "throughput": Series(sent, widths),
        "sender_rate": Series(sent, widths),
        "receiver_rate": Series(received, widths),
        "goodput": Series(good, widths),
        "sent_goodput": Series(good_of_sent, widths),
        "sent_loss": Series(trial.row(sent_and_lost_bits, flow), sent),
        "loss_rate": Series(lost, widths),
        "loss": Series(lost, sent),
        "gap": Series(sent - received, sent),
        "retransmitted": Series(trial.row(repeated_bits, flow), sent),
        "unrepaired": Series(first_sent - good_of_sent, first_sent),
        "packet_rate": Series(packets, widths),
        "receiver_packet_rate": Series(arrived, widths),
        "packet_size": Series(sent, packets),
        "sent": Series(sent),
        "received": Series(received),
        "lost": Series(lost),
        "sent_packets": Series(packets),
        "received_packets": Series(arrived),
        "lost_packets": Series(trial.row(lost_packets, flow)),
        "up_throughput": Series(trial.row(up_bits, flow), widths),
        "report_rate": Series(trial.row(reports, flow), widths),
    }


METRICS = (
    Metric(
        "throughput",
        RATE,
        "flow",
        "Throughput (offered)",
        formula="bits offered / length",
        flow=of_packets,
        number="M1",
        better="more",
        label="sent rate",
    ),
    Metric(
        "goodput",
        RATE,
        "flow",
        "Goodput",
        formula="payload bits delivered for the first time / length",
        flow=of_packets,
        number="M2",
        better="more",
        label="goodput",
        compared=(
            ComparedBy("flow", 10, "goodput", Margin(relative=0.05)),
            ComparedBy(
                "neighbour",
                10,
                "harm to neighbours",
                Margin(absolute=0.02),
                name="harm",
                title="Harm to its neighbours' goodput",
                dimension=PERCENT,
                better="less",
                signed=True,
            ),
        ),
    ),
    Metric(
        "sent_goodput",
        RATE,
        "flow",
        "Goodput of what was sent",
        formula=(
            "payload bits, of packets offered in the window, that are ever delivered for the first "
            "time / length"
        ),
        flow=of_packets,
        number="M2",
        better="more",
    ),
    Metric(
        "sent_loss",
        PERCENT,
        "flow",
        "Loss of what was sent",
        formula="100 · bits, of packets offered in the window, that are ever lost / bits offered",
        flow=of_packets,
        number="M4",
        better="less",
    ),
    Metric(
        "loss_rate",
        RATE,
        "flow",
        "Loss rate",
        formula="bits lost / length",
        flow=of_packets,
        number="M3",
        better="less",
        json="loss_bps",
    ),
    Metric(
        "loss",
        PERCENT,
        "flow",
        "Loss",
        formula="100 · bits lost / bits offered",
        flow=of_packets,
        number="M4",
        better="less",
        label="loss",
        compared=(ComparedBy("flow", 30, "loss", Margin(absolute=0.002)),),
    ),
    Metric(
        "gap",
        PERCENT,
        "flow",
        "Sent but not received",
        formula="100 · (bits offered − bits delivered) / bits offered",
        flow=of_packets,
        number="M4",
        better="less",
        signed=True,
    ),
    Metric(
        "sender_rate",
        RATE,
        "flow",
        "Sender rate",
        formula="as `throughput`",
        flow=of_packets,
        number="M7",
    ),
    Metric(
        "receiver_rate",
        RATE,
        "flow",
        "Receiver rate",
        formula="bits delivered / length",
        flow=of_packets,
        number="M7",
        better="more",
        label="received rate",
    ),
    Metric(
        "packet_rate",
        PACKET_RATE,
        "flow",
        "Packets sent",
        formula="packets offered / length",
        flow=of_packets,
        number="M8",
        json="sent_packets_per_s",
    ),
    Metric(
        "receiver_packet_rate",
        PACKET_RATE,
        "flow",
        "Packets received",
        formula="packets delivered / length",
        flow=of_packets,
        number="M8",
        json="received_packets_per_s",
    ),
    Metric(
        "packet_size",
        PACKET_SIZE,
        "flow",
        "Mean packet size",
        formula="bytes offered / packets offered",
        flow=of_packets,
        number="M9",
        json="mean_packet_bytes",
        label="mean packet",
    ),
    Metric(
        "sent",
        DATA,
        "flow",
        "Sent",
        formula="total offered",
        flow=of_packets,
        number="M7",
        label="sent",
    ),
    Metric(
        "received",
        DATA,
        "flow",
        "Received",
        formula="total delivered",
        flow=of_packets,
        number="M7",
        better="more",
        label="received",
    ),
    Metric(
        "lost",
        DATA,
        "flow",
        "Lost",
        formula="total dropped",
        flow=of_packets,
        number="M3",
        better="less",
    ),
    Metric(
        "sent_packets",
        PACKETS,
        "flow",
        "Packets sent",
        formula="packets offered",
        flow=of_packets,
        number="M8",
        json="sent_packets",
    ),
    Metric(
        "received_packets",
        PACKETS,
        "flow",
        "Packets received",
        formula="packets delivered",
        flow=of_packets,
        number="M8",
        better="more",
        json="received_packets",
    ),
    Metric(
        "lost_packets",
        PACKETS,
        "flow",
        "Packets lost",
        formula="packets dropped",
        flow=of_packets,
        number="M3",
        better="less",
        json="lost_packets",
    ),
    Metric(
        "retransmitted",
        PERCENT,
        "flow",
        "Retransmitted share of what was sent",
        formula="100 · bits of packets that repeat sent data / bits offered",
        flow=of_packets,
        number="M2",
        better="less",
        label="retransmitted",
    ),
    Metric(
        "unrepaired",
        PERCENT,
        "flow",
        "Payload that was sent and never received",
        formula=(
            "100 · (A − B) / A, with A the payload bits sent for the first time, and B those of them "
            "that arrived: the loss after repair"
        ),
        flow=of_packets,
        number="M4",
        better="less",
        json={},
    ),
    Metric(
        "up_throughput",
        RATE,
        "flow",
        "Offered from player to server",
        formula="bits offered from player to server / length",
        flow=of_packets,
        number="M1",
    ),
    Metric(
        "report_rate",
        PACKET_RATE,
        "flow",
        "RTCP from player to server",
        formula="packets of RTCP from player to server / length",
        flow=of_packets,
        number="M28",
        json="reports_per_s",
    ),
)
