"""Parts of the scenario model: the base class, times relative to a flow, random draws."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from streamgauge.units import Quantity, Time, UnitError, parse

__all__ = [
    "FLOW_NAME",
    "PATHS",
    "TAG_MARK",
    "Flag",
    "Instant",
    "Model",
    "Problem",
    "Text",
    "Uniform",
    "a_quantity",
    "issue",
    "nearest",
]

PATHS = "a path in a file is relative to it, one in --set to the working directory"
"""The remedy of a path that leads nowhere."""

#: A flow's or stage's name: one word of the check language.
FLOW_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Returns the valid spelling closest to ``word``, if any is close."""
    words = list(words)
    folded = {known.lower().replace("-", "_"): known for known in words}
    plain = str(word).lower().replace("-", "_")
    if plain in folded:
        return folded[plain]
    close = difflib.get_close_matches(plain, folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def issue(
    why: str,
    key: str | tuple[str | int, ...] = (),
    hint: str | None = None,
    *,
    depends: bool = False,
) -> PydanticCustomError:
    """Returns an error about ``key``, relative to the object being validated; the loader places it in the
    file. `depends` is that of `Problem`."""
    path = (key,) if isinstance(key, str) else key
    said = f"{why} ({hint})" if hint else why
    context = {"said": said, "why": why, "key": path, "hint": hint, "depends": depends}
    return PydanticCustomError("issue", "{said}", context)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where."""

    path: tuple[str | int, ...]
    why: str
    hint: str | None = None
    depends: bool = False
    """Whether the value makes sense in itself, and beside other settings than these."""


class Model(BaseModel):
    """Keyword-only, immutable, and strict about unknown keys, which it answers with the nearest spelling."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        data = cls.from_words(data)
        if not isinstance(data, dict):
            known = ", ".join(cls.keys())
            raise issue(f"{data!r} stands where a mapping was expected", hint=f"its keys are: {known}")
        names = _names(cls)
        for key in data:
            if key not in names:
                close = nearest(str(key), cls.keys())
                expected = f"expected one of {', '.join(cls.keys())}"
                hint = f"did you mean '{close}'?" if close else None
                if str(key).endswith(")"):
                    hint = "inside {...} a value with a comma in it needs quotes"
                raise issue(f"unknown key '{key}'; {expected}", str(key), hint)
        return data

    @classmethod
    def from_words(cls, data: Any) -> Any:
        """Returns the mapping for a shorter form; this class has no shorter form."""
        return data

    @classmethod
    def keys(cls) -> list[str]:
        """Returns the keys as YAML writes them, in order."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    def changed(self, *, context: dict[str, Any] | None = None, **changes: Any) -> Self:
        """Returns a copy with some fields replaced, validated again; `context` is for its validators."""
        fields = {name: getattr(self, name) for name in self.model_fields_set}
        return type(self).model_validate({**fields, **changes}, context=context)


@cache
def _names(model: type[Model]) -> frozenset[str]:
    """Returns each field's name and its key."""
    return frozenset({*model.model_fields, *model.keys()})


class Text:
    """Base of values that YAML writes as one string: parse, print, compare by value."""

    pattern = ".*"
    example = ""
    description = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        raise NotImplementedError

    @classmethod
    def _validate(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        try:
            if not isinstance(value, str | Quantity):
                raise UnitError(
                    f"{value!r} stands where {cls.description} was expected, such as {cls.example}"
                )
            return cls.parse(str(value))
        except UnitError as error:
            raise PydanticCustomError("text", "{why}", {"why": str(error)}) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str, when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: Any) -> dict[str, Any]:
        description = cls.description[0].upper() + cls.description[1:] + "."
        return {
            "type": "string",
            "description": description,
            "pattern": cls.pattern,
            "examples": [cls.example],
        }


class Instant(Text):
    """A time since the trial's start, or since a flow's start or stop: ``10 s``, ``qt.start + 10 s``."""

    __slots__ = ("edge", "flow", "offset", "sign")
    pattern = r"^\s*([A-Za-z]\w*\.(start|stop)(\s*[+-]\s*\S.*)?|[0-9.].*)\s*$"
    example = "qt.start + 10 s"
    description = "a time since the trial's start, or since a flow's start or stop"
    _RELATIVE = re.compile(r"\s*([A-Za-z]\w*)\.([A-Za-z_]+)\s*(?:([+-])\s*(.+?))?\s*")

    def __init__(
        self,
        offset: Time | str = "0 s",
        *,
        flow: str | None = None,
        edge: Literal["start", "stop"] = "start",
        before: bool = False,
    ) -> None:
        self.flow = flow
        self.edge = edge
        self.offset = Time(offset)
        self.sign = -1 if before and self.offset.ns else 1

    @classmethod
    def parse(cls, text: str) -> Instant:
        match = cls._RELATIVE.fullmatch(text)
        if match is None:
            return cls(Time(text))
        flow, edge, sign, offset = match.groups()
        if edge not in ("start", "stop"):
            close = nearest(edge, ("start", "stop")) or "start"
            expected = f"expected {flow}.start or {flow}.stop"
            raise UnitError(f"'{flow}.{edge}' is not known; {expected}; did you mean {flow}.{close}?")
        return cls(
            offset or "0 s", flow=flow, edge="start" if edge == "start" else "stop", before=sign == "-"
        )

    @property
    def offset_ns(self) -> int:
        """Signed nanoseconds after the flow's edge, or after the trial's start."""
        return self.sign * self.offset.ns

    def __str__(self) -> str:
        if self.flow is None:
            return str(self.offset)
        base = f"{self.flow}.{self.edge}"
        return f"{base} {'-' if self.sign < 0 else '+'} {self.offset}" if self.offset.ns else base

    def __repr__(self) -> str:
        return f"Instant.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Uniform(Text):
    """A draw between two quantities of one kind: ``uniform 0 to 100 ms``."""

    __slots__ = ("high", "low")
    pattern = r"^\s*uniform\s+\S.*\s+to\s+\S.*$"
    example = "uniform 0 ms to 100 ms"
    description = "a uniform draw between two quantities"
    _FORM = re.compile(r"\s*uniform\s+(.+?)\s+to\s+(.+?)\s*")
    _UNIT = re.compile(r"[^\d.\s+-].*")

    def __init__(self, low: Quantity | str, high: Quantity | str) -> None:
        self.high = high if isinstance(high, Quantity) else parse(high)
        self.low = low if isinstance(low, Quantity) else type(self.high)(low)
        if type(self.low) is not type(self.high):
            raise UnitError(f"{self.low} and {self.high} are not of one kind")
        if self.low > self.high:
            raise UnitError(f"uniform {self.low} to {self.high}: the lower bound is above the upper one")

    @classmethod
    def parse(cls, text: str) -> Uniform:
        match = cls._FORM.fullmatch(text)
        if match is None:
            raise UnitError(f"{text!r} is not a draw; expected such as {cls.example}")
        low, high = match.groups()
        unit = cls._UNIT.search(high)
        # "0 to 100 ms": one unit is for both.
        if unit and not cls._UNIT.search(low):
            low = f"{low} {unit.group()}"
        return cls(low, parse(high))

    def __str__(self) -> str:
        return f"uniform {self.low} to {self.high}"

    def __repr__(self) -> str:
        return f"Uniform.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Uniform) and (self.low, self.high) == (other.low, other.high)

    def __hash__(self) -> int:
        return hash((self.low, self.high))


def a_quantity(*kinds: type[Quantity]) -> Any:
    """Returns the type of a field that takes a quantity of any of ``kinds``."""

    def validate(value: Any) -> Quantity:
        try:
            if isinstance(value, kinds):
                return value
            if isinstance(value, Quantity):
                value = str(value)
            if not isinstance(value, str):
                value = repr(value)
            return parse(value, *kinds)
        except UnitError as error:
            raise PydanticCustomError("quantity", "{why}", {"why": str(error)}) from None

    schemas = [kind.__get_pydantic_json_schema__(None, None) for kind in kinds]
    return Annotated[
        Quantity,
        PlainValidator(validate),
        PlainSerializer(str, return_type=str, when_used="json"),
        WithJsonSchema({"anyOf": schemas}),
    ]


# Tags begin with this, for the loader to distinguish them from keys in an error's location.
TAG_MARK = "~"


def _flag(value: Any) -> Any:
    words = {"on": True, "off": False, "true": True, "false": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise issue(f"{value!r} is neither on nor off; expected true or false")


Flag = Annotated[bool, BeforeValidator(_flag, json_schema_input_type=bool | Literal["on", "off"])]
