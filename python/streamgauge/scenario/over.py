"""``--over ADDRESS=V1,V2``: values that an address takes in turn.

Values stand between commas; a comma inside brackets of any kind or quotes belongs to its value, and each
value is any YAML, as for ``--set``. A list in brackets is the same: ``[droptail 10 kB, codel 20 kB]``. A
range is a list of its values, both ends among them: ``1Mbit/s..5Mbit/s step 1Mbit/s``, or ``10kB..160kB times
2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from streamgauge.errors import ScenarioError
from streamgauge.scenario.overrides import OverrideError, parse_assignment
from streamgauge.units import Quantity, UnitError, parse

__all__ = ["Axis", "Scale", "parse_over", "parse_overs"]

_EXAMPLE = "path.down.rate=0.5Mbit/s,1Mbit/s"
_RANGE = re.compile(r"(\d.*?)\s*\.\.\s*([\d.].*?)(?:\s+(step|times)\s+(.+))?")
_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*")
_QUANTITY = re.compile(r"(?<![\w.])(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?\s*[A-Za-z%/][A-Za-z/]*")
_OPEN, _CLOSE = "[{(", "]})"
_MOST = 10_000
"""Values of a range: more are a slip in its step."""


@dataclass(frozen=True)
class Scale:
    """An axis as numbers of one unit."""

    numbers: tuple[float, ...]
    unit: str
    """Empty for numbers without one."""
    words: str = ""
    """Words of every value besides its number: ``droptail`` of ``droptail 10 kB``."""


@dataclass(frozen=True)
class Axis:
    """An address and its values in turn."""

    address: str
    values: tuple[str, ...]
    """As ``--set`` takes them."""
    labels: tuple[str, ...]
    """As a person reads them: ``10 kB`` of ``10kB``."""

    @property
    def settings(self) -> tuple[str, ...]:
        """Returns a setting ``ADDRESS=VALUE`` for each value."""
        return tuple(f"{self.address}={value}" for value in self.values)

    def __len__(self) -> int:
        return len(self.values)

    def quantities(self) -> tuple[str, tuple[Quantity | Decimal, ...]] | None:
        """Returns the number of each value, and the words around it, which are common to all: ``droptail`` of
        ``droptail 10 kB``. ``None`` if the values differ in more than one number, or in its dimension."""
        if all(_NUMBER.fullmatch(label) for label in self.labels):
            return "", tuple(Decimal(label) for label in self.labels)
        found = [_QUANTITY.findall(label) for label in self.labels]
        around = {_QUANTITY.sub("\0", label) for label in self.labels}
        if len(around) != 1:
            return None
        try:
            columns = list(zip(*([parse(text) for text in one] for one in found), strict=True))
        except UnitError:
            return None
        varying = [place for place, column in enumerate(columns) if len(set(column)) > 1] or [0]
        if not columns or len(varying) > 1 or len({type(one) for one in columns[varying[0]]}) > 1:
            return None
        said = iter(["" if place == varying[0] else text for place, text in enumerate(found[0])])
        words = re.sub("\0", lambda _: next(said), around.pop())
        return " ".join(words.split()), columns[varying[0]]

    def scale(self) -> Scale | None:
        """Returns the values as numbers of one unit; ``None`` as for `quantities`."""
        found = self.quantities()
        if found is None:
            return None
        words, values = found
        quantities = [one for one in values if isinstance(one, Quantity)]
        if not quantities:
            return Scale(tuple(map(float, self.labels)), "", words)
        units = {_unit(text) for label in self.labels for text in _QUANTITY.findall(label)}
        if len(units) == 1 and (unit := units.pop()) in quantities[0].units:  # in their original spelling
            return Scale(tuple(float(_in(one, unit)) for one in quantities), unit, words)
        return Scale(*_in_one_unit(quantities), words)


def parse_over(text: str) -> Axis:
    """Reads ``ADDRESS=V1,V2``. Raises ScenarioError that names the option and the value.

    The scenario checks whether the address exists, and whether its values are valid there.
    """
    address, equals, said = (part.strip() for part in text.partition("="))
    if not equals or not address or not said:
        raise _refuse(text, "is not an address with values", f"expected such as {_EXAMPLE}")
    values: list[str] = []
    for value in _values(text, said):
        values += _range(text, value) or [value]
    labels = [_label(value) for value in values]
    for value in values:
        try:
            parse_assignment(f"{address}={value}")
        except OverrideError as error:
            raise _refuse(text, error.why, error.hint) from None
    seen: set[object] = set()
    for value, label in zip(values, labels, strict=True):
        if (identity := _identity(label)) in seen:
            raise _refuse(text, f"the value '{value}' stands here a second time", "every value is given once")
        seen.add(identity)
    return Axis(address, tuple(values), tuple(labels))


def parse_overs(texts: Iterable[str], settings: Iterable[str] = ()) -> tuple[Axis, ...]:
    """Several of them, in their order. Raises ScenarioError if two have one address, or if ``settings``
    (``ADDRESS=VALUE``) sets that of one of them."""
    axes: dict[str, Axis] = {}
    set_already = {setting.partition("=")[0].strip() for setting in settings}
    for text in texts:
        axis = parse_over(text)
        if axis.address in axes:
            every = ",".join([*axes[axis.address].values, *axis.values])
            hint = f"one option takes all values: --over {axis.address}={every}"
            raise _refuse(text, f"'{axis.address}' stands in --over a second time", hint)
        if axis.address in set_already:
            raise _refuse(text, f"'{axis.address}' is set by --set as well", "leave one of them out")
        axes[axis.address] = axis
    return tuple(axes.values())


def _refuse(text: str, why: str, hint: str | None = None) -> ScenarioError:
    return ScenarioError(why, file=f"--over {text}", hint=hint)


def _values(text: str, said: str) -> list[str]:
    """Returns the values of a list, with or without brackets around all of it."""
    found = _split(text, said)
    if len(found) == 1 and said.startswith("[") and said.endswith("]"):
        found = _split(text, said[1:-1])
    if not all(found):
        raise _refuse(text, "a comma with nothing before or behind it", f"expected such as {_EXAMPLE}")
    return found


def _split(text: str, said: str) -> list[str]:
    """Cut at the commas that are in no brackets and no quotes."""
    parts, begin, depth, quote, before = [], 0, "", "", ","
    for at, character in enumerate(said):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and before in ",:[{":  # elsewhere it is an apostrophe
            quote = character
        elif character in _OPEN:
            depth += _CLOSE[_OPEN.index(character)]
        elif character in _CLOSE and (character != ")" or depth):
            if not depth.endswith(character):
                raise _refuse(text, f"'{character}' closes nothing", "check brackets and quotes")
            depth = depth[:-1]
        elif character == "," and not depth:
            parts.append(said[begin:at].strip())
            begin = at + 1
        before = before if character.isspace() else character
    if depth or quote:
        raise _refuse(text, f"'{(depth or quote)[-1]}' is missing at its end", "check brackets and quotes")
    return [*parts, said[begin:].strip()]


def _range(text: str, value: str) -> list[str]:
    """Returns the values of a range; none if ``value`` is not one."""
    match = _RANGE.fullmatch(value)
    if match is None:
        return []

    def refuse(why: str, hint: str | None = None) -> ScenarioError:
        return _refuse(text, f"the range '{value}' {why}", hint)

    said_first, said_last, how, said_by = match.groups()
    if how is None:
        raise refuse("has no step", f"expected such as '{said_first}..{said_last} step {said_first}'")
    first, last, by = _number(text, said_first), _number(text, said_last), _number(text, said_by)
    wanted = {"step": type(first), "times": Decimal}[how]
    if type(first) is not type(last) or type(by) is not wanted:
        hint = "both ends and a step have units of one kind, what follows 'times' has none"
        raise refuse(f"mixes {first}, {last} and {by}", hint)
    here, end, change = (one.amount if isinstance(one, Quantity) else one for one in (first, last, by))
    if here > end:
        raise refuse("ends before it begins", "begin with the least")
    if change <= (0 if how == "step" else 1) or (how == "times" and here <= 0):
        raise refuse("never ends", "expected a step above 0, or times more than 1 from more than 0")
    amounts = []
    while here <= end:
        amounts.append(here)
        if len(amounts) > _MOST:
            raise refuse(f"has more than {_MOST:,} values", "expected a larger step")
        here = here + change if how == "step" else here * change
    if not isinstance(first, Quantity):
        return [f"{one.normalize():f}" for one in amounts]
    unit = _unit(said_first)
    try:
        return [f"{_in(type(first).of(one), unit)} {unit}" for one in amounts]
    except UnitError as error:
        raise refuse(f"comes to what is no value: {error}") from None


def _unit(text: str) -> str:
    """Returns the unit of a quantity's text."""
    number = _NUMBER.match(text)
    return text[number.end() :].strip() if number is not None else ""


def _in(quantity: Quantity, unit: str) -> str:
    """As a number of a unit."""
    number = quantity.amount / quantity.units[unit]
    return f"{number.normalize():f}"


def _number(text: str, said: str) -> Quantity | Decimal:
    """Returns a quantity, or a number without a unit."""
    if _NUMBER.fullmatch(said):
        return Decimal(said.strip())
    try:
        return parse(said)
    except UnitError as error:
        raise _refuse(text, str(error)) from None


def _label(value: str) -> str:
    plain = " ".join(value.split())
    if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'":
        plain = plain[1:-1]
    if _NUMBER.fullmatch(plain):
        return plain
    try:
        parse(plain)
    except UnitError:
        return plain
    return re.sub(r"^(\S*?\d\.?)\s*([A-Za-z%/])", r"\1 \2", plain)


def _identity(label: str) -> object:
    """Returns equal objects for equal values: ``1 Mbit/s`` and ``1000 kbit/s``."""
    try:
        return Decimal(label) if _NUMBER.fullmatch(label) else parse(label)
    except UnitError:
        return label.replace(" ", "")


def _in_one_unit(quantities: Sequence[Quantity]) -> tuple[tuple[float, ...], str]:
    """As numbers of the unit in which they are shortest, the larger one where two are as short."""
    kind = type(quantities[0])
    if all(one.amount == 0 for one in quantities):
        return tuple(0.0 for _ in quantities), next(iter(kind.units))
    ranked = []
    for unit, scale in kind.units.items():
        if unit in kind.never_printed:
            continue
        numbers = [one.amount / scale for one in quantities]
        digits = sum(len(f"{number.normalize():f}") for number in numbers)
        tiny = sum(0 < number < Decimal("0.1") for number in numbers)
        ranked.append((tiny, digits, -scale, unit, numbers))
    *_, unit, numbers = min(ranked, key=lambda one: one[:3])
    return tuple(map(float, numbers)), unit
