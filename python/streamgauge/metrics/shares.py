"""Each flow's part of its due at the bottleneck: shares of the max-min fair allocation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamgauge.claims.declaration import ComparedBy, Margin, Metric
from streamgauge.claims.dimension import PERCENT
from streamgauge.media import ClipEncoding, Content, content_given, frame_interval_ns, frame_sizes
from streamgauge.metrics.capacity import carried_bits
from streamgauge.metrics.course import Spans
from streamgauge.metrics.fairness import max_min
from streamgauge.metrics.frame import StageInfo, Trial
from streamgauge.metrics.grid import SECOND_NS, Floats
from streamgauge.metrics.queueing import Crossing, crossing
from streamgauge.metrics.result import Series
from streamgauge.scenario.clips import media_clip
from streamgauge.scenario.flow import Clip
from streamgauge.systems.adapters import external_of
from streamgauge.systems.machines import MACHINES, PACED_CLIP, Facts, facts
from streamgauge.units import Time

_LINUX_MSS = 1448


def max_min_shares(trial: Trial, stage: StageInfo) -> dict[int, Series]:
    """Returns per flow with media across the bottleneck, by its place, the share of its max-min fair
    allocation that left it.

    See `streamgauge.metrics.fairness.max_min`. The allocation is of each sample: capacity in it, among the
    flows (but pings) that are there in it, from their start until their media's or the trial's end. Over a
    window, bits that left are over bits due. A clip or a constant rate is capped at the rate of its packets
    on the link (`wire_rate_bps`). A clip in a third-party system counts as system rtp would send it
    (`as_rtp`), which gives one that fetches ahead more than its due meanwhile. A flow with none of these is
    greedy. Bits are those that the bottleneck counts. Empty for an unknown kind of rate.
    """
    grid = trial.grid
    capacity = carried_bits(stage.settings.get("rate") or {}, grid)
    rows = [
        row for row, flow in enumerate(trial.flows) if not flow.is_ping and flow.direction == stage.direction
    ]
    if capacity is None or not rows:
        return {}
    ethernet = is_ethernet(stage)
    there_s = np.array([_there(trial, row).seconds(grid) for row in rows])
    wants = np.array([_wanted_bps(trial, row, ethernet) for row in rows])
    with np.errstate(invalid="ignore"):
        caps = np.minimum(there_s * capacity / grid.widths_s, np.nan_to_num(there_s * wants[:, None]))
    due = max_min(capacity, caps)
    got = departed_bits(stage, trial.once(crossing, stage))
    return {row: Series(got[row], due[place]) for place, row in enumerate(rows)}


def is_ethernet(stage: StageInfo) -> bool:
    """Returns whether a bottleneck's rate is one of Ethernet frames, and not of IP packets."""
    return stage.settings.get("layer") != "ip"


def departed_bits(stage: StageInfo, passed: Crossing) -> Floats:
    """Returns the bits of each flow that left a bottleneck in each sample, as its rate counts them, [flow,
    sample]."""
    column = "wire_bytes" if is_ethernet(stage) else "ip_bytes"
    return passed.departures.total(passed.departures.bits(column))


def _there(trial: Trial, flow: int) -> Spans:
    """Returns when a flow takes part."""
    plan = trial.plans[flow]
    end = round(trial.duration_s * SECOND_NS)
    sent = trial.offered[0].times_ns[trial.offered[0].of(flow)]
    first = int(sent[0]) if len(sent) else end
    begin = min(int(plan.get("start", first)), end)
    ends = [end, *trial.said.of("media_end", flow)[0].tolist()]
    ends += [at for at, what in plan.get("actions", ()) if what == "stop"]
    told = trial.facts[flow]
    if told is not None and told.is_finite and len(sent):
        ends.append(int(sent[-1]))
    whole = Spans(np.array([begin]), np.array([max(begin, min(ends))]))
    if told is None or not told.windows:
        return whole
    on = np.array([[max(begin, low), max(begin, min(high, min(ends)))] for low, high in told.windows])
    return Spans(on[:, 0], np.maximum(on[:, 0], on[:, 1]))


def _wanted_bps(trial: Trial, flow: int, ethernet: bool) -> float:
    """Returns `wire_rate_bps` of a flow's machine; for a third-party system, of its replacement here."""
    if (told := trial.facts[flow]) is None:
        given = content_given(trial.plans[flow], trial.folder)
        return wire_rate_bps(as_rtp(trial.asked[flow], given), ethernet)
    if MACHINES[trial.machine(flow)].content == "clip":
        # By the sizes of its frames, which of a ladder do not count.
        return wire_rate_bps(trial.apps[flow], ethernet)
    return _rate_bps(told, ethernet)


def as_rtp(asked: Mapping[str, Any], given: Content | None = None) -> str | Mapping[str, Any]:
    """Returns a flow of a scenario (normalised) that plays a clip, as the plan of a trial would have it if
    system rtp played it; ``external`` if it plays none.

    The scenario declares the clip's rate, the system's description how large its packets are. For files that
    are a ladder `given` has the rates, and the highest counts with its sound. Frames of the user's own files
    are taken to be of one size.
    """
    named, external = asked.get("clip"), external_of(asked)
    if named is None or external is None or external.is_camera:
        return "external"
    interval, frames = _frames_given(given) if given is not None else _frames_declared(named)
    over_tcp = external.media_over(asked.get("parameters") or {}) == "tcp"
    return {
        PACED_CLIP: {
            "clip": {"frame_interval": interval, "frame_bytes": frames},
            "max_payload": external.max_payload,
            "tcp": {"mss": _LINUX_MSS} if over_tcp else None,
        }
    }


def declared_interval_ns(named: str | Mapping[str, Any]) -> int:
    """Returns the time between frames, ns, of a clip as a scenario (normalised) names it."""
    return _interval_ns(_clip(named))


def _clip(named: str | Mapping[str, Any]) -> ClipEncoding:
    return media_clip(named if isinstance(named, str) else Clip.model_validate(named), Time.of(SECOND_NS))


def _interval_ns(clip: ClipEncoding) -> int:
    return frame_interval_ns(clip) if clip.is_built_in else round(SECOND_NS / clip.frame_rate)


def _frames_declared(named: str | Mapping[str, Any]) -> tuple[int, list[int]]:
    """Returns the time between frames, ns, and their sizes, B."""
    clip = _clip(named)
    if clip.is_built_in:
        return _interval_ns(clip), frame_sizes(clip)
    return _interval_ns(clip), [clip.bit_rate_bps // (8 * clip.frame_rate)]


def _frames_given(given: Content) -> tuple[int, list[int]]:
    """As `_frames_declared`, of a ladder that is there."""
    top = max(given.video.encodings, key=lambda encoding: encoding.bit_rate_bps)
    sound = sum(track.encodings[0].bit_rate_bps for track in given.tracks if track.kind == "audio")
    interval_ns = top.frames.span_ns // len(top.frames)
    return interval_ns, [max(1, round((top.bit_rate_bps + sound) * interval_ns / (8 * SECOND_NS)))]


def wire_rate_bps(app: str | Mapping[str, Any], ethernet: bool = True) -> float:
    """Returns the rate at which a machine of the plan sends by itself, headers included; infinite if it takes
    any.

    Its machine returns it: for a constant rate the rate of its packets, for a clip that of the RTP packets
    into which its server cuts it, in UDP or interleaved on TCP.
    """
    told = facts(app)
    return math.inf if told is None else _rate_bps(told, ethernet)


def _rate_bps(told: Facts, ethernet: bool) -> float:
    wanted = told.wanted_ethernet_bps if ethernet else told.wanted_ip_bps
    return math.inf if wanted is None else wanted


def max_min_share(trial: Trial, flow: int) -> Series | None:
    """Returns a flow's share at the bottleneck in the direction of its media; None where it has none."""
    stage = trial.bottleneck(trial.flows[flow].direction)
    return None if stage is None else trial.once(max_min_shares, stage).get(flow)


METRICS = (
    Metric(
        "max_min_share",
        PERCENT,
        "flow",
        "Share of its max-min fair allocation",
        formula=(
            "100 · bits that left the bottleneck / bits of its max-min fair allocation; see "
            "[below](#shares-and-harm)"
        ),
        flow=max_min_share,
        better="more",
        reads=("media_end",),
        label="fair share",
        compared=(
            ComparedBy(
                "neighbour",
                20,
                "neighbours' fair share",
                Margin(absolute=0.02),
                name="neighbour_share",
                title="Neighbours' share of their max-min fair allocation",
            ),
        ),
    ),
)
