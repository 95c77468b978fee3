"""One direction of a path, and both."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.path.changes import PathChange
from streamgauge.scenario.path.commas import queue_in_full, split_values
from streamgauge.scenario.path.delay import DelayValue, delay_ns
from streamgauge.scenario.path.elements import Blocking, Corruption, Duplication, MtuLimit, Reordering
from streamgauge.scenario.path.loss import LossValue
from streamgauge.scenario.path.presets import expand, find_preset, preset_names
from streamgauge.scenario.path.queue import Queue, limit_of
from streamgauge.scenario.path.rate import LinkRate
from streamgauge.scenario.path.shaper import Cbq, Shaper, Sleeping, TokenBucket
from streamgauge.scenario.path.stages import (
    STAGES,
    AnyStage,
    Bottleneck,
    Delay,
    Layer,
    Stage,
)
from streamgauge.scenario.path.trace import Trace
from streamgauge.scenario.values import FLOW_NAME, Model, issue
from streamgauge.units import Rate, Size, Time

__all__ = ["Direction", "Path", "preset"]

Where = tuple[str | int, ...]


class Direction(Model):
    """One direction of a path, in the order that packets cross it: ``block``, ``loss``, ``corrupt``,
    ``duplicate``, ``mtu``, a bottleneck (``rate``, ``queue`` and ``shaper``), ``delay``, ``reorder``. Each
    may be left out. Or ``stages``, named, in any order and number."""

    block: Blocking | None = None
    loss: LossValue | None = None
    corrupt: Corruption | None = None
    duplicate: Duplication | None = None
    mtu: MtuLimit | None = None
    rate: LinkRate | None = None
    queue: Queue | None = None
    shaper: Shaper = None
    layer: Layer = "ethernet"
    delay: DelayValue | None = None
    reorder: Reordering | None = None
    stages: tuple[Stage, ...] | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _commas(cls, data: Any, handler: ModelWrapValidatorHandler[Direction]) -> Direction:
        try:
            return handler(data)
        except ValidationError as error:
            failed = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
            for key in failed if isinstance(data, dict) else ():
                if (problem := _missing_comma(data, key, handler)) is not None:
                    raise problem from None
            raise

    @model_validator(mode="after")
    def _sound(self) -> Direction:
        short = [key for key in (*STAGES, "queue", "shaper") if getattr(self, key) is not None]
        if self.stages is not None:
            if short:
                raise issue(
                    f"'{short[0]}' and 'stages' exclude each other; write {short[0]} as a stage", short[0]
                )
            self._names_sound([stage.name for stage in self.stages])
        if self.rate is not None and self.queue is None:
            raise issue("a rate needs a queue in front of it", "rate", "add such as 'queue: droptail 10 kB'")
        for key in ("queue", "shaper"):
            if getattr(self, key) is not None and self.rate is None:
                does = "drains it" if key == "queue" else "it keeps to"
                raise issue(f"a {key} needs the rate that {does}", key, "add such as 'rate: 1 Mbit/s'")
        for where, bottleneck in self.bottlenecks():
            _bottleneck_sound(where, bottleneck)
        return self

    @staticmethod
    def _names_sound(names: list[str]) -> None:
        for index, name in enumerate(names):
            if not FLOW_NAME.fullmatch(name):
                raise issue(
                    f"{name!r} is not a name; expected a letter, then letters, digits or _, 100 at most",
                    ("stages", index, "name"),
                )
            if name in names[:index]:
                raise issue(
                    f"two stages are called '{name}'; names are unique within a direction",
                    ("stages", index, "name"),
                )

    def chain(self) -> tuple[AnyStage, ...]:
        """Returns the stages in the order that packets cross them; empty for a plain wire."""
        return self._in_order

    @cached_property
    def _in_order(self) -> tuple[AnyStage, ...]:
        if self.stages is not None:
            return self.stages
        made: list[Any] = []
        for key, stage in STAGES.items():
            value = getattr(self, key)
            if value is None:
                continue
            if stage is Bottleneck:
                assert self.queue is not None
                bottleneck = Bottleneck(
                    name="bottleneck", rate=value, queue=self.queue, shaper=self.shaper, layer=self.layer
                )
                made.append(bottleneck)
            else:
                made.append(stage(name=key, **{key: value}))
        return tuple(made)

    def places(self) -> Iterator[tuple[Where, AnyStage]]:
        """Yields every stage with where its keys stand, relative to the direction."""
        for index, stage in enumerate(self.chain()):
            yield (("stages", index) if self.stages is not None else ()), stage

    def bottlenecks(self) -> Iterator[tuple[Where, Bottleneck]]:
        """Yields every bottleneck with its place."""
        for where, stage in self.places():
            if isinstance(stage, Bottleneck):
                yield where, stage

    def delay_ns(self) -> int:
        """Propagation delay at t = 0, ns."""
        return sum(delay_ns(stage.delay) for stage in self.chain() if isinstance(stage, Delay))


def _missing_comma(
    data: dict[str, Any], key: str, handler: ModelWrapValidatorHandler[Direction]
) -> PydanticCustomError | None:
    """Returns the error for ``key`` if its value continues with other keys and is valid without them."""
    said = {name: value for name, value in data.items() if value is not None}
    if not isinstance(said.get(key), str):
        return None
    pairs = [
        (name, queue_in_full(value) if name == "queue" else value)
        for name, value in split_values(key, said.pop(key))
    ]
    if len(pairs) == 1 or {name for name, _ in pairs} & set(said):
        return None
    try:
        handler({**said, **dict(pairs)})
    except ValidationError:
        return None
    whole = ", ".join(f"{name}: {value}" for name, value in pairs)
    return issue(
        f"a comma is missing before '{pairs[1][0]}'",
        key,
        f"write '{whole}', or each key on a line of its own",
    )


def _bottleneck_sound(where: Where, bottleneck: Bottleneck) -> None:
    if isinstance(bottleneck.rate, Rate) and bottleneck.rate.bps == 0:
        raise issue("a rate of 0 lets nothing through; expected more than 0 bit/s", (*where, "rate"))
    most = bottleneck.packet_bytes
    _, limit = limit_of(bottleneck.queue)
    held: float | None = None
    if isinstance(limit, Size):
        held = limit.bytes
    elif isinstance(limit, Time):
        held = max(bottleneck.rates_bps()) * limit.s / 8
    if held is not None and held < most:
        meaning = "" if isinstance(limit, Size) else f", {held:.0f} B at its highest rate,"
        raise issue(
            f"a queue of {limit}{meaning} cannot hold one packet of {most} B",
            (*where, "queue"),
            f"expected at least {most} B",
            depends=isinstance(limit, Time),
        )
    if (
        isinstance(bottleneck.rate, Trace)
        and bottleneck.rate.trace.is_opportunities
        and bottleneck.shaper is not None
    ):
        raise issue(
            "a trace of delivery opportunities says itself when packets leave; it takes no shaper",
            (*where, "shaper"),
            "leave the shaper out",
        )
    if isinstance(bottleneck.shaper, TokenBucket) and bottleneck.shaper.token_bucket.burst.bytes < most:
        raise issue(
            f"a burst of {bottleneck.shaper.token_bucket.burst} never gathers the tokens "
            f"for a packet of {most} B",
            (*where, "shaper", "token_bucket", "burst"),
            f"expected at least {most} B",
        )
    if isinstance(bottleneck.shaper, Sleeping) and 0 in bottleneck.rates_bps():
        raise issue("at a rate of 0 it would sleep for ever; take another shaper", (*where, "shaper"))
    if isinstance(bottleneck.shaper, Cbq):
        device, most_bps = bottleneck.shaper.cbq.device_rate, max(bottleneck.rates_bps())
        if 0 in bottleneck.rates_bps():
            raise issue("CBQ knows no rate of 0; take another shaper, or a small rate", (*where, "shaper"))
        if device.bps <= most_bps:
            raise issue(
                f"the device's {device} is not above the rate of the class on it, {Rate.of(most_bps)}",
                (*where, "shaper", "cbq", "device_rate"),
            )


def _preset_or_down(schema: dict[str, Any]) -> None:
    schema["properties"]["preset"] = {
        "type": "string",
        "enum": preset_names(),
        "description": "A path that ships, for every key that is not given here.",
    }
    schema.pop("required", None)
    schema["anyOf"] = [{"required": ["down"]}, {"required": ["preset"]}]


class Path(Model):
    """Route of the packets: ``down`` from server to player, ``up`` back. A ``preset`` supplies the parts that
    they lack."""

    model_config = ConfigDict(json_schema_extra=_preset_or_down)

    down: Direction
    up: Direction = Field(default_factory=Direction)
    based_on: str | None = None
    """The preset that was filled in; it changes nothing any more."""
    changes: tuple[PathChange, ...] | None = None
    """Settings that change at times, as after steering by hand. With an empty list the path is ready for
    steering."""

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "preset" not in data:
            return data
        try:
            return expand(data)
        except ScenarioError as error:
            raise issue(error.message, error.key or "preset", error.hint) from None

    def base_rtt_ns(self) -> int:
        """Round-trip propagation delay at t = 0, ns."""
        return self.down.delay_ns() + self.up.delay_ns()


def preset(name: str) -> Path:
    """Returns the path of that name: ``preset("lte").down`` is a `Direction`. `preset_names` lists the names,
    `find_preset` returns the sources too. Raises ScenarioError with the nearest spelling."""
    return Path.model_validate(copy.deepcopy(find_preset(name).data))
