"""Checks of a path across its keys: sizes that depend on the delay, flows by name, late changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamgauge.claims.dimension import plain
from streamgauge.scenario.path.common import LimitChoice, Switched
from streamgauge.scenario.path.delay import DelaySettings
from streamgauge.scenario.path.direction import Path, Where
from streamgauge.scenario.path.plan import bdp_bytes, settled_limit
from streamgauge.scenario.path.queue import Drd, NistNet, Red, RedSettings, limit_of, red_thresholds
from streamgauge.scenario.path.rate import RateSteps, Square
from streamgauge.scenario.path.stages import AnyStage, Bottleneck, Delay
from streamgauge.scenario.values import Problem, nearest
from streamgauge.units import Bdp, Packets, Quantity, Rate, Size, Time

__all__ = ["late_changes", "path_problems"]


def _stages(path: Path) -> Iterator[tuple[Where, AnyStage, AnyStage | None]]:
    """Yields every stage, the place of its keys and the stage after it."""
    for direction in ("down", "up"):
        places = list(getattr(path, direction).places())
        for index, (where, stage) in enumerate(places):
            behind = places[index + 1][1] if index + 1 < len(places) else None
            yield ("path", direction, *where), stage, behind


def path_problems(path: Path, flows: Collection[str]) -> Iterator[Problem]:
    """Limits in BDP, thresholds beside them, NIST Net's delay, delays for flows that are not among
    ``flows``, the names of those on it."""
    rtt = path.base_rtt_ns()
    yield from _change_problems(path)
    for where, stage, behind in _stages(path):
        if isinstance(stage, Bottleneck):
            yield from _queue_problems(where, stage, behind, rtt)
        elif isinstance(stage, Delay) and isinstance(stage.delay, DelaySettings):
            for name in stage.delay.flows:
                if name not in flows:
                    close = nearest(name, flows)
                    yield Problem(
                        (*where, "delay", "flows", name),
                        f"there is no flow '{name}'; the flows are {', '.join(flows)}",
                        f"did you mean '{close}'?" if close else None,
                    )


def _change_problems(path: Path) -> Iterator[Problem]:
    """Yields changes of stages that a path does not have."""
    for index, change in enumerate(path.changes or ()):
        where = ("path", "changes", index)
        if index and change.at < (path.changes or ())[index - 1].at:
            yield Problem((*where, "at"), f"{change.at} comes before the change above it; times must ascend")
        for direction, name, _ in change.settings():
            chain = getattr(path, direction).chain()
            links = [stage for stage in chain if isinstance(stage, Bottleneck)]
            if name in ("rate", "queue", "ecn") and not links:
                yield Problem(
                    (*where, f"{direction}.{name}"), f"{direction} has no bottleneck", "give it a rate"
                )


def _queue_problems(
    where: Where, bottleneck: Bottleneck, behind: AnyStage | None, rtt_ns: int
) -> Iterator[Problem]:
    key = (*where, "queue")
    _, asked = limit_of(bottleneck.queue)
    choice = asked if isinstance(asked, LimitChoice) else None
    limit = settled_limit(bottleneck, asked, rtt_ns) if isinstance(asked, LimitChoice) else asked
    if choice is not None and limit is None:
        yield Problem(
            key, f"{choice} of a rate that changes is not one size; say it in bytes, packets or time"
        )
        return
    held = limit.bytes if isinstance(limit, Size) else None
    if isinstance(limit, Time) and isinstance(bottleneck.rate, Rate):
        held = limit.ns * bottleneck.rate.bps // 8_000_000_000
    if isinstance(limit, Bdp):
        held = bdp_bytes(bottleneck, limit, rtt_ns)
        if rtt_ns == 0:
            yield Problem(
                key, f"{limit} of a path without delay is 0 B; give the path a delay or the queue a size"
            )
            return
        if held is None:
            yield Problem(
                key, f"{limit} of a rate that changes is not one size; say it in bytes, packets or time"
            )
            return
    # The direction itself checks sizes and times that do not depend on others.
    if (isinstance(limit, Bdp) or choice is not None) and held is not None and held < bottleneck.packet_bytes:
        yield Problem(
            key,
            f"a queue of {choice or limit}, {held} B, cannot hold one packet of {bottleneck.packet_bytes} B",
            f"expected such as max({limit}, 4 packets)" if choice is None else None,
            depends=True,
        )
        return
    if isinstance(bottleneck.queue, Red) and limit is not None:
        yield from _red_problems((*key, "red"), bottleneck.queue.red, limit, held)
    if isinstance(bottleneck.queue, NistNet | Drd) and isinstance(behind, Delay):
        delay = behind.delay
        if isinstance(delay, DelaySettings) and (
            delay.constant is None or delay.jitter is not None or delay.flows
        ):
            yield Problem(
                key,
                "NIST Net's queues count packets in the delay behind them, which must be constant here",
                "take another queue, or a delay without steps, jitter and flows",
            )


def _red_problems(key: Where, red: RedSettings, limit: Quantity, held_bytes: int | None) -> Iterator[Problem]:
    if isinstance(limit, Packets):
        unit, held = "packets", int(limit.amount)
    else:
        unit, held = "B", held_bytes if held_bytes is not None else 0
        for name in ("min", "max"):
            threshold = getattr(red, name)
            if isinstance(threshold, Packets):
                yield Problem(
                    (*key, name), f"a threshold of {threshold} beside a limit in bytes; say it in bytes"
                )
                return
        if held_bytes is None:
            if red.min is None or red.max is None:
                yield Problem(
                    (*key, "limit"),
                    f"{limit} of a rate that changes gives no thresholds; say 'min' and 'max' in bytes",
                )
            return
    least, most = red_thresholds(red, held)
    if most > held:
        yield Problem(
            (*key, "max"), f"a max of {most} {unit} is above the limit of {held} {unit}, which drops first"
        )
    elif not least < most:
        yield Problem((*key, "min"), f"a min of {least} {unit} is not below the max of {most} {unit}")


def late_changes(path: Path, end_ns: int) -> Iterator[Problem]:
    """Changes that are due when the trial is over."""
    end = f"the trial ends at {plain(end_ns / 1e9)} s"
    for index, change in enumerate(path.changes or ()):
        if change.at.ns >= end_ns:
            why = f"a change at {change.at} never comes, as {end}"
            yield Problem(("path", "changes", index, "at"), why, "leave it out, or end the trial later")
    for where, stage, _ in _stages(path):
        for key, at in _change_times(stage):
            if at >= end_ns:
                yield Problem(
                    (*where, *key),
                    f"a change at {plain(at / 1e9)} s never comes, as {end}",
                    "leave it out, or end the trial later",
                )


def _change_times(stage: AnyStage) -> Iterator[tuple[Where, int]]:
    if isinstance(stage, Bottleneck):
        if isinstance(stage.rate, RateSteps):
            for index, step in enumerate(stage.rate.steps):
                yield ("rate", "steps", index, "at"), step.at.ns
        elif isinstance(stage.rate, Square):
            yield ("rate", "square", "period"), stage.rate.square.period.ns // 2
        return
    key = next(name for name in type(stage).model_fields if name != "name")
    setting = getattr(stage, key)
    if isinstance(setting, Switched):
        for index, switch in enumerate(setting.switch):
            yield (key, "switch", index, "at"), switch.at.ns
    elif isinstance(setting, DelaySettings):
        for index, one in enumerate(setting.steps or ()):
            yield (key, "steps", index, "at"), one.at.ns
        for index, switch in enumerate(setting.jitter.switch if setting.jitter is not None else ()):
            yield (key, "jitter", "switch", index, "at"), switch.at.ns
