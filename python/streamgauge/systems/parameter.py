"""Parameters of systems: their values, and their parsing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from streamgauge.units import Packets, Quantity, Time, UnitError

__all__ = [
    "FUNCTION_PATTERN",
    "Maybe",
    "Number",
    "Parameter",
    "ParameterValue",
    "Quantiles",
    "Several",
    "Windows",
    "WordsOrFunction",
    "function_of",
]

NONE = "none"
"""Word for no value of a parameter, where that is one."""

ParameterValue = (
    Quantity | str | int | float | tuple[str, ...] | tuple[Time, ...] | tuple[tuple[Time, Time], ...]
)


FUNCTION_PATTERN = r".+\.py:[A-Za-z_]\w*$"
"""Pattern of the name of a function or class of Python, for a schema."""
_FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")


def function_of(value: object) -> tuple[str, str] | None:
    """Returns the file and the name of a function that is a parameter's value; None of every other value."""
    found = _FUNCTION.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else (found["file"], found["name"])


class Windows:
    """The kind of a parameter that lists ``[on, off]`` pairs of times since the trial's start, ascending."""

    noun = "list of [on, off] times"
    example = "[[30 s, 90 s]]"


class Quantiles:
    """The kind of a parameter that is drawn: times at evenly spaced probabilities from 0 to 1, ascending."""

    noun = "time or ascending list of times"
    example = "[4 ms, 5 ms, 30 ms]"


@dataclass(frozen=True)
class Several:
    """The kind of a parameter that lists words of these, each once."""

    words: tuple[str, ...]

    @property
    def noun(self) -> str:
        return f"list of {', '.join(self.words)}"

    @property
    def example(self) -> str:
        return f"[{', '.join(self.words[:2])}]"


@dataclass(frozen=True)
class WordsOrFunction:
    """The kind of a parameter that is one of these words, or a function of the user's as ``FILE.py:NAME``."""

    words: tuple[str, ...]

    @property
    def noun(self) -> str:
        return f"{' or '.join(self.words)} or FILE.py:NAME"

    @property
    def example(self) -> str:
        return self.words[0]


@dataclass(frozen=True)
class Number:
    """The kind of a parameter that has no unit: how many of something, or a share or multiple of it."""

    whole: bool = False

    @property
    def noun(self) -> str:
        return "whole number" if self.whole else "number"

    @property
    def example(self) -> str:
        return "3" if self.whole else "0.75"


Kind = type[Quantity] | type[Windows] | type[Quantiles] | tuple[str, ...] | Several | WordsOrFunction | Number


@dataclass(frozen=True)
class Maybe:
    """The kind of a parameter that may also be ``none``."""

    kind: Kind

    @property
    def noun(self) -> str:
        inner = " or ".join(self.kind) if isinstance(self.kind, tuple) else self.kind.noun
        return f"{inner} or {NONE}"

    @property
    def example(self) -> str:
        return self.kind[0] if isinstance(self.kind, tuple) else self.kind.example


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One setting of a system."""

    name: str
    #: A quantity class, `Windows`, `Quantiles`, the words that it may be, `Several` of them, a `Number`, or
    #: `Maybe` one.
    kind: Kind | Maybe
    #: As a person would write it; ``None`` if it may be left out and then has no value.
    default: str | None
    help: str
    #: Where that is from: paper, RFC and section, program and preference; empty where it is ours.
    source: str = ""
    #: A trial cannot be planned without it.
    required: bool = False
    #: Smallest value, as a person would write it.
    least: str | None = None
    #: Largest value.
    most: str | None = None
    #: It is more than this, by however little.
    above: str | None = None
    #: It is no less than these parameters, where they have a value; and no more than these.
    not_below: tuple[str, ...] = ()
    not_above: tuple[str, ...] = ()
    #: Without a fraction.
    whole: bool = False
    #: Its group, where a system has many: ``server``, ``player``.
    group: str = ""
    #: Its default in words, where that depends on others.
    usual: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Returns the words that are valid in its value; empty if it is not made of words."""
        if isinstance(self.kind, Maybe):
            return (*replace(self, kind=self.kind.kind).words, NONE)
        if isinstance(self.kind, Several | WordsOrFunction):
            return self.kind.words
        return self.kind if isinstance(self.kind, tuple) else ()

    def parse(self, value: object) -> ParameterValue:
        """Returns the typed value. Raises `UnitError` (its text has the expected form)."""
        if isinstance(self.kind, Maybe):
            if value == NONE:
                return NONE
            try:
                return replace(self, kind=self.kind.kind).parse(value)
            except UnitError as error:
                raise UnitError(f"{error}, or {NONE}") from None
        if isinstance(self.kind, tuple):
            if isinstance(value, bool) and {"on", "off"} & set(self.kind):  # as YAML 1.1 reads them
                value = "on" if value else "off"
            if isinstance(value, int | float) and not isinstance(value, bool):  # a word such as 1.1
                value = f"{value:g}"
            if value in self.kind:
                return str(value)
            raise UnitError(f"{value!r} is not one of {', '.join(self.kind)}")
        if isinstance(self.kind, WordsOrFunction):
            if value in self.kind.words or function_of(value) is not None:
                return str(value)
            raise UnitError(f"{value!r} is not one of {', '.join(self.kind.words)}, nor FILE.py:NAME")
        if self.kind is Windows:
            return _windows(value)
        if self.kind is Quantiles:
            return _quantiles(value)
        if isinstance(self.kind, Several):
            return _several(value, self.kind)
        if isinstance(self.kind, Number):
            number = _number(value, self.kind)
            self._check(number, float)
            return number
        assert issubclass(self.kind, Quantity)
        parsed = self.kind(value)  # type: ignore[arg-type]
        self._check(parsed, self.kind)
        if (self.whole or self.kind is Packets) and parsed.amount != int(parsed.amount):
            raise UnitError(f"{parsed} is not a whole number of {next(iter(self.kind.units))}")
        return parsed

    def _check(self, value: Any, read: Callable[[str], Any]) -> None:
        """Raises UnitError if a value is out of the bounds, which `read` makes values of."""
        if self.least is not None and value < read(self.least):
            raise UnitError(f"{value} is less than {self.least}, the least that makes sense here")
        if self.most is not None and value > read(self.most):
            raise UnitError(f"{value} is more than {self.most}, the most that makes sense here")
        if self.above is not None and value <= read(self.above):
            raise UnitError(f"{value} is not more than {self.above}, as it must be here")

    @property
    def bounds(self) -> str:
        """Returns the bounds in words: ``at least 1 ms, at most max_timeout``. Empty if it has none."""
        if self.least is not None and self.most is not None:
            said = [f"{self.least} to {self.most}"]
        else:
            said = [f"at least {self.least}"] if self.least is not None else []
            said += [f"more than {self.above}"] if self.above is not None else []
            said += [f"at most {self.most}"] if self.most is not None else []
        said += [f"at least {other}" for other in self.not_below]
        said += [f"at most {other}" for other in self.not_above]
        return ", ".join(said)


def _windows(value: object) -> tuple[tuple[Time, Time], ...]:
    if not isinstance(value, list | tuple):
        raise UnitError(f"{value!r} is not a {Windows.noun}, such as {Windows.example}")
    windows: list[tuple[Time, Time]] = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise UnitError(f"{pair!r} is not a pair [on, off], such as [30 s, 90 s]")
        on, off = (Time(time) for time in pair)
        if not on < off:
            raise UnitError(f"the window [{on}, {off}] ends before it begins")
        if windows and on < windows[-1][1]:
            raise UnitError(f"the window [{on}, {off}] begins before the one before it ends")
        windows.append((on, off))
    return tuple(windows)


def _quantiles(value: object) -> tuple[Time, ...]:
    listed: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    times = tuple(Time(time) for time in listed)
    for before, after in pairwise(times):
        if after < before:
            raise UnitError(f"{after} follows {before}; give the times in ascending order")
    return times


def _number(value: object, kind: Number) -> int | float:
    # A machine gives its defaults as texts.
    if isinstance(value, str) and value.replace(".", "", 1).isdecimal():
        value = float(value) if "." in value else int(value)
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    if not known or (kind.whole and value != int(value)):  # type: ignore[call-overload]
        raise UnitError(f"{value!r} is not a {kind.noun} of 0 or more, such as {kind.example}")
    return int(value) if kind.whole else float(value)  # type: ignore[call-overload,arg-type]


def _several(value: object, kind: Several) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise UnitError(f"{value!r} is not a {kind.noun}")
    for index, word in enumerate(listed):
        if word not in kind.words:
            raise UnitError(f"{word!r} is not one of {', '.join(kind.words)}")
        if word in listed[:index]:
            raise UnitError(f"{word!r} is listed twice")
    # One order, for two equal scenarios to have equal texts.
    return tuple(word for word in kind.words if word in listed)
