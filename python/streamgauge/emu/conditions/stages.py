"""Compares the fates of packets in a stage with the plan: a function for each kind.

Each returns the faults it found, a sentence each, and the number of spans of settings that it could judge. A
span with too few packets is not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from streamgauge.claims.dimension import plain
from streamgauge.emu.conditions import timeline
from streamgauge.emu.conditions.chances import by_chain, by_chance
from streamgauge.emu.conditions.rows import (
    BLOCKED,
    CORRUPTED,
    QUEUE_FULL,
    RANDOM_LOSS,
    TOO_BIG,
    Mask,
    Numbers,
    Rows,
)
from streamgauge.emu.conditions.timeline import Span, spans, switches

Settings = Mapping[str, Any]
Judgement = tuple[list[str], int]


def _shares(
    rows: Rows, of: Mask, hit: Mask, settings: Settings, probability: float, what: str, duration: int
) -> Judgement:
    """Independent draws, `probability` while on and none while off; `what` happens to the packets `hit`."""
    faults, judged = [], 0
    for span in spans(switches(settings), duration):
        here = rows.between(span.begin, span.end)
        count, hits = int((of & here).sum()), int((hit & here).sum())
        if count == 0:
            continue
        judged += 1
        if not span.value and hits:
            faults.append(f"{hits} of {count} packets were {what} {span}, while that was off")
        elif span.value and not by_chance(hits, count, probability):
            faults.append(
                f"{hits} of {count} packets were {what} {span}, not a share of {plain(probability)}"
            )
    return faults, judged


def loss(settings: Settings, rows: Rows, duration: int) -> Judgement:
    """Random loss by its statistics, a list by its packets."""
    model = settings["model"]
    if any("loss" in change for _, change in settings.get("changes") or ()):
        return _steered_loss(settings, rows, duration)
    everything, lost = np.ones(len(rows), dtype=bool), rows.dropped(RANDOM_LOSS)
    if "bernoulli" in model:
        probability = model["bernoulli"]["probability"]
        return _shares(rows, everything, lost, settings, probability, "lost", duration)
    faults, judged = [], 0
    on = np.zeros(len(rows), dtype=bool)
    for span in spans(switches(settings), duration):
        here = rows.between(span.begin, span.end)
        count, losses = int(here.sum()), int((lost & here).sum())
        on |= here & span.value
        if count == 0:
            continue
        if not span.value:
            judged += 1
            if losses:
                faults.append(f"{losses} of {count} packets were lost {span}, while loss was off")
        elif "list" not in model:
            sound = by_chain(losses, count, model)
            judged += sound is not None
            if sound is False:
                ratio = timeline.loss_ratio(model)
                faults.append(f"{losses} of {count} packets were lost {span}, not a share of {plain(ratio)}")
    if "list" in model and on.any():
        # A packet at an edge may or may not have been counted, which makes the numbers behind it uncertain.
        uncertain = int(sum((rows.t_in == at).sum() for at, _ in switches(settings)[1:]))
        wanted = [packet for packet in model["list"]["packets"] if packet < int(on.sum())]
        found = np.flatnonzero(lost[on])
        ties = _ties(rows.t_in[on])
        judged += 1
        if len(found) != len(wanted) and not uncertain:
            faults.append(f"{len(found)} packets were lost, not the {len(wanted)} of the list that came")
        elif not uncertain and any(abs(a - b) > ties[a] for a, b in zip(found.tolist(), wanted, strict=True)):
            faults.append("other packets were lost than those of the list")
    return faults, judged


def _steered_loss(settings: Settings, rows: Rows, duration: int) -> Judgement:
    """Judges random loss with a changing share. Losses of another model before the first change are not
    judged."""
    model, lost = settings["model"], rows.dropped(RANDOM_LOSS)
    plainly = "bernoulli" in model and not settings.get("switches")
    faults, judged = [], 0
    first = float(model["bernoulli"]["probability"]) if plainly else None
    for span in spans(timeline.steered(settings, "loss", first), duration):
        here = rows.between(span.begin, span.end)
        count, losses = int(here.sum()), int((lost & here).sum())
        if count == 0 or span.value is None:
            continue
        judged += 1
        if not by_chance(losses, count, span.value):
            faults.append(f"{losses} of {count} packets were lost {span}, not a share of {plain(span.value)}")
    return faults, judged


def _ties(times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many others arrived at the same time as each: their order is not in the record."""
    _, inverse, counts = np.unique(times, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] - 1)


def duplicate(settings: Settings, rows: Rows, duration: int, nth: int) -> Judgement:
    """Copies, by the bit that the `nth` duplicating stage of its direction sets in their numbers."""
    copies = rows.copy & (1 << nth) != 0
    return _shares(rows, ~copies, copies, settings, settings["probability"], "duplicated", duration)


def corrupt(settings: Settings, rows: Rows, duration: int, damaged: set[tuple[int, int, int]]) -> Judgement:
    """Judges packets damaged here. Packets that arrived `damaged`, by their keys, are no evidence."""
    intact = (
        np.fromiter((key not in damaged for key in keys(rows)), dtype=bool, count=len(rows))
        if damaged
        else np.ones(len(rows), dtype=bool)
    )
    hit = intact & (rows.flags & CORRUPTED != 0)
    return _shares(rows, intact, hit, settings, settings["probability"], "corrupted", duration)


def keys(rows: Rows) -> list[tuple[int, int, int]]:
    """Returns the key of each row's packet within a stage."""
    return list(zip(rows.pkt.tolist(), rows.copy.tolist(), rows.fragment_offset.tolist(), strict=True))


def reorder(settings: Settings, rows: Rows, duration: int) -> Judgement:
    """Packets that waited the extra time, while all others passed at once."""
    extra, every = int(settings["extra"]), settings.get("every")
    stay = rows.t_out - rows.t_in
    # A packet in the stage at the trial's end can only have been waiting.
    waited = ~rows.delivered | (stay == extra)
    odd = int((rows.delivered & (stay != extra) & (stay != 0)).sum())
    faults = [f"{odd} packets neither passed at once nor waited {plain(extra / 1e9)} s"] if odd else []
    if extra == 0:
        return faults, 0
    if every is None:
        everything = np.ones(len(rows), dtype=bool)
        more, judged = _shares(
            rows, everything, waited, settings, settings["probability"], "held back", duration
        )
        return faults + more, judged
    on, judged = 0, 0
    for span in spans(switches(settings), duration):
        here = rows.between(span.begin, span.end)
        judged += bool(here.any())
        on += int(here.sum()) if span.value else 0
        if not span.value and (waited & here).any():
            faults.append(f"{int((waited & here).sum())} packets were held back {span}, while that was off")
    edges = int(sum((rows.t_in == at).sum() for at, _ in switches(settings)[1:]))
    if not on // every <= int(waited.sum()) <= (on + edges) // every:
        faults.append(f"{int(waited.sum())} of {on} packets were held back, not every {every}th")
    return faults, judged


def mtu(settings: Settings, rows: Rows, duration: int) -> Judgement:
    """No packet longer than the MTU leaves; none is cut up or dropped for its length while there is none."""
    faults, judged, most = [], 0, int(settings["bytes"])
    for span in spans(switches(settings), duration):
        here = rows.between(span.begin, span.end)
        judged += bool(here.any())
        long = int((here & rows.delivered & (rows.ip_bytes > most)).sum())
        if span.value and long:
            faults.append(f"{long} packets longer than {most} B left {span}")
        if not span.value and (here & rows.dropped(TOO_BIG)).any():
            faults.append(f"packets were dropped for their length {span}, while no MTU was set")
        if not span.value and (here & rows.cut_here).any():
            faults.append(f"packets were cut up {span}, while no MTU was set")
    return faults, judged


def block(settings: Settings, rows: Rows, duration: int) -> Judgement:
    """No packet of the protocol passes while it is blocked, and nothing else is ever blocked. Where ports are
    named, which rows do not have, packets of the protocol may pass."""
    faults, judged, protocol = [], 0, settings["protocol"]
    of_it, blocked = rows.protocol == protocol, rows.dropped(BLOCKED)
    others = int((blocked & ~of_it & (rows.protocol != "")).sum())
    if others:
        faults.append(f"{others} packets were blocked that are not {protocol.upper()}")
    for span in spans(switches(settings), duration):
        here = rows.between(span.begin, span.end)
        judged += bool((here & of_it).any())
        passed = int((here & of_it & rows.delivered).sum())
        if span.value and passed and not settings.get("ports"):
            faults.append(f"{passed} packets of {protocol.upper()} passed {span}, while it was blocked")
        if not span.value and (here & blocked).any():
            faults.append(f"{int((here & blocked).sum())} packets were blocked {span}, while nothing was")
    return faults, judged


def bottleneck(settings: Settings, rows: Rows, duration: int) -> Judgement:
    """Judges a queue. A drop-tail queue takes a packet that fits. Each transmission takes the time that the
    rate in force gives it. A token bucket lets through no more than it may. CBQ, a program that sleeps and
    traces of opportunities set no such rule packet by packet and are not judged by it."""
    size = rows.ip_bytes if settings.get("layer", "ethernet") == "ip" else rows.wire_bytes
    faults = _droptails(settings, rows, size, duration)
    steps = timeline.rates(settings, duration)
    shaper = settings.get("shaper", "serial")
    if steps is None or (shaper != "serial" and "token_bucket" not in shaper):
        return faults, 0
    order = np.argsort(rows.t_out[rows.delivered], kind="stable")
    t_in, t_out, octets = (column[rows.delivered][order] for column in (rows.t_in, rows.t_out, size))
    before = np.concatenate([[0], t_out[:-1]])
    begins = np.maximum(t_in, before)
    judged = 0
    for span in spans(steps, duration):
        if span.value == 0:
            judged += 1
            sent = int(((t_out > max(span.begin, 0)) & (t_out < span.end)).sum())
            if sent:
                faults.append(f"{sent} packets left {span}, at a rate of 0 bit/s")
            continue
        if shaper == "serial":
            here = (begins >= span.begin) & (t_out <= span.end)
            takes = octets[here] * 8e9 / span.value
            off = np.abs((t_out - begins)[here] - takes)
            wrong = int((off > 2).sum())  # an end is rounded up to a nanosecond, a start may be
            judged += bool(here.any())
            if wrong:
                faults.append(f"{wrong} of {len(off)} packets were not sent at {span.value} bit/s {span}")
            continue
        here = (t_out > span.begin) & (t_out < span.end)
        judged += bool(here.any())
        if _over_bucket(t_out[here], octets[here], span, int(shaper["token_bucket"]["burst"])):
            faults.append(f"more left {span} than a token bucket at {span.value} bit/s lets through")
    return faults, judged


def _droptails(settings: Settings, rows: Rows, size: Numbers, duration: int) -> list[str]:
    """Judges as `_droptail`, span by span where the limit changes. Waiting packets above a lower limit stay,
    and are no evidence about later arrivals, which are dropped all the same."""
    limits = timeline.steered(settings, "limit", settings["queue"].get("droptail", {}))
    if len(limits) == 1 or "droptail" not in settings["queue"]:
        return _droptail(settings["queue"].get("droptail", {}), rows, size)
    faults = []
    for span in spans(limits, duration):
        here = rows.between(span.begin, span.end)
        chosen = replace(rows, **{one.name: getattr(rows, one.name)[here] for one in fields(rows)})
        faults += [f"{fault} {span}" for fault in _droptail(span.value, chosen, size[here])]
    return faults


def _droptail(limit: Mapping[str, int], rows: Rows, size: Numbers) -> list[str]:
    """Judges a drop-tail queue. The decision depends on the queue's content at the arrival, the packet in
    transmission included: see `spec::Limit`. A limit in time depends on the rate of the moment and is not
    judged."""
    if "bytes" in limit:
        fits = rows.queue_bytes + size <= limit["bytes"]
    elif "packets" in limit:
        fits = rows.queue_packets < limit["packets"]
    else:
        return []
    refused = rows.dropped(QUEUE_FULL)
    over, early = int((~fits & ~refused).sum()), int((fits & refused).sum())
    faults = [f"{over} packets entered a queue that was full by the plan"] if over else []
    return faults + ([f"{early} packets were refused by a queue with room"] if early else [])


def _over_bucket(t_out: Any, octets: Any, span: Span, burst: int) -> bool:
    """Returns whether between any two departures more left than the burst and the rate's tokens."""
    if not len(t_out):
        return False
    sent = np.cumsum(octets) * 8.0
    earned = (t_out - t_out[0]) * (span.value / 1e9)
    least = np.minimum.accumulate(sent - octets * 8.0 - earned)
    return bool((sent - earned - least > burst * 8 + 8).any())


def first_faults(where: str, faults: Sequence[str], most: int = 3) -> list[str]:
    """The first of them with their stage: one wrong setting shows in every span."""
    more = [f"{where}: and {len(faults) - most} more of that kind"] if len(faults) > most else []
    return [f"{where}: {fault}" for fault in faults[:most]] + more
