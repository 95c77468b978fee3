"""The unknowns of a paper: conditions that it does not state, each with the values that are plausible.

They are in ``catalogue/PAPER/unknowns.yaml``. The first value of each is the source's: the one that the
catalogue runs with, from which a point departs at a price.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import ValidationError

from streamgauge.errors import ScenarioError
from streamgauge.input_files import UnfitInputError, read_input
from streamgauge.scenario import Scenario, override
from streamgauge.scenario.document import Document, parse_document
from streamgauge.scenario.overrides import OverrideError, check_address, has_address
from streamgauge.scenario.shipped import UNKNOWNS_FILE, catalogue_folder
from streamgauge.scenario.words import as_written
from streamgauge.units import Quantity, UnitError, parse

__all__ = ["PRICES", "PriorValue", "Unknown", "UnknownKind", "Unknowns", "load_unknowns", "unknowns_of"]

UnknownKind = Literal[
    "path", "traffic", "host", "content", "settings", "counting", "preset", "stated", "constant"
]

#: The usual price of a departure from the source's value, in claims: a setting that costs 0.2 must explain
#: more than a fifth of a claim. Constants with a public source and stated conditions are dear.
PRICES: Final[Mapping[str, float]] = {
    "path": 0.02,
    "traffic": 0.02,
    "host": 0.02,
    "content": 0.02,
    "settings": 0.02,
    "counting": 0.05,
    "preset": 0.05,
    "stated": 0.15,
    "constant": 0.2,
}
KEPT: Final = object()
"""In place of a value: each scenario's own."""
_At = tuple[str | int, ...]
_LARGEST: Final = 1_000_000
_KEYS: Final = ("what", "kind", "at", "source", "try", "range", "price", "why")
_MOST_STEPS: Final = 50


@dataclass(frozen=True)
class PriorValue:
    """One value that an unknown may have."""

    label: str
    """In a table or a figure: as written, or the file's own short name for it."""
    value: Any
    """Plain data, as ``--set`` takes it; `KEPT` for a source's value that differs by scenario."""


@dataclass(frozen=True)
class Unknown:
    """A condition that a paper leaves open."""

    name: str
    what: str
    kind: str
    values: tuple[PriorValue, ...]
    """The source's first."""
    price: float
    """Price of a departure from the first value, in claims."""
    at: tuple[tuple[str, str], ...]
    """Globs of scenario ids, each with the address there."""
    why: str

    def is_for(self, scenario: str) -> bool:
        """Returns whether a scenario of this id is among those that it may change."""
        return any(fnmatch.fnmatchcase(scenario, glob) for glob, _ in self.at)

    def changes(self, scenario: Scenario, index: int) -> dict[str, Any]:
        """Returns the addresses of a scenario that a value sets; nothing for the source's value."""
        if index == 0:
            return {}
        return {
            address: self.values[index].value
            for glob, address in self.at
            if fnmatch.fnmatchcase(scenario.id, glob) and has_address(scenario, address)
        }

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``streamgauge.infer/1``."""
        return {
            "name": self.name,
            "what": self.what,
            "kind": self.kind,
            "values": [one.label for one in self.values],
            "price": self.price,
            "at": [{"scenarios": glob, "address": address} for glob, address in self.at],
        }


@dataclass(frozen=True)
class Unknowns:
    """All unknowns of a paper, in the order in which they are applied."""

    file: str
    each: tuple[Unknown, ...]

    def __len__(self) -> int:
        return len(self.each)

    def applied(self, scenario: Scenario, point: Sequence[int]) -> Scenario | None:
        """Returns the scenario under a point: for each unknown the index of its value. ``None`` if values
        contradict one another there."""
        changes: dict[str, Any] = {}
        for unknown, index in zip(self.each, point, strict=True):
            changes.update(unknown.changes(scenario, index))
        if not changes:
            return scenario
        try:
            return override(scenario, changes)
        except (OverrideError, ValidationError, ScenarioError):
            return None

    def price(self, point: Sequence[int]) -> float:
        """Returns the cost of a point's departures, in claims."""
        return sum(one.price for one, index in zip(self.each, point, strict=True) if index)

    def departures(self, point: Sequence[int]) -> list[tuple[Unknown, PriorValue]]:
        """Returns the unknowns in which a point differs from the sources, with their values."""
        pairs = zip(self.each, point, strict=True)
        return [(one, one.values[index]) for one, index in pairs if index]


def unknowns_file(paper: str) -> Path:
    """Returns where a paper's unknowns stand."""
    return catalogue_folder() / paper / UNKNOWNS_FILE


def unknowns_of(paper: str, scenarios: Iterable[Scenario]) -> Unknowns:
    """Returns the unknowns of a shipped paper. Raises ScenarioError."""
    return load_unknowns(unknowns_file(paper), scenarios)


def load_unknowns(file: Path, scenarios: Iterable[Scenario]) -> Unknowns:
    """Reads a file of unknowns and tries each value on the scenarios that it is for.

    Raises ScenarioError with file, line, key and remedy.
    """
    try:
        text = read_input(file, _LARGEST)
    except (OSError, UnicodeDecodeError, UnfitInputError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ScenarioError(f"cannot be read: {why}", file=file, hint="name a file of unknowns") from None
    document = parse_document(text, str(file))
    listed = document.data.get("unknowns")
    others = [key for key in document.data if key != "unknowns"]
    if not isinstance(listed, dict) or not listed or others:
        key = others[0] if others else "unknowns"
        raise _error(document, (key,), "expected 'unknowns:' alone, a mapping of names to unknowns")
    known = list(scenarios)
    found = tuple(_unknown(document, name, data) for name, data in listed.items())
    for unknown in found:
        _try(document, unknown, known)
    return Unknowns(str(file), found)


def _error(document: Document, key: _At, why: str, hint: str | None = None) -> ScenarioError:
    file, line = document.place(key)
    return ScenarioError(why, file=file, line=line, key=".".join(map(str, key)), hint=hint)


def _unknown(document: Document, name: str, data: Any) -> Unknown:
    here: _At = ("unknowns", name)
    if not isinstance(data, dict):
        raise _error(document, here, "expected a mapping with 'at', 'source' and 'try' or 'range'")
    for key in data:
        if key not in _KEYS:
            raise _error(document, (*here, key), f"unknown key; expected one of {', '.join(_KEYS)}")
    kind = data.get("kind", "path")
    if kind not in get_args(UnknownKind):
        raise _error(document, (*here, "kind"), f"unknown kind '{kind}'; expected one of {', '.join(PRICES)}")
    for key in ("what", "why"):
        if not isinstance(data.get(key), str) or not data[key].strip():
            raise _error(document, (*here, key), f"'{key}' is missing; expected a sentence")
    price = data.get("price", PRICES[kind])
    if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= 10:
        raise _error(document, (*here, "price"), f"expected a number of claims from 0 to 10, got {price!r}")
    at = data.get("at")
    if not isinstance(at, dict) or not at or not all(isinstance(one, str) for one in at.values()):
        raise _error(
            document,
            (*here, "at"),
            "expected a mapping from a scenario's id, or a glob of ids, to an address",
            "such as 'at: {\"hessler/*\": path.down.shaper}'",
        )
    if "source" not in data:
        raise _error(document, here, "'source' is missing; expected the value that the catalogue has")
    if ("try" in data) == ("range" in data):
        raise _error(document, here, "expected either 'try', a list of values, or 'range'")
    tried = data["try"] if "try" in data else _range(document, (*here, "range"), data["range"])
    if not isinstance(tried, list) or not tried:
        raise _error(document, (*here, "try"), "expected a list of other values than the source's")
    values = [_value(document, (*here, "source"), data["source"])]
    values += [_value(document, (*here, "try", index), one) for index, one in enumerate(tried)]
    labels = [one.label for one in values]
    if (twice := next((one for one in labels if labels.count(one) > 1), None)) is not None:
        raise _error(document, (*here, "try"), f"the value '{twice}' stands here twice; give each once")
    return Unknown(
        name=name,
        what=" ".join(data["what"].split()),
        kind=kind,
        values=tuple(values),
        price=float(price),
        at=tuple(at.items()),
        why=" ".join(data["why"].split()),
    )


def _value(document: Document, key: _At, data: Any) -> PriorValue:
    if isinstance(data, dict) and "label" in data:
        if set(data) == {"label"} and key[-1] == "source":
            return PriorValue(str(data["label"]), KEPT)
        if set(data) != {"label", "set"} or not isinstance(data["label"], str):
            raise _error(document, key, "a value with a label has 'label' and 'set' alone")
        return PriorValue(data["label"], data["set"])
    if data is None:
        raise _error(document, key, "expected a value", "'null' takes a key away: {label: none, set: null}")
    return PriorValue(as_written(data), data)


def _range(document: Document, key: _At, data: Any) -> list[str]:
    """Returns a range as a list of values in its own unit: ``{from: 2 s, to: 20 s, steps: 4, scale:
    log}``."""
    hint = "such as 'range: {from: 2 s, to: 20 s, steps: 4, scale: log}'"
    if not isinstance(data, dict) or not {"from", "to"} <= set(data) <= {"from", "to", "steps", "scale"}:
        raise _error(document, key, "expected a mapping with 'from' and 'to'", hint)
    steps, scale = data.get("steps", 5), data.get("scale", "linear")
    if isinstance(steps, bool) or not isinstance(steps, int) or not 2 <= steps <= _MOST_STEPS:
        raise _error(document, (*key, "steps"), f"expected a whole number from 2 to {_MOST_STEPS}", hint)
    if scale not in ("linear", "log"):
        raise _error(document, (*key, "scale"), "expected 'linear' or 'log'", hint)
    try:
        low, high = parse(str(data["from"])), parse(str(data["to"]))
    except UnitError as error:
        raise _error(document, key, str(error), hint) from None
    if type(low) is not type(high) or not 0 < _amount(low) < _amount(high):
        raise _error(
            document, key, "expected two quantities of one kind, both above 0, the lesser first", hint
        )
    unit = str(data["from"]).strip().lstrip("+0123456789.eE").strip()
    one = _amount(parse(f"1 {unit}"))
    low_n, high_n = _amount(low) / one, _amount(high) / one
    shares = [step / (steps - 1) for step in range(steps)]
    if scale == "log":
        numbers = [low_n * (high_n / low_n) ** share for share in shares]
    else:
        numbers = [low_n + (high_n - low_n) * share for share in shares]
    return [f"{number:.4g} {unit}" for number in numbers]


def _amount(quantity: Quantity) -> float:
    return float(quantity.amount)


def _try(document: Document, unknown: Unknown, scenarios: Sequence[Scenario]) -> None:
    """Tries every value in the first scenario of each glob that has the address."""
    here = ("unknowns", unknown.name)
    for glob, address in unknown.at:
        matching = [one for one in scenarios if fnmatch.fnmatchcase(one.id, glob)]
        if not matching:
            raise _error(document, (*here, "at", glob), "no scenario of the paper has such an id")
        fitting = [one for one in matching if has_address(one, address)]
        if not fitting:
            try:
                check_address(matching[0], address)
            except OverrideError as error:
                raise _error(document, (*here, "at", glob), error.why, error.hint) from None
        for index, value in enumerate(unknown.values):
            if value.value is KEPT:
                continue
            try:
                override(fitting[0], {address: value.value})
            except (OverrideError, ValidationError, ScenarioError) as error:
                key = (*here, "source") if index == 0 else (*here, "try", index - 1)
                raise _error(
                    document,
                    key,
                    f"'{value.label}' does not fit {address} of {fitting[0].id}: {_first_line(error)}",
                ) from None


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(error.errors()[0]["msg"])
    return str(error).splitlines()[0]
