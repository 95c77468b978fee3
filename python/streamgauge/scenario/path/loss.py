"""Random loss."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from streamgauge.scenario.path.common import Settings, Switched, at_most_everything, choose, form
from streamgauge.scenario.path.trace import LossTrace
from streamgauge.scenario.values import issue
from streamgauge.units import Packets, Percent

__all__ = [
    "LOSSES",
    "Bernoulli",
    "Gilbert",
    "GilbertElliott",
    "GilbertElliottRuns",
    "GilbertRuns",
    "LossList",
    "LossValue",
    "TracedLoss",
    "loss_words",
]


def _runs(model: Any) -> None:
    for key in ("good", "bad"):
        run: Packets = getattr(model, key)
        if run.amount < 1:
            raise issue(f"a mean run of {run} is shorter than one packet", key)


class GilbertRuns(Settings):
    """Mean lengths of the runs of delivered and of lost packets."""

    good: Packets
    bad: Packets

    @model_validator(mode="after")
    def _sound(self) -> GilbertRuns:
        _runs(self)
        return self


class GilbertElliottRuns(Settings):
    """Mean lengths of the stays in the good and in the bad state, and the loss in each state."""

    good: Packets
    bad: Packets
    loss_good: Percent = Field(default=Percent("0 %"))
    """Loss of the packets in the good state."""
    loss_bad: Percent = Field(default=Percent("100 %"))
    """Loss of the packets in the bad state."""

    @model_validator(mode="after")
    def _sound(self) -> GilbertElliottRuns:
        _runs(self)
        for key in ("loss_good", "loss_bad"):
            at_most_everything(getattr(self, key), key, "loss")
        if self.loss_good > self.loss_bad:
            raise issue(
                f"the good state loses {self.loss_good}, more than the bad one's {self.loss_bad}", "loss_good"
            )
        return self


class Bernoulli(Switched):
    """Each packet is lost with this probability, independently."""

    bernoulli: Percent

    @model_validator(mode="after")
    def _sound(self) -> Bernoulli:
        at_most_everything(self.bernoulli, "bernoulli", "loss")
        return self


class Gilbert(Switched):
    """Two-state Markov loss (Gilbert 1960): the good state delivers, the bad state drops."""

    gilbert: GilbertRuns


class GilbertElliott(Switched):
    """Two-state Markov loss (Elliott 1963): each state loses packets with a probability of its own."""

    gilbert_elliott: GilbertElliottRuns


class LossList(Switched):
    """The packets named are lost, and no others: the 0th is the first to arrive while loss is on."""

    list: tuple[Annotated[int, Field(ge=0, strict=True)], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> LossList:
        for index, (before, after) in enumerate(zip(self.list, self.list[1:], strict=False)):
            if not before < after:
                raise issue(
                    f"packet {after} does not come after {before}; the list must ascend", ("list", index + 1)
                )
        return self


class TracedLoss(Switched):
    """Each packet is lost independently, with the probability that a table of times and rates has then."""

    trace: LossTrace


LOSSES: dict[str, type[Any]] = {
    "bernoulli": Bernoulli,
    "gilbert": Gilbert,
    "gilbert_elliott": GilbertElliott,
    "list": LossList,
    "trace": TracedLoss,
}


_IN_WORDS = ("bernoulli", "gilbert", "gilbert_elliott", "trace")


def loss_words(value: Any) -> Any:
    """Accepts ``1 %`` as Bernoulli, and ``gilbert good 10 packets bad 2 packets`` with model and settings."""
    if isinstance(value, str) and value.split(" ")[0] in _IN_WORDS:
        return choose(value, "model of loss", LOSSES, "1 %")
    if isinstance(value, str | Percent | int | float):
        return {"bernoulli": value}
    return choose(value, "model of loss", LOSSES, "1 %", ("switch",))


LossModel = Annotated[
    Annotated[Bernoulli, Tag("~bernoulli")]
    | Annotated[Gilbert, Tag("~gilbert")]
    | Annotated[GilbertElliott, Tag("~gilbert_elliott")]
    | Annotated[LossList, Tag("~list")]
    | Annotated[TracedLoss, Tag("~trace")],
    Discriminator(lambda value: form(value, "bernoulli", **LOSSES)),
]
LossValue = Annotated[
    LossModel,
    BeforeValidator(
        loss_words,
        json_schema_input_type=Percent
        | Annotated[str, Field(pattern=r"^\s*(bernoulli|gilbert|gilbert_elliott|trace)\s+\S.*$")]
        | Bernoulli
        | Gilbert
        | GilbertElliott
        | LossList
        | TracedLoss,
    ),
]
