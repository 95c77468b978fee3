"""Propagation delay: constant or in steps, with jitter, and more for some flows."""

from __future__ import annotations

import itertools
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.path.common import Flag, Settings, Switched, choose, first_at_zero, form, not_zero
from streamgauge.scenario.path.trace import DelayTrace
from streamgauge.scenario.values import Model, issue
from streamgauge.units import Time

__all__ = [
    "DelaySettings",
    "DelayStep",
    "DelayValue",
    "GammaJitter",
    "GammaSettings",
    "NormalJitter",
    "ParetoJitter",
    "ParetoSettings",
    "TableJitter",
    "UniformJitter",
    "delay_ns",
]


class DelayStep(Model):
    """From `at` on, `delay`."""

    at: Time
    delay: Time


class _Jitter(Switched):
    keep_order: Flag = True
    """Whether no packet overtakes another; if not, jitter longer than the gap between packets reorders."""


class UniformJitter(_Jitter):
    """Added to the delay: anything from -`uniform` to +`uniform`, equally likely, as netem's jitter."""

    uniform: Time

    @model_validator(mode="after")
    def _sound(self) -> UniformJitter:
        not_zero(self.uniform, "uniform", "a jitter")
        return self


class NormalJitter(_Jitter):
    """Added to the delay: normally distributed about 0 with this standard deviation."""

    normal: Time

    @model_validator(mode="after")
    def _sound(self) -> NormalJitter:
        not_zero(self.normal, "normal", "a jitter")
        return self


class ParetoSettings(Settings):
    """A Pareto distribution moved to begin at 0: scale x ((1 - u)^(-1/shape) - 1) for a uniform u."""

    first: ClassVar[str | None] = "scale"

    scale: Time
    shape: Annotated[float, Field(gt=1, le=1000)] = 3.0
    """The heavier the tail, the smaller; the mean is scale / (shape - 1)."""

    @model_validator(mode="after")
    def _sound(self) -> ParetoSettings:
        not_zero(self.scale, "scale", "a jitter")
        return self


class ParetoJitter(_Jitter):
    """Added to the delay: never negative, mostly small, sometimes large."""

    pareto: ParetoSettings


class GammaSettings(Settings):
    """A gamma distribution; with the delay it is the shifted gamma of Mukherjee (1994)."""

    first: ClassVar[str | None] = "scale"

    scale: Time
    shape: Annotated[float, Field(gt=0, le=1000)] = 2.0
    """The mean is shape x scale."""

    @model_validator(mode="after")
    def _sound(self) -> GammaSettings:
        not_zero(self.scale, "scale", "a jitter")
        return self


class GammaJitter(_Jitter):
    """Added to the delay: never negative, with a mode of its own above 0 if its shape is above 1."""

    gamma: GammaSettings


class TableJitter(_Jitter):
    """Added to the delay, as measured: quantiles at equal steps from 0 to 1, straight lines between."""

    table: tuple[Time, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _sound(self) -> TableJitter:
        for index, (before, after) in enumerate(itertools.pairwise(self.table)):
            if after < before:
                raise issue(f"{after} comes after {before}; quantiles never descend", ("table", index + 1))
        return self


JITTERS: dict[str, type[Any]] = {
    "uniform": UniformJitter,
    "normal": NormalJitter,
    "pareto": ParetoJitter,
    "gamma": GammaJitter,
    "table": TableJitter,
}


def _jitter_words(value: Any) -> Any:
    """Accepts ``5 ms`` as uniform, and ``normal 5 ms keep_order off`` with distribution and order."""
    if isinstance(value, Time):
        return {"uniform": value}
    if isinstance(value, str):
        said, _, order = value.strip().partition(" keep_order ")
        plain = said[:1] in set("0123456789.+-")
        chosen = {"uniform": said} if plain else choose(said, _WHAT, JITTERS, "5 ms")
        return {**chosen, "keep_order": order.strip()} if order else chosen
    return choose(value, _WHAT, JITTERS, "5 ms", ("keep_order", "switch"))


_WHAT = "distribution of jitter"
Jitter = Annotated[
    Annotated[UniformJitter, Tag("~uniform")]
    | Annotated[NormalJitter, Tag("~normal")]
    | Annotated[ParetoJitter, Tag("~pareto")]
    | Annotated[GammaJitter, Tag("~gamma")]
    | Annotated[TableJitter, Tag("~table")],
    Discriminator(lambda value: form(value, "uniform", **JITTERS)),
    BeforeValidator(
        _jitter_words,
        json_schema_input_type=Time
        | Annotated[str, Field(pattern=r"^\s*(uniform|normal|pareto|gamma)\s+\S.*$")]
        | UniformJitter
        | NormalJitter
        | ParetoJitter
        | GammaJitter
        | TableJitter,
    ),
]


class DelaySettings(Model):
    """`constant`, `steps` from 0 s on, or the delays of a `trace`; each with `jitter` and more for some
    `flows`."""

    constant: Time | None = None
    steps: tuple[DelayStep, ...] | None = Field(default=None, min_length=1)
    trace: DelayTrace | None = None
    """The column of delays in a table of times and rates, repeated as its rates are."""
    jitter: Jitter | None = None
    """Varies the delay from packet to packet. The delay is never below 0."""
    flows: dict[str, Time] = Field(default_factory=dict)
    """Extra delay for packets of some flows, by name: a longer route of their own."""

    @model_validator(mode="after")
    def _sound(self) -> DelaySettings:
        said = [key for key in ("constant", "steps", "trace") if getattr(self, key) is not None]
        if len(said) > 1:
            raise issue(f"'{said[0]}' and '{said[1]}' exclude each other", said[1])
        if not said:
            raise issue(
                "says no delay; expected 'constant', 'steps' or 'trace'", (), "add such as 'constant: 20 ms'"
            )
        if self.steps is not None:
            first_at_zero([step.at for step in self.steps], "steps")
        return self


DelayValue = Annotated[
    Annotated[Time, Tag("~constant")] | Annotated[DelaySettings, Tag("~settings")],
    Discriminator(
        lambda value: "~settings" if isinstance(value, dict | DelaySettings) else "~constant",
    ),
]


def delay_ns(delay: Time | DelaySettings) -> int:
    """Returns the delay at t = 0, ns, without jitter and without the extra delay of some flows."""
    if isinstance(delay, Time):
        return delay.ns
    if delay.constant is not None:
        return delay.constant.ns
    if delay.trace is not None:
        return int(delay.trace.steps()[0][1])
    assert delay.steps is not None
    return delay.steps[0].delay.ns
