"""Common parts of the rooms of the path: forms distinguished by their key, settings in words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from streamgauge.scenario.values import TAG_MARK, Flag, Model, issue, nearest
from streamgauge.units import Bdp, Packets, Percent, Quantity, Size, Time, UnitError, parse

__all__ = [
    "MAX_IP_BYTES",
    "Flag",
    "LimitChoice",
    "QueueLimit",
    "Settings",
    "Switch",
    "Switched",
    "ascending",
    "at_most_everything",
    "choose",
    "first_at_zero",
    "form",
    "not_zero",
    "whole_packets",
]
#: The largest IP packet that we send; a bottleneck counts 14 bytes more unless its layer is ip.
MAX_IP_BYTES = 1500

LIMITS = (Size, Packets, Time, Bdp)
"""Units of a queue's limit."""
_CHOICE = re.compile(r"\s*(max|min)\s*\((.*)\)\s*")


@dataclass(frozen=True)
class LimitChoice:
    """The greatest or the least of several limits, ``max(0.5 BDP, 4 packets)``: rate and delay decide which
    of them it is."""

    pick: Literal["max", "min"]
    limits: tuple[Quantity, ...]

    def __str__(self) -> str:
        return f"{self.pick}({', '.join(map(str, self.limits))})"


def _limit(value: Any) -> Quantity | LimitChoice:
    if isinstance(value, LimitChoice | Quantity) and type(value) in (LimitChoice, *LIMITS):
        return value
    text = value if isinstance(value, str) else str(value) if isinstance(value, Quantity) else repr(value)
    try:
        if (match := _CHOICE.fullmatch(text)) is None:
            if re.match(r"\s*(max|min)\s*\(", text):
                raise issue(
                    f"'{text.strip()}' has no closing bracket",
                    hint="inside {...} of YAML a value with a comma needs quotes: "
                    '"droptail max(0.5 BDP, 4 packets)"',
                )
            return parse(text, *LIMITS)
        found = tuple(parse(part, *LIMITS) for part in match[2].split(","))
    except UnitError as error:
        raise issue(str(error)) from None
    if len(found) < 2:
        raise issue(f"{text.strip()} chooses among one limit; expected such as max(0.5 BDP, 4 packets)")
    return LimitChoice("max" if match[1] == "max" else "min", found)


#: How much a queue holds.
QueueLimit = Annotated[
    Quantity | LimitChoice,
    PlainValidator(_limit),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                *(kind.__get_pydantic_json_schema__(None, None) for kind in LIMITS),
                {
                    "type": "string",
                    "description": "The greatest or the least of several limits.",
                    "pattern": r"^\s*(max|min)\s*\([^,()]+(,[^,()]+)+\)\s*$",
                    "examples": ["max(0.5 BDP, 4 packets)"],
                },
            ]
        }
    ),
]


def ascending(times: list[Time], key: str) -> None:
    """Refuses times that do not ascend."""
    for index, (before, after) in enumerate(itertools.pairwise(times)):
        if not before < after:
            raise issue(f"{after} does not come after {before}; times must ascend", (key, index + 1, "at"))


def first_at_zero(times: list[Time], key: str) -> None:
    """Refuses a list of settings over time without one at the start."""
    if times[0].ns != 0:
        raise issue(f"the first step is at {times[0]}; it must be at 0 s", (key, 0, "at"))
    ascending(times, key)


def form(value: Any, plain: str, **forms: type[Any]) -> str:
    """Returns the tag of the form that ``value`` has."""
    for name, kind in forms.items():
        if isinstance(value, kind):
            return TAG_MARK + name
    if isinstance(value, dict):
        for name in forms:
            if name in value:
                return TAG_MARK + name
        close = [found for key in value if (found := nearest(str(key), forms))]
        return TAG_MARK + (close[0] if close else next(iter(forms)))
    return TAG_MARK + plain


def choose(value: Any, what: str, forms: Iterable[str], example: str, beside: tuple[str, ...] = ()) -> Any:
    """Returns words such as ``codel 100 packets`` as ``{codel: 100 packets}``; refuses an unknown form.

    A mapping names exactly one of ``forms``, and may have the keys ``beside`` it. Models pass as they are.
    """
    names = list(forms)
    if isinstance(value, str):
        name, _, rest = value.strip().partition(" ")
        if name in names:
            return {name: rest.strip() or None}
        close = nearest(name, names)
        raise issue(
            f"unknown {what} '{name}'; expected one of {', '.join(names)}",
            hint=f"did you mean '{close} {rest.strip()}'?".replace(" '?", "'?") if close else None,
        )
    if isinstance(value, dict):
        named = [key for key in value if key not in beside]
        for key in named:
            if key not in names:
                close = nearest(str(key), names)
                raise issue(
                    f"unknown {what} '{key}'; expected one of {', '.join(names)}",
                    str(key),
                    f"did you mean '{close}'?" if close else None,
                )
        if len(named) != 1:
            said = f"'{named[0]}' and '{named[1]}' exclude each other" if named else f"names no {what}"
            raise issue(f"{said}; expected one of {', '.join(names)}", str(named[1]) if named else ())
        return value
    if isinstance(value, Model):
        return value
    raise issue(f"{value!r} is not a {what}; expected such as '{example}'")


# A number with its unit: no more words belong to it.
_WHOLE = re.compile(r"[+-]?[\d.]+\s*[A-Za-z%].*")


class Settings(Model):
    """A form's settings. One line of words is valid too: the first value, then ``key value`` pairs, such as
    ``100 packets target 5 ms ecn on``."""

    #: The key of the first value in words; ``None`` if each value needs its key.
    first: ClassVar[str | None] = None

    @classmethod
    def from_words(cls, data: Any) -> Any:
        if data is None:
            return {}
        if isinstance(data, str):
            return cls._said(data)
        if isinstance(data, Quantity | int | float) and cls.first is not None:
            return {cls.first: data}
        return data

    @classmethod
    def _said(cls, text: str) -> dict[str, Any]:
        keys = cls.keys()
        groups: list[tuple[str | None, list[str]]] = [(cls.first, [])]
        for word in text.split():
            if word in keys:
                groups.append((word, []))
                continue
            if _WHOLE.fullmatch(" ".join(groups[-1][1])):
                close = nearest(word, keys)
                raise issue(
                    f"unknown key '{word}'; expected one of {', '.join(keys)}",
                    word,
                    f"did you mean '{close}'?" if close else None,
                )
            groups[-1][1].append(word)
        said: dict[str, Any] = {}
        for index, (key, words) in enumerate(groups):
            if index == 0 and not words:
                continue
            if key is None:
                close = nearest(words[0], keys)
                raise issue(
                    f"'{words[0]}' stands where a key was expected; expected one of {', '.join(keys)}",
                    hint=f"did you mean '{close}'?" if close else None,
                )
            if key in said:
                raise issue(f"'{key}' is said twice", key)
            said[key] = " ".join(words) or "on"  # a key alone is a flag
        return said

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        made: dict[str, Any] = handler(schema)
        return {"anyOf": [made, {"type": "string", "description": "The same in words."}, {"type": "null"}]}


class Switch(Model):
    """Turns something on or off at a time. It is on from the start unless the first switch is at 0 s."""

    at: Time
    to: Literal["on", "off"]


class Switched(Model):
    """Whatever may be switched on and off."""

    switch: tuple[Switch, ...] = ()

    @model_validator(mode="after")
    def _switches_ascend(self) -> Switched:
        ascending([switch.at for switch in self.switch], "switch")
        return self


def whole_packets(count: Packets, key: str, what: str = "a queue") -> None:
    """Refuses a fraction of a packet, and no packets at all."""
    if count.amount < 1 or count.amount != int(count.amount):
        raise issue(
            f"{what} of {count} cannot hold one packet; expected a whole number of packets, 1 or more", key
        )


def at_most_everything(share: Percent, key: str, what: str) -> None:
    """Refuses more than 100 %."""
    if share.amount > Decimal(100):
        raise issue(f"a {what} of {share} is more than everything; expected 0 to 100 %", key)


def not_zero(value: Time | Size, key: str, what: str) -> None:
    """Refuses 0."""
    if value.amount == 0:
        raise issue(f"{what} of 0 makes no sense; expected such as {value.example}", key)
