"""The rate of a bottleneck over time."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.path.common import choose, first_at_zero, form
from streamgauge.scenario.path.trace import Trace
from streamgauge.scenario.values import Model, issue
from streamgauge.units import Rate, Time

__all__ = ["LinkRate", "RateStep", "RateSteps", "Square", "SquareWave", "rates_bps"]


class RateStep(Model):
    """From `at` on, `rate`. Zero is an outage."""

    at: Time
    rate: Rate


class RateSteps(Model):
    """A rate that changes at given times, the first at 0 s."""

    steps: tuple[RateStep, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> RateSteps:
        first_at_zero([step.at for step in self.steps], "steps")
        if self.steps[-1].rate.bps == 0:
            raise issue(
                "the last step's rate is 0, so nothing would ever get through",
                ("steps", len(self.steps) - 1, "rate"),
            )
        return self


class SquareWave(Model):
    """`first` for half a period, `second` for the other half, and again."""

    first: Rate
    second: Rate
    period: Time

    @model_validator(mode="after")
    def _sound(self) -> SquareWave:
        if self.period.ns < 2:
            raise issue(f"a period of {self.period} has no halves", "period")
        if self.first.bps == 0 and self.second.bps == 0:
            raise issue("both rates are 0, so nothing would ever get through", "first")
        return self


class Square(Model):
    """A square wave of the rate."""

    square: SquareWave


class Csv(Model):
    """A trace of comma-separated times and rates, with their units in its header."""

    csv: str


FORMS: dict[str, type[Model]] = {"steps": RateSteps, "square": Square, "trace": Trace}


def _checked(value: Any) -> Any:
    """``{csv: FILE}`` is a trace with an explicit format."""
    if not isinstance(value, dict):
        return value
    chosen = choose(value, "form of a rate", (*FORMS, "csv"), "1 Mbit/s")
    if "csv" not in chosen:
        return chosen
    file = chosen["csv"]
    return {"trace": {**(file if isinstance(file, dict) else {"file": file}), "format": "csv"}}


LinkRate = Annotated[
    Annotated[Rate, Tag("~constant")]
    | Annotated[RateSteps, Tag("~steps")]
    | Annotated[Square, Tag("~square")]
    | Annotated[Trace, Tag("~trace")],
    Discriminator(lambda value: form(value, "constant", **FORMS)),
    BeforeValidator(_checked, json_schema_input_type=Rate | RateSteps | Square | Trace | Csv),
]


def rates_bps(rate: Rate | RateSteps | Square | Trace) -> list[int]:
    """Returns every rate that it takes, bit/s."""
    if isinstance(rate, Rate):
        return [rate.bps]
    if isinstance(rate, Square):
        return [rate.square.first.bps, rate.square.second.bps]
    if isinstance(rate, Trace):
        return rate.trace.rates_bps()
    return [step.rate.bps for step in rate.steps]
