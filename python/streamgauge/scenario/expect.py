"""Parts of a scenario around its flows: end of a trial, measurements, checks, figures and assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from streamgauge import installed
from streamgauge.claims.expression import Expression, ExpressionError
from streamgauge.claims.expression import parse as parse_check
from streamgauge.claims.names import METRICS, event_of, fed_by, is_known
from streamgauge.claims.syntax import Node
from streamgauge.scenario.draws import Distribution
from streamgauge.scenario.flow import Clip, ClipValue
from streamgauge.scenario.limits import MOST_REPETITIONS
from streamgauge.scenario.values import Model, issue, nearest
from streamgauge.systems.player_events import MEASURED, MeasuredEvent
from streamgauge.units import Percent, Quantity, Rate, Size, Time, UnitError, parse

__all__ = [
    "RENAMED",
    "Assumed",
    "Check",
    "Figure",
    "Limits",
    "Measure",
    "Population",
    "Published",
    "Repetitions",
    "Source",
    "Until",
]


class Source(Model):
    """Origin of the experiment."""

    paper: str
    section: str | None = None
    shows: tuple[str, ...] = ()
    """Its figures and tables there."""
    url: str | None = None


class Until(Model):
    """End of a trial: the first of the given conditions."""

    time: Time | None = None
    """At this time."""
    media_end: str | None = None
    """When this flow's media has been sent and played."""
    idle: Time | None = None
    """End after this time without a packet of a subject on the path; of any flow if there is no subject."""

    @model_validator(mode="after")
    def _sound(self) -> Until:
        if self.time is None and self.media_end is None and self.idle is None:
            raise issue("says no end; expected 'time', 'media_end' or 'idle'")
        for key in ("time", "idle"):
            value: Time | None = getattr(self, key)
            if value is not None and value.ns == 0:
                raise issue("0 s is no time at all", key)
        return self


def _off_or_time(value: Any) -> Any:
    if value is False or (isinstance(value, str) and value.strip().lower() == "off"):
        return "off"
    try:
        return Time(value)
    except UnitError as error:
        raise issue(f"{error}; or 'off'") from None


SampleTime = Annotated[
    Time | Literal["off"],
    PlainValidator(_off_or_time),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"anyOf": [Time.__get_pydantic_json_schema__(None, None), {"const": "off"}]}),
]


class Measure(Model):
    """Settings of metrics."""

    window: tuple[Time, Time] | None = None
    """From when to when; the whole trial if left out."""
    sample: Time = Field(default=Time("500 ms"))
    """Length of a sample of a time series."""
    layer: Literal["ethernet", "ip", "payload"] = "ip"
    """Which bytes throughput and loss count."""
    tcp_sample: SampleTime = Field(default=Time("100 ms"))
    """Time between samples of the state of each flow's TCP (window, round-trip time, ...), or ``off``."""

    @model_validator(mode="after")
    def _sound(self) -> Measure:
        if self.tcp_sample != "off" and self.tcp_sample.ns < 1_000_000:
            raise issue(f"a sample every {self.tcp_sample} is more than 1,000 a second", "tcp_sample")
        if self.sample.ns < 1_000_000:
            raise issue(f"a sample of {self.sample} is shorter than 1 ms", "sample")
        if self.window is not None:
            begin, end = self.window
            if not begin < end:
                raise issue(f"the window [{begin}, {end}] ends before it begins", "window")
            if self.sample.ns > end.ns - begin.ns:
                raise issue(f"a sample of {self.sample} is longer than the window", "sample")
        return self


Count = Annotated[int, Field(ge=1, strict=True)]


Repeated = Annotated[int, Field(ge=1, le=MOST_REPETITIONS, strict=True)]


class Repetitions(Model):
    """How many trials, each with a seed of its own."""

    sim: Repeated = 10
    emu: Repeated = 3


class Limits(Model):
    """Upper bounds of the cost of a trial in sim; a trial beyond one ends in an error."""

    events: Count = 1_000_000_000
    """Steps of packets through the path, timers and actions."""
    memory: Size = Field(default=Size("8 GB"))
    """Packets under way and the rows and events of the record, as they lie in memory."""


def _assumed_form(value: Any) -> Any:
    return {"try": value} if isinstance(value, list | tuple) else value


class Assumed(Model):
    """A value that the source does not state. The scenario holds the value assumed; ``--robust`` reruns it
    with each of these."""

    values: tuple[Any, ...] = Field(alias="try", min_length=1)
    why: str | None = None


AssumedValue = Annotated[Assumed, BeforeValidator(_assumed_form, json_schema_input_type=Assumed | list[Any])]


def _published_number(value: Any) -> Quantity | float:
    if isinstance(value, Quantity):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise PydanticCustomError("quantity", "{why}", {"why": f"{value!r} is not a number or a quantity"})
    if not isinstance(value, str):
        return float(value)  # an index such as Jain's has no unit
    try:
        return parse(value)
    except UnitError as error:
        raise PydanticCustomError("quantity", "{why}", {"why": str(error)}) from None


PublishedNumber = Annotated[
    Any,
    PlainValidator(_published_number),
    PlainSerializer(lambda value: str(value) if isinstance(value, Quantity) else value, when_used="json"),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "number"}], "description": "As the source prints it."}
    ),
]
Published = dict[str, PublishedNumber]


def _published_form(value: Any) -> Any:
    return value if isinstance(value, dict) else {"value": value}


def _expression_text(value: Any) -> Any:
    # The structured form prints as the text that parses to it.
    return str(value) if isinstance(value, Expression | Node) else value


class Check(Model):
    """A predicate over metrics that is expected to hold."""

    that: Annotated[str, BeforeValidator(_expression_text, json_schema_input_type=str)]
    """The predicate, in the check language (docs/checks.md)."""
    title: str | None = None
    """The claim in words."""
    published: Annotated[
        Published,
        BeforeValidator(_published_form, json_schema_input_type=PublishedNumber | Published),
    ] = Field(default_factory=dict)
    """The printed value of the source, for comparison."""
    origin: Literal["input", "fitted", "predicted"]
    """Whether the model was built from this very statement (input), tuned to it (fitted), or neither."""
    strict: bool = Field(default=False, strict=True)
    """The source's claim itself, without slack; a miss is a failure in every mode."""
    breaks: dict[str, Any] = Field(default_factory=dict)
    """The mutant: changes of the scenario under which the check must fail."""
    without: dict[str, Any] = Field(default_factory=dict)
    """A second mutant: it changes a subject's own parameter, rule or system where `breaks` changes the path,
    cross traffic or the content."""
    tolerance: Percent | None = None
    """How far the value may lie from the published one, for the report."""
    modes: tuple[Literal["sim", "emu"], ...] = ("sim", "emu")
    """Where it applies."""
    note: str | None = None
    """A caveat for readers: a contradiction in the source, a mechanism of the kernel."""

    @model_validator(mode="after")
    def _in_the_language(self) -> Check:
        try:
            expression = parse_check(self.that)
        except ExpressionError as error:
            raise issue(
                f"line {error.line}, column {error.column}: {error.message}", "that", error.hint
            ) from None
        for reference in expression.references():
            if (event := MEASURED.get(event_of(reference.metric) or "")) is not None:
                raise issue(
                    f"`{reference}`: {_of_metrics(event)}", "that", f"read {', '.join(fed_by(event.name))}"
                )
        return self


def _of_metrics(event: MeasuredEvent) -> str:
    return f"'{event.name}' is what metrics are made of, and not read as it is"


DRAWN: Final = ("series", "bars", "scatter", "cdf", "table", *installed.names(installed.FIGURES))
"""Kinds of figures: our own, and those of other installed packages."""


class Figure(Model):
    """A figure that the report draws."""

    draw: Literal[DRAWN]  # type: ignore[valid-type]
    """A kind of our own, or one that an installed package brings."""
    of: tuple[str, ...] = Field(min_length=1)
    """Names of metrics."""
    by: Literal["flow", "scenario", "stage"] = "flow"
    like: str | None = None
    """The source's figure that it corresponds to."""
    title: str | None = None

    @model_validator(mode="after")
    def _known_metrics(self) -> Figure:
        for index, name in enumerate(self.of):
            if not is_known(name):
                close = nearest(name, METRICS)
                raise issue(
                    f"unknown metric '{name}'; expected one of {', '.join(METRICS)}, or event.NAME",
                    ("of", index),
                    f"did you mean '{close}'?" if close else None,
                )
            event = event_of(name) or ""
            if (measured := MEASURED.get(event)) is not None:
                raise issue(_of_metrics(measured), ("of", index), f"draw {', '.join(fed_by(measured.name))}")
            if "." in event:
                shown = name[: name.rindex(".")]
                raise issue(f"'{name}' names a flow; a figure draws all", ("of", index), f"write {shown}")
        return self


RENAMED: Final = {"length": "duration", "levels": "encodings"}
"""Former keys of a population, with their present names: records and resume keys have them."""


class PopulationMember(Model):
    """A clip and its path, as an entry in a list of members."""

    clip: ClipValue
    """Clip of this member."""
    rtt: Time | None = None
    """Base round-trip time, half of it each way; all members have one, or none."""
    loss: Percent | None = None
    """Random loss on the way down; all members have one, or none."""


class Population(Model):
    """Clips and paths of which each trial plays one: seed 1 has member 1, and the first follows the last
    member. Values that are not drawn stay as in the scenario."""

    size: Count | None = None
    """How many members; as many as ``clips`` or ``members`` if those are given."""
    seed: Annotated[int, Field(ge=0, strict=True)] = 1
    """By which members are drawn; another one is another population."""
    flow: str | tuple[str, ...] | None = None
    """The flow that plays, or several that play the same; the one that plays a clip if there is but one."""
    clips: tuple[ClipValue, ...] | None = None
    """Clips of the members, in this order."""
    members: tuple[PopulationMember, ...] | None = None
    """Clips and paths of the members, in this order; in a scenario file, the path of a file with such a list
    is valid too."""
    rate: Distribution | None = None
    """Bit rate of their clips."""
    duration: Distribution | None = None
    """How long they play."""
    encodings: tuple[Count, Count] | None = None
    """Fewest and most encodings of a clip, which are drawn from the ladder of the flow's."""
    rtt: Distribution | None = None
    """Base round-trip time, half of it each way, in place of the path's delays."""
    loss: Distribution | None = None
    """Random loss on the way down, percent, in place of the path's."""

    @model_validator(mode="before")
    @classmethod
    def _words(cls, data: Any) -> Any:
        for was, now in RENAMED.items():
            if isinstance(data, dict) and was in data:
                raise issue(f"'{was}' is called '{now}', as of a clip", was, f"write '{now}'")
        return data

    @model_validator(mode="after")
    def _sound(self) -> Population:
        said = [key for key in ("size", "clips", "members") if getattr(self, key) is not None]
        if len(said) != 1:
            why = "a population has either a 'size', 'clips' or 'members'"
            raise issue(why, said[0] if said else ())
        if self.played == ():
            raise issue("a population has a member at least", said[0], "name a clip, or write a 'size'")
        if self.flow == ():
            raise issue("no flow plays", "flow", "name one, or leave it out")
        if self.members is not None:
            self._written_down(self.members)
        for key, kind in (("rate", Rate), ("duration", Time), ("rtt", Time), ("loss", Percent)):
            distribution = getattr(self, key)
            if distribution is not None and distribution.kind is not kind:
                raise issue(
                    f"'{distribution}' is of a {distribution.kind.noun}, and a {kind.noun} is drawn",
                    key,
                    f"such as 'uniform {kind.example} to {kind.example}'",
                )
        if self.duration is not None and self.duration.least.amount == 0:
            raise issue(f"'{self.duration}' draws 0 s, which has nothing to play", "duration")
        if self.rate is not None and self.rate.least < _LEAST_RATE:
            raise issue(f"'{self.rate}' draws less than {_LEAST_RATE}, which no encoder makes", "rate")
        if self.loss is not None and self.loss.most.amount > 100:
            raise issue(f"'{self.loss}' draws more than 100 %", "loss")
        if self.encodings is not None:
            fewest, most = self.encodings
            if fewest > most:
                raise issue(f"the fewest, {fewest}, are more than the most, {most}", "encodings")
            for key in ("clips", "rate"):
                if getattr(self, key) is not None:
                    raise issue(
                        f"'{key}' says what rates a clip has", "encodings", f"leave it or '{key}' out"
                    )
        return self

    def _written_down(self, members: tuple[PopulationMember, ...]) -> None:
        for key in ("rate", "duration", "encodings", "rtt", "loss"):
            if getattr(self, key) is not None:
                raise issue("'members' say what each has; nothing is drawn", key, "leave one of them out")
        for key in ("rtt", "loss"):
            has = [getattr(member, key) is not None for member in members]
            if any(has) and not all(has):
                raise issue(
                    f"member {has.index(False) + 1} has no '{key}', and others have",
                    "members",
                    "write it for all of them, or for none",
                )

    @property
    def played(self) -> tuple[str | Clip, ...] | None:
        """Returns the members' clips, in order; `None` where they play the flow's own clip."""
        return self.clips if self.members is None else tuple(member.clip for member in self.members)

    def keyed_clips(self) -> Iterator[tuple[tuple[str | int, ...], str | Clip]]:
        """Yields the members' clips, each with its place in the scenario."""
        for index, clip in enumerate(self.clips or ()):
            yield ("population", "clips", index), clip
        for index, member in enumerate(self.members or ()):
            yield ("population", "members", index, "clip"), member.clip

    def sets(self, key: str) -> bool:
        """Returns whether members have an ``rtt`` or a ``loss`` of their own, drawn or written down."""
        return any(getattr(one, key) is not None for one in (self, *(self.members or ())))

    @property
    def players(self) -> tuple[str, ...] | None:
        """Returns the flows that play the members' clips; `None` for the one that plays a clip."""
        return (self.flow,) if isinstance(self.flow, str) else self.flow

    def is_for(self, flow: str) -> bool:
        """Returns whether that flow plays the members' clips, if it plays a clip."""
        return self.players is None or flow in self.players

    @property
    def count(self) -> int:
        """Returns how many members there are."""
        return self.size if self.size is not None else len(self.played or ())


_LEAST_RATE = Rate("10 kbit/s")
