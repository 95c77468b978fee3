"""Lowering a path to the plan of a trial: integers in SI units, as crates/path/src/spec reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamgauge.scenario.path.changes import make_steerable, with_changes
from streamgauge.scenario.path.common import LimitChoice
from streamgauge.scenario.path.delay import (
    DelaySettings,
    GammaJitter,
    NormalJitter,
    ParetoJitter,
    UniformJitter,
    delay_ns,
)
from streamgauge.scenario.path.direction import Direction, Path
from streamgauge.scenario.path.elements import Blocking, Corruption, Duplication, Reordering
from streamgauge.scenario.path.loss import Bernoulli, Gilbert, GilbertElliott, LossList, TracedLoss
from streamgauge.scenario.path.queue import (
    AnyQueue,
    CoDel,
    Drd,
    DropTail,
    DualPi2,
    DualPi2Settings,
    FqCoDel,
    NistNet,
    Pie,
    Red,
    RedSettings,
    red_thresholds,
)
from streamgauge.scenario.path.rate import RateSteps, Square
from streamgauge.scenario.path.shaper import Cbq, Sleeping, TokenBucket
from streamgauge.scenario.path.stages import (
    AnyStage,
    Block,
    Bottleneck,
    Corrupt,
    Delay,
    Duplicate,
    Loss,
    Mtu,
    Reorder,
)
from streamgauge.scenario.path.trace import Trace
from streamgauge.units import Bdp, Packets, Quantity, Rate, Size, Time

__all__ = ["bdp_bytes", "direction_plan", "path_plan", "settled_limit"]

Json = dict[str, Any]


def path_plan(path: Path, flows: Sequence[str] = (), end_ns: int | None = None) -> Json:
    """Returns both directions. ``flows`` are the names of the flows in the order of the plan; ``end_ns`` is
    when the trial ends at the latest, until when traces are repeated (once if it is not given)."""
    rtt = path.base_rtt_ns()
    planned = {
        "down": direction_plan(path.down, rtt, flows, end_ns),
        "up": direction_plan(path.up, rtt, flows, end_ns),
    }
    if path.changes is not None:
        make_steerable(planned)
        with_changes(planned, path.changes, end_ns)
    return planned


def direction_plan(
    direction: Direction, base_rtt_ns: int, flows: Sequence[str] = (), end_ns: int | None = None
) -> list[Json]:
    """Returns the stages of one direction; a delay of zero for a plain wire."""
    chain = direction.chain()
    stages = []
    for index, stage in enumerate(chain):
        if isinstance(stage, Bottleneck):
            kind: Json = {"bottleneck": _bottleneck(stage, chain[index + 1 :], base_rtt_ns, end_ns)}
        else:
            kind = _kind(stage, flows, end_ns)
        stages.append({"name": stage.name, "kind": kind, **_changes(stage, end_ns)})
    return stages or [{"name": "wire", "kind": {"delay": {"delay": 0, "steps": []}}}]


def _changes(stage: AnyStage, end_ns: int | None) -> Json:
    """Returns the changes of a stage whose settings change at times."""
    if not isinstance(stage, Loss) or not isinstance(stage.loss, TracedLoss):
        return {}
    later = stage.loss.trace.steps(end_ns)[1:]
    return {"changes": [[at, {"loss": loss}] for at, loss in later]} if later else {}


def _kind(stage: AnyStage, flows: Sequence[str], end_ns: int | None) -> Json:
    match stage:
        case Loss():
            return {"loss": {"model": _loss(stage), "switches": _switches(stage.loss)}}
        case Delay():
            return {"delay": _delay(stage.delay, flows, end_ns)}
        case Block():
            return {"block": _blocking(stage.block)}
        case Corrupt():
            return {"corrupt": _share(stage.corrupt)}
        case Duplicate():
            return {"duplicate": _share(stage.duplicate)}
        case Mtu():
            return {"mtu": {"bytes": stage.mtu.size.bytes, "switches": _switches(stage.mtu)}}
        case Reorder():
            return {"reorder": _reorder(stage.reorder)}
    raise AssertionError(f"no plan for {stage!r}")


def _switches(element: Any) -> list[list[Any]]:
    return [[switch.at.ns, switch.to == "on"] for switch in element.switch]


def _blocking(block: Blocking) -> Json:
    ports = {"ports": list(block.ports)} if block.ports else {}
    return {"protocol": block.protocol, **ports, "switches": _switches(block)}


def _share(element: Corruption | Duplication) -> Json:
    return {"probability": element.probability.fraction, "switches": _switches(element)}


def _reorder(reorder: Reordering) -> Json:
    made: Json = {"extra": reorder.extra.ns, "switches": _switches(reorder)}
    if reorder.every is not None:
        return {"every": int(reorder.every.amount), **made}
    assert reorder.probability is not None
    return {"probability": reorder.probability.fraction, **made}


def _loss(stage: Loss) -> Json:
    match stage.loss:
        case Bernoulli(bernoulli=share):
            return {"bernoulli": {"probability": share.fraction}}
        case Gilbert(gilbert=runs):
            return {"gilbert": {"good_packets": runs.good.count, "bad_packets": runs.bad.count}}
        case GilbertElliott(gilbert_elliott=runs):
            return {
                "gilbert_elliott": {
                    "good_packets": runs.good.count,
                    "bad_packets": runs.bad.count,
                    "loss_good": runs.loss_good.fraction,
                    "loss_bad": runs.loss_bad.fraction,
                }
            }
        case LossList(list=packets):
            return {"list": {"packets": list(packets)}}
        case TracedLoss(trace=trace):
            return {"bernoulli": {"probability": trace.steps()[0][1]}}
    raise AssertionError(f"no plan for {stage.loss!r}")


def _bottleneck(
    bottleneck: Bottleneck, behind: Sequence[AnyStage], base_rtt_ns: int, end_ns: int | None
) -> Json:
    made = {
        "rate": _rate(bottleneck, end_ns),
        "queue": _queue(bottleneck, behind, base_rtt_ns),
        "layer": bottleneck.layer,
    }
    match bottleneck.shaper:
        case TokenBucket(token_bucket=bucket):
            made["shaper"] = {"token_bucket": {"burst": bucket.burst.bytes}}
        case Cbq(cbq=cbq):
            made["shaper"] = {
                "cbq": {
                    "device_rate": cbq.device_rate.bps,
                    "average_packet": cbq.average_packet.bytes,
                    "max_burst_packets": int(cbq.max_burst.amount),
                    "min_burst_packets": int(cbq.min_burst.amount),
                    "ewma_log": cbq.ewma_log,
                }
            }
        case Sleeping(sleeping=program):
            made["shaper"] = {"sleeping": {"tick": program.tick.ns, "late": program.late}}
    return made


def _rate(bottleneck: Bottleneck, end_ns: int | None) -> Json:
    match bottleneck.rate:
        case Rate():
            return {"constant": bottleneck.rate.bps}
        case RateSteps(steps=steps):
            return {"steps": [[step.at.ns, step.rate.bps] for step in steps]}
        case Square(square=wave):
            return {"square": {"first": wave.first.bps, "second": wave.second.bps, "period": wave.period.ns}}
        case Trace(trace=trace):
            return trace.rate_plan(end_ns)
    raise AssertionError(f"no plan for {bottleneck.rate!r}")


def bdp_bytes(bottleneck: Bottleneck, limit: Bdp, base_rtt_ns: int) -> int | None:
    """Returns a limit in BDP as bytes, rounded up; ``None`` if the rate is not constant."""
    if not isinstance(bottleneck.rate, Rate):
        return None
    bit_ns = limit.amount * bottleneck.rate.bps * base_rtt_ns
    return int(-(-bit_ns // 8_000_000_000))


def settled_limit(bottleneck: Bottleneck, choice: LimitChoice, base_rtt_ns: int) -> Quantity | None:
    """Returns the limit of a choice: limits of one kind are compared as they are, others by their bytes, with
    each packet as large as our largest. ``None`` if that requires a constant rate and there is none."""
    pick = max if choice.pick == "max" else min
    if len({type(one) for one in choice.limits}) == 1:
        return pick(choice.limits, key=lambda one: one.amount)
    held = [_bytes_of(bottleneck, one, base_rtt_ns) for one in choice.limits]
    known = [one for one in held if one is not None]
    return Size.of(pick(known)) if len(known) == len(held) else None


def _bytes_of(bottleneck: Bottleneck, limit: Quantity, base_rtt_ns: int) -> int | None:
    match limit:
        case Size():
            return limit.bytes
        case Packets():
            return int(limit.amount) * bottleneck.packet_bytes
        case Bdp():
            return bdp_bytes(bottleneck, limit, base_rtt_ns)
        case Time() if isinstance(bottleneck.rate, Rate):
            return limit.ns * bottleneck.rate.bps // 8_000_000_000
    return None


def _limit(bottleneck: Bottleneck, limit: Quantity | LimitChoice | None, base_rtt_ns: int) -> Json | None:
    if isinstance(limit, LimitChoice):
        limit = settled_limit(bottleneck, limit, base_rtt_ns)
    match limit:
        case None:
            return None
        case Size():
            return {"bytes": limit.bytes}
        case Packets():
            return {"packets": int(limit.amount)}
        case Bdp():
            return {"bytes": bdp_bytes(bottleneck, limit, base_rtt_ns)}
        case Time() if isinstance(bottleneck.rate, Rate):
            return {"bytes": limit.ns * bottleneck.rate.bps // 8_000_000_000}
        case Time():
            # With a rate that changes, the limit follows the rate in force; the path sees to that.
            return {"time": limit.ns}
    raise AssertionError(f"no plan for {limit!r}")


def fixed_delay_ns(behind: Sequence[AnyStage]) -> int:
    """Returns the delay right behind a queue, in which NIST Net's queues count packets too, ns."""
    after = behind[0] if behind else None
    return delay_ns(after.delay) if isinstance(after, Delay) else 0


def _queue(bottleneck: Bottleneck, behind: Sequence[AnyStage], base_rtt_ns: int) -> Json:
    def limit(of: Quantity | LimitChoice | None) -> Json | None:
        return _limit(bottleneck, of, base_rtt_ns)

    queue: AnyQueue = bottleneck.queue
    match queue:
        case DropTail(droptail=held):
            return {"droptail": limit(held)}
        case NistNet(nistnet=held):
            return {"nistnet": {"packets": int(held.amount), "delay": fixed_delay_ns(behind)}}
        case Drd(drd=drd):
            return {
                "drd": {
                    "min_packets": int(drd.min.amount),
                    "max_packets": int(drd.max.amount),
                    "congested_packets": None if drd.congested is None else int(drd.congested.amount),
                    "limit": limit(drd.limit),
                    "delay": fixed_delay_ns(behind),
                }
            }
        case Red(red=red):
            return {"red": _red(red, limit(red.limit) or {})}
        case CoDel(codel=codel):
            return {
                "codel": {
                    "target": codel.target.ns,
                    "interval": codel.interval.ns,
                    "limit": limit(codel.limit),
                    "ecn": codel.ecn,
                    "mtu": codel.mtu.bytes,
                }
            }
        case FqCoDel(fq_codel=fq):
            return {
                "fq_codel": {
                    "target": fq.target.ns,
                    "interval": fq.interval.ns,
                    "limit": limit(fq.limit),
                    "flows": fq.flows,
                    "quantum": fq.quantum.bytes,
                    "ecn": fq.ecn,
                    "mtu": fq.mtu.bytes,
                }
            }
        case Pie(pie=pie):
            return {
                "pie": {
                    "target": pie.target.ns,
                    "update": pie.update.ns,
                    "alpha": pie.alpha.per_s,
                    "beta": pie.beta.per_s,
                    "max_burst": pie.max_burst.ns,
                    "limit": limit(pie.limit),
                    "ecn": pie.ecn,
                    "mark_below": pie.mark_below.fraction,
                    "mean_packet": pie.mean_packet.bytes,
                    "delay": pie.delay,
                    "derandomize": pie.derandomize,
                }
            }
        case DualPi2(dualpi2=dual):
            return {
                "dualpi2": {
                    "target": dual.target.ns,
                    "update": dual.update.ns,
                    "alpha": dual.alpha.per_s,
                    "beta": dual.beta.per_s,
                    "coupling": dual.coupling,
                    "l4s": _l4s(dual),
                    "l4s_packets": dual.l4s_packets,
                    "scheduler": _scheduler(dual),
                    "limit": limit(dual.limit),
                }
            }


def _l4s(dual: DualPi2Settings) -> Json:
    if dual.l4s_step is not None:
        return {"step": dual.l4s_step.ns}
    return {"ramp": {"min": dual.l4s_min.ns, "range": dual.l4s_range.ns}}


def _scheduler(dual: DualPi2Settings) -> Json:
    if dual.time_shift is not None:
        return {"time_shifted": {"shift": dual.time_shift.ns}}
    return {"weighted": {"classic_percent": int(dual.classic_share.amount)}}


def _red(red: RedSettings, limit: Json) -> Json:
    unit, held = next(iter(limit.items()))
    if unit == "time":
        unit, held = "bytes", 0  # both thresholds are given
    least, most = red_thresholds(red, held)
    return {
        "min": {unit: least},
        "max": {unit: most},
        "limit": limit,
        "max_probability": red.max_probability.fraction,
        "weight": red.weight.fraction,
        "gentle": red.gentle,
        "ecn": red.ecn,
        "mean_packet": red.mean_packet.bytes,
    }


def _delay(delay: Time | DelaySettings, flows: Sequence[str], end_ns: int | None) -> Json:
    if isinstance(delay, Time):
        return {"delay": delay.ns, "steps": []}
    if delay.trace is not None:
        steps = [[at, int(ns)] for at, ns in delay.trace.steps(end_ns)[1:]]
    else:
        steps = [[step.at.ns, step.delay.ns] for step in (delay.steps or ())[1:]]
    made: Json = {"delay": delay_ns(delay), "steps": steps}
    if delay.jitter is not None:
        made["jitter"] = {
            "distribution": _jitter(delay.jitter),
            "keep_order": delay.jitter.keep_order,
            "switches": _switches(delay.jitter),
        }
    if delay.flows:
        made["flows"] = [[flows.index(name), extra.ns] for name, extra in delay.flows.items()]
    return made


def _jitter(jitter: Any) -> Json:
    if isinstance(jitter, UniformJitter):
        return {"uniform": {"spread": jitter.uniform.ns}}
    if isinstance(jitter, NormalJitter):
        return {"normal": {"deviation": jitter.normal.ns}}
    if isinstance(jitter, ParetoJitter):
        return {"pareto": {"scale": jitter.pareto.scale.ns, "shape": jitter.pareto.shape}}
    if isinstance(jitter, GammaJitter):
        return {"gamma": {"shape": jitter.gamma.shape, "scale": jitter.gamma.scale.ns}}
    return {"table": {"quantiles": [time.ns for time in jitter.table]}}
