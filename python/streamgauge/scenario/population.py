"""Populations: the clip and the path of each trial, drawn by its member's number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from streamgauge.errors import MediaError, ScenarioError
from streamgauge.scenario.clips import media_clip
from streamgauge.scenario.draws import Distribution, draw
from streamgauge.scenario.expect import Population
from streamgauge.scenario.flow import Clip, Flow
from streamgauge.scenario.overrides import override
from streamgauge.systems.registry import Mode
from streamgauge.units import Quantity, Rate, Time

if TYPE_CHECKING:
    from streamgauge.scenario.model import Scenario

__all__ = ["Member", "drawn", "member", "members"]


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member of a population; a `None` is not drawn, and stays as in the scenario."""

    number: int
    """From 1."""
    clip: str | Clip | None
    rate: Quantity | None
    duration: Quantity | None
    encodings: int | None
    rtt: Quantity | None
    loss: Quantity | None


def member(population: Population, number: int) -> Member:
    """Returns the member of that number, from 1.

    Each value is drawn by the population's seed, the number and its own name alone: a further member, or
    another thing that is drawn, changes no other value.
    """

    def value(key: str, name: str | None = None) -> Quantity | None:
        distribution: Distribution | None = getattr(population, key)
        if distribution is None:
            return None
        return distribution.draw(population.seed, f"member {number}", name or key)

    encodings = None
    if population.encodings is not None:
        encodings = draw(population.seed, f"member {number}", "encodings", *population.encodings)
    if population.members is not None:
        written = population.members[number - 1]
        nothing: dict[str, Any] = dict.fromkeys(("rate", "duration", "encodings"))
        return Member(number=number, clip=written.clip, rtt=written.rtt, loss=written.loss, **nothing)
    return Member(
        number=number,
        clip=None if population.clips is None else population.clips[number - 1],
        rate=value("rate"),
        # As it was called in records before, so that their members are these.
        duration=value("duration", "length"),
        encodings=encodings,
        rtt=value("rtt"),
        loss=value("loss"),
    )


def members(population: Population) -> Iterator[Member]:
    """Returns all of them in order."""
    return (member(population, number) for number in range(1, population.count + 1))


def drawn(scenario: Scenario, seed: int, mode: Mode) -> Scenario:
    """Returns the scenario as the trial with `seed` runs it in `mode`: with the values of the member that it
    plays in their places, without the population and without checks. Itself if it has no population.

    Seed 1 plays member 1; the first follows the last. Raises ScenarioError if the drawn values conflict.
    """
    population = scenario.population
    if population is None:
        return scenario
    one = member(population, (seed - 1) % population.count + 1)
    changes = dict(_changes(scenario, population, one, mode))
    try:
        return override(scenario, {"population": None, **changes}, drop_checks=True)
    except ValidationError as error:
        said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        raise ScenarioError(
            f"{scenario.id}: member {one.number} of its population is {changes}, which makes no sense: {said}"
        ) from None


def _changes(
    scenario: Scenario, population: Population, one: Member, mode: Mode
) -> Iterator[tuple[str, Any]]:
    """Yields addresses and their new values."""
    for name, flow in scenario.flows.items():
        if flow.clip is not None and population.is_for(name):
            yield from _clips(name, flow, population, one, mode)
    down_ns = one.rtt.ns // 2 if isinstance(one.rtt, Time) else 0
    for way, delay_ns, loss in (
        ("down", down_ns, one.loss),
        ("up", one.rtt.ns - down_ns if isinstance(one.rtt, Time) else 0, None),
    ):
        set_here: dict[str, str] = {}
        if loss is not None:
            set_here["loss"] = str(loss)
        if one.rtt is not None:
            set_here["delay"] = str(Time.of(delay_ns))
        yield from _on_path(scenario, way, set_here)


def _on_path(scenario: Scenario, way: str, set_here: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Yields addresses of the settings in a direction. A path in stages gets stages of its own for it, at the
    server's end, which is the far one."""
    direction = getattr(scenario.path, way)
    if direction.stages is None or not set_here:
        yield from ((f"path.{way}.{key}", value) for key, value in set_here.items())
        return
    far = [{"name": key, key: value} for key, value in set_here.items()]
    near = list(direction.model_dump(mode="json", exclude_none=True)["stages"])
    yield f"path.{way}.stages", [*far, *near] if way == "down" else [*near, *far]


def _clips(
    name: str, flow: Flow, population: Population, one: Member, mode: Mode
) -> Iterator[tuple[str, Any]]:
    """Yields addresses of a flow's clips and their new values."""
    stand_in = getattr(flow, mode)
    stands_in = stand_in is not None and stand_in.clip is not None
    clip = one.clip if one.clip is not None else flow.in_mode(mode).clip
    if clip is not None and any(
        drawn is not None for drawn in (one.clip, one.rate, one.duration, one.encodings)
    ):
        yield f"flows.{name}{f'.{mode}' if stands_in else ''}.clip", _clip(clip, one, population.seed)
    if one.clip is not None and stands_in:
        # The flow's own clip decides the end of the trial, in both modes.
        yield f"flows.{name}.clip", _clip(one.clip, one, population.seed)
    elif one.duration is not None and flow.clip is not None and (stands_in or clip is None):
        # The flow's own clip is not played in this mode, but decides the end of the trial.
        lasting = replace(one, rate=None, encodings=None)
        yield f"flows.{name}.clip", _clip(flow.clip, lasting, population.seed)


def _clip(clip: str | Clip, one: Member, seed: int) -> dict[str, Any]:
    if isinstance(clip, str):
        try:
            named = media_clip(clip, Time("10 s"))
        except MediaError as error:
            raise ScenarioError(str(error)) from None
        clip = Clip(source=named.source, rate=Rate.of(named.bit_rate_bps))
    said: dict[str, Any] = clip.model_dump(mode="json", exclude_unset=True)
    if one.rate is not None:
        said["rate"] = str(one.rate)
    if one.duration is not None:
        said["duration"] = str(one.duration)
    if one.encodings is not None:
        assert clip.ladder is not None, "a scenario whose clip is no ladder draws none of it"
        rates = [str(rate) for rate in _some(clip.ladder, one.encodings, seed, one.number)]
        del said["ladder"]
        said |= {"ladder": rates} if len(rates) > 1 else {"rate": rates[0]}
        if len(rates) == 1:
            said.pop("segment", None)
    return said


def _some(ladder: Sequence[Rate], count: int, seed: int, number: int) -> list[Rate]:
    """Returns `count` rates of a ladder, each choice as likely as any other, the lowest first."""
    left, chosen = list(ladder), []
    for place in range(count):
        chosen.append(left.pop(draw(seed, f"member {number}", f"encoding {place}", 0, len(left) - 1)))
    return sorted(chosen, key=lambda rate: rate.bps)
