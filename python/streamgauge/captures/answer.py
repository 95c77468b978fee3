"""The answer in sentences: the places of losses, and the limit of the rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamgauge.captures.verdict import measured_rate, stream_sentences, verdict
from streamgauge.captures.words import counted, say_rate, say_time

__all__ = ["answer_of"]

MOST_FLOWS: Final = 3
"""Flows that have sentences of their own."""
_SIDES: Final = {"sender": "at the sender", "receiver": "at the receiver", "between": "between the two ends"}
_LIMITS: Final = {
    "application": "the application: it had nothing to send",
    "receiver": "the receiver: its window was full",
    "network": "the network: losses, or a queue that fills",
    "sender": "the sender: its own window or pace",
}
Row = Mapping[str, Any]


def answer_of(document: Row) -> list[str]:
    """The document's findings as sentences, the most important first."""
    flows = document["flows"]
    if not flows:
        return [*_files(document), "No flow: the captures have no IP packets."]
    found = [sentence for flow in flows[:MOST_FLOWS] for sentence in _flow(flow)]
    found = [*stream_sentences(document), *found]
    if len(document["captures"]) > 1:
        found = [*_between(document["path"]), *found]
    if (first := verdict(document)) is not None:
        found = [first, *found]
    if len(flows) > MOST_FLOWS:
        found.append(f"{counted(len(flows) - MOST_FLOWS, 'further flow')} carried less.")
    return [*found, *_files(document)]


def _between(path: Row) -> Iterator[str]:
    """The path between two captures."""
    main = path["main"]
    lost, sent = main["lost"], main["delivered"] + main["lost"] + main["open"]
    share = f"{lost} of {sent} packets ({100 * lost / max(1, sent):.2g} %)"
    if lost and main["queue_bytes"] is not None:
        yield (
            f"The path dropped {share}, {main['lost_at_full_queue']} of them at a full queue of "
            f"{main['queue_bytes'] / 1e3:.3g} kB: {say_time(main['queue_s'])} at {measured_rate(main)}."
        )
    elif lost:
        yield f"The path dropped {share}, most of them while its queue was not full."
    elif not main["open"]:
        yield f"The path dropped none of {sent} packets."
    if main["open"]:
        yield f"{counted(main['open'], 'packet')} lost or not captured: no acknowledgement shows which."
    if path["lost_by_capture"]:
        missed = counted(path["lost_by_capture"], "packet")
        yield f"{missed} passed, and one of the captures missed them: no loss of the path."
    if main["rate_bps"] is not None:
        waited = say_time(main["queue_s"])
        yield f"Its bottleneck had {measured_rate(main)}. Packets waited {waited} at most."
    if path["offset_s"] is None:
        yield "The clocks' offset is not known: packets of one direction alone are in both captures."
        return
    skew = "" if path["skew_ppm"] is None else f" and runs {path['skew_ppm']:.2f} ppm fast"
    error = say_time(path["offset_error_s"])
    yield f"The second clock is {path['offset_s']:.6f} s ahead{skew}, if propagation is equal both ways."
    yield f"If it is not, the offset is within {error} of that; --base-delay fixes it."


def _flow(flow: Row) -> Iterator[str]:
    name = flow["flow"]
    lost = flow["lost"]
    rate = "" if flow["rate_bps"] is None else f", {say_rate(flow['rate_bps'])} on average"
    yield f"{name}: {counted(flow['packets'], 'packet')}, {flow['bytes'] / 1e6:.3g} MB{rate}."
    if lost is None:
        yield "Its loss is not known: it shows no sequence numbers that can be read."
    elif lost:
        sent = flow["packets"] + (flow["lost_before_capture"] or 0)
        is_known = flow["side"] is not None and flow["delay_p50_s"] is None
        where = f" (the capture was taken {_SIDES[flow['side']]})" if is_known else ""
        yield f"The path dropped {lost} of about {sent} packets, {100 * lost / max(1, sent):.2g} %{where}."
    elif flow["missing"]:
        missing = counted(flow["missing"], "packet")
        yield f"{missing} missing: lost, or not captured. No acknowledgement shows which."
    else:
        yield "No loss on the path shows in it."
    if flow["missed"]:
        yield f"{counted(flow['missed'], 'packet')} passed and are not in the capture: no loss of the path."
    if flow["delay_p50_s"] is not None:
        median, most = say_time(flow["delay_p50_s"]), say_time(flow["delay_p95_s"])
        yield f"Its one-way delay was {median} in the median, {most} in the 95th percentile."
    if flow["rtt_p50_s"] is not None:
        median, least = say_time(flow["rtt_p50_s"]), say_time(flow["rtt_min_s"])
        yield f"Its round trip was {median} in the median, {least} at least."
    if flow["limits"] is not None:
        yield f"Its rate was held down by {_LIMITS[flow['limits']['main']]}."
    if flow["jitter_s"] is not None:
        yield f"Its jitter (RFC 3550) was {say_time(flow['jitter_s'])}."
    for stream in flow["sources"]:
        if stream["merged"] is not None:
            lost_by_both, behind = stream["merged"]
            apart = say_time(abs(behind))
            yield f"Stream {stream['ssrc']} has a second leg: {lost_by_both} lost by both, {apart} apart."


def _files(document: Row) -> Iterator[str]:
    for end in document["translated"]:
        yield (
            f"Addresses are translated between the captures: {end['first']} in the first is "
            f"{end['second']} in the second."
        )
    for capture in document["captures"]:
        name = capture["file"]
        if capture["damage"]:
            yield f"{name}: {capture['damage']}."
        if capture["copies"]:
            copies, frames = capture["copies"], capture["frames"]
            yield f"{name}: {copies} of {frames} frames are copies of others and do not count."
        if capture["joined"]:
            yield (
                f"{name}: {counted(capture['joined'], 'packet')} longer than any frame: offload joined them, "
                "so counts of packets are too low."
            )
        if capture["unread"]:
            yield f"{name}: {counted(capture['unread'], 'frame')} of a link layer that is not read."
        if capture["beyond"]:
            yield f"{name}: {counted(capture['beyond'], 'packet')} of further flows, which are not followed."
        if capture["backwards"]:
            yield f"{name}: time goes back {capture['backwards']} times."
        if capture["jumps"]:
            yield f"{name}: {counted(len(capture['jumps']), 'silence')} of more than an hour."
