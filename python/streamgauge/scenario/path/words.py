"""A path in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamgauge.claims.dimension import plain
from streamgauge.scenario.path.common import Switched
from streamgauge.scenario.path.delay import (
    DelaySettings,
    GammaJitter,
    NormalJitter,
    ParetoJitter,
    UniformJitter,
)
from streamgauge.scenario.path.direction import Direction
from streamgauge.scenario.path.loss import Bernoulli, Gilbert, GilbertElliott, TracedLoss
from streamgauge.scenario.path.queue import QUEUES, AnyQueue, limit_of
from streamgauge.scenario.path.rate import RateSteps
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
from streamgauge.units import Rate, Time

__all__ = ["DISCIPLINES", "direction_in_words"]

#: Name of each queue discipline in a sentence.
DISCIPLINES = {
    "droptail": "drop-tail",
    "nistnet": "NIST Net drop-tail",
    "drd": "DRD",
    "red": "RED",
    "codel": "CoDel",
    "fq_codel": "FQ-CoDel",
    "pie": "PIE",
    "dualpi2": "DualPI2",
}


def direction_in_words(direction: Direction) -> str:
    """Returns ``loses 2 % at random, then 480 kbit/s behind a drop-tail queue of 10 kB, then 10 ms of
    delay``."""
    parts = [_stage(stage) for stage in direction.chain()]
    return ", then ".join(parts) if parts else "a plain wire"


def ports_in_words(ports: Sequence[int]) -> str:
    """Returns ``port 80``, ``ports 80, 554 and 1755``; of one at least."""
    *before, last = map(str, ports)
    return f"ports {', '.join(before)} and {last}" if before else f"port {last}"


def _stage(stage: AnyStage) -> str:
    match stage:
        case Bottleneck():
            return _bottleneck(stage)
        case Delay():
            return _delay(stage.delay)
        case Loss():
            return _loss(stage.loss) + _switches(stage.loss)
        case Block(block=block):
            ports = f" from or to {ports_in_words(block.ports)}" if block.ports else ""
            return f"lets no {block.protocol.upper()}{ports} through{_switches(block)}"
        case Corrupt(corrupt=corrupt):
            return f"corrupts {corrupt.probability} at random{_switches(corrupt)}"
        case Duplicate(duplicate=duplicate):
            return f"duplicates {duplicate.probability} at random{_switches(duplicate)}"
        case Mtu(mtu=mtu):
            return f"an MTU of {mtu.size.bytes} B{_switches(mtu)}"
        case Reorder(reorder=reorder):
            which = f"every {int(reorder.every.amount)}th packet" if reorder.every else reorder.probability
            return f"holds {which} back by {reorder.extra}{_switches(reorder)}"


def _switches(element: Switched) -> str:
    return "".join(f", {switch.to} at {switch.at}" for switch in element.switch)


def _loss(loss: Any) -> str:
    if isinstance(loss, Bernoulli):
        return f"loses {loss.bernoulli} at random"
    if isinstance(loss, Gilbert):
        runs = loss.gilbert
        return f"loses runs of {runs.bad} after runs of {runs.good} (Gilbert, means)"
    if isinstance(loss, GilbertElliott):
        stays = loss.gilbert_elliott
        return (
            f"loses {stays.loss_good} for {stays.good} and {stays.loss_bad} for {stays.bad} by turns "
            "(Gilbert-Elliott, means)"
        )
    if isinstance(loss, TracedLoss):
        shares = [share for _, share in loss.trace.steps()]
        low, high = (plain(100 * one, 3) for one in (min(shares), max(shares)))
        return f"loses {low} to {high} % at random by the trace {loss.trace.name}"
    shown = ", ".join(str(number) for number in loss.list[:5])
    rest = "" if len(loss.list) <= 5 else f" and {len(loss.list) - 5} more"
    return f"loses packets {shown}{rest}, counted from 0"


def _bottleneck(bottleneck: Bottleneck) -> str:
    queue = _queue(bottleneck.queue)
    return (
        f"{_rate(bottleneck)}{_shaper(bottleneck)} behind {'an' if queue.startswith('FQ') else 'a'} {queue}"
    )


def _queue(queue: AnyQueue) -> str:
    name = next(key for key, kind in QUEUES.items() if isinstance(queue, kind))
    _, limit = limit_of(queue)
    said = f"{DISCIPLINES[name]} queue" + (f" of {limit}" if limit is not None else "")
    settings = getattr(queue, name)
    extra: list[str] = []
    if name in ("codel", "fq_codel", "pie", "dualpi2"):
        extra.append(f"target {settings.target}")
    if name in ("codel", "fq_codel"):
        extra.append(f"interval {settings.interval}")
    if name == "dualpi2":
        extra.append(f"L4S marked from {settings.l4s_step or settings.l4s_min}")
    if name in ("red", "drd"):
        low, high = settings.min, settings.max
        extra += [f"{low} to {high}"] if low is not None and high is not None else []
    if getattr(settings, "ecn", False):
        extra.append("ECN")
    return said + (f" ({', '.join(extra)})" if extra else "")


def _shaper(bottleneck: Bottleneck) -> str:
    match bottleneck.shaper:
        case TokenBucket(token_bucket=bucket):
            return f" by a token bucket of {bucket.burst.bytes} B"
        case Cbq(cbq=cbq):
            return f" by CBQ on a device of {cbq.device_rate}"
        case Sleeping(sleeping=program):
            return f" by a program whose sleeps end each {program.tick}"
    return ""


def _rate(bottleneck: Bottleneck) -> str:
    if isinstance(bottleneck.rate, Rate):
        return str(bottleneck.rate)
    if isinstance(bottleneck.rate, Trace):
        trace = bottleneck.rate.trace
        mean = f"{plain(trace.mean_bps() / 1e6, 3)} Mbit/s"
        return f"the trace {trace.name} ({mean} on the mean, {plain(trace.duration_ns() / 1e9, 4)} s)"
    if isinstance(bottleneck.rate, RateSteps):
        return ", ".join(f"{step.rate} from {step.at}" for step in bottleneck.rate.steps)
    wave = bottleneck.rate.square
    return f"{wave.first} and {wave.second} by turns, period {wave.period},"


def _delay(delay: Time | DelaySettings) -> str:
    if isinstance(delay, Time):
        return f"{delay} of delay"
    if delay.steps is not None:
        said = "delay of " + ", ".join(f"{step.delay} from {step.at}" for step in delay.steps)
    elif delay.trace is not None:
        delays = [ns / 1e6 for _, ns in delay.trace.steps()]
        said = (
            f"{plain(min(delays), 3)} to {plain(max(delays), 3)} ms of delay by the trace {delay.trace.name}"
        )
    else:
        said = f"{delay.constant} of delay"
    if delay.jitter is not None:
        jitter: Any = delay.jitter
        if isinstance(jitter, UniformJitter):
            said += f" with jitter of up to {jitter.uniform} either way"
        elif isinstance(jitter, NormalJitter):
            said += f" with normal jitter of {jitter.normal}"
        elif isinstance(jitter, ParetoJitter):
            said += f" with Pareto jitter of {jitter.pareto.scale}, shape {plain(jitter.pareto.shape)}"
        elif isinstance(jitter, GammaJitter):
            said += f" with gamma jitter of {jitter.gamma.scale}, shape {plain(jitter.gamma.shape)}"
        else:
            said += f" with jitter of {jitter.table[0]} to {jitter.table[-1]} as measured"
        said += ("" if jitter.keep_order else " that may reorder") + _switches(jitter)
    said += "".join(f", {extra} more for {name}" for name, extra in delay.flows.items())
    return said
