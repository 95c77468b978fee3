"""A paper's readings: conditions that it leaves open, each set one way, as data beside its scenarios.

``catalogue/PAPER/readings.yaml`` holds them (docs/papers.md). The reading `SOURCES` has public rules and
stated conditions alone; mostly these are the scenarios as they are written, and it changes nothing.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from streamgauge.errors import ScenarioError
from streamgauge.scenario.document import Document, Place, key_text, parse_document, read_text
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.overrides import leads_anywhere, override
from streamgauge.scenario.problems import problems_of
from streamgauge.scenario.shipped import READINGS_FILE, catalogue_folder, catalogue_ids
from streamgauge.scenario.values import Model, issue, nearest

__all__ = [
    "READING",
    "SOURCES",
    "HeldOut",
    "PaperReadings",
    "ReadingRule",
    "ReadingValue",
    "load_readings",
    "readings_of",
]

READING = "reading"
"""The setting that names a reading: ``reading=described``, beside settings of addresses."""
SOURCES = "sources"
"""The reading that every paper has."""
HeldOut = Literal["pass", "differs"]
_CLAIM = re.compile(r"[A-Z]+-\d+")


class ReadingValue(Model):
    """A condition that the paper does not state, as a reading has it."""

    value: Any
    """As in ``--set``; null removes the key."""
    origin: Literal["fitted", "input", "stated"]
    """Chosen by verdicts (fitted), taken from a printed number (input), or stated by a public source."""
    evidence: tuple[str, ...] = Field(default=(), alias="from")
    """The claims or checks by which it was chosen."""
    why: str
    """The reason for the value, in words."""

    @model_validator(mode="after")
    def _fitted_by_something(self) -> ReadingValue:
        if self.origin == "fitted" and not self.evidence:
            raise issue("a fitted value has been fitted to something", "from", "list claims, such as [HW-2]")
        return self


class ReadingRule(Model):
    """One reading of a paper."""

    meaning: str
    """Its assumption, in a sentence."""
    values: dict[str, dict[str, ReadingValue]] = Field(default_factory=dict)
    """By a scenario's id, a family of ids (``hessler/real``) or a glob: values by address. Later ones win."""
    fitted: tuple[str, ...] = ()
    """Claims (``HW-2``) or checks (``HW-8-change``) that had a part in the choice of a value."""
    inputs: tuple[str, ...] = ()
    """Those fed by a value that is taken from a printed number."""
    held_out: dict[str, HeldOut] = Field(default_factory=dict)
    """By claim: its verdict under a fit that did not see it."""

    def origin(self, check: str, origin: str) -> str:
        """Returns a check's origin under this reading: only a predicted one changes."""
        if origin != "predicted":
            return origin
        if _among(check, self.inputs):
            return "input"
        return "fitted" if _among(check, self.fitted) else origin


class _File(Model):
    """Contents of the file: readings by name, and the default."""

    readings: dict[str, ReadingRule]
    default: str

    @model_validator(mode="after")
    def _sound(self) -> _File:
        if self.default not in self.readings:
            close = nearest(self.default, self.readings)
            raise issue(
                f"there is no reading '{self.default}'; expected one of {', '.join(self.readings)}",
                "default",
                f"did you mean '{close}'?" if close else None,
            )
        for pattern, values in self.readings[SOURCES].values.items():
            for address, value in values.items():
                if value.origin != "stated":
                    raise issue(
                        f"'{SOURCES}' has no value that is {value.origin}; all are stated by a source",
                        ("readings", SOURCES, "values", pattern, address, "origin"),
                        "put it into a reading of another name",
                    )
        return self


@dataclass(frozen=True)
class PaperReadings:
    """The readings of one paper."""

    paper: str
    """Its folder in the catalogue."""
    by_name: Mapping[str, ReadingRule]
    """`SOURCES` first."""
    default: str
    """The name of the reading that explains most."""
    document: Document | None = None
    """The file; None where the paper has none."""

    def changes(self, name: str) -> bool:
        """Returns whether a reading is anything but the scenarios as they are written."""
        rule = self.named(name)
        return bool(rule.values or rule.fitted or rule.inputs)

    @property
    def compared(self) -> tuple[str, ...]:
        """Returns `SOURCES`, and beside it the default where that is another."""
        return tuple(dict.fromkeys((SOURCES, self.default)))

    def named(self, name: str) -> ReadingRule:
        """Raises ScenarioError if there is no such reading."""
        if name not in self.by_name:
            close = nearest(name, self.by_name)
            raise ScenarioError(
                f"the paper '{self.paper}' has no reading '{name}'; it has {', '.join(self.by_name)}",
                hint=f"did you mean '{close}'?" if close else None,
            )
        return self.by_name[name]

    def applied(self, name: str, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Returns the scenarios under a reading, in their order.

        Applies no value at an address that a scenario lacks. Raises ScenarioError for an unknown reading and
        for an invalid value, with file, line and key.
        """
        return [self._one(name, scenario)[0] for scenario in scenarios]

    def apply(self, name: str, document: Document) -> None:
        """The same in a scenario's file before it is validated; whatever is wrong has the place of its value.

        Raises ScenarioError for a reading that is not there.
        """
        rule = self.named(name)
        for (pattern, address), value in self._values(rule, str(document.data.get("id")), document.data):
            document.set(address, value.value, self._place((name, "values", pattern, address)))
        for check, model in (document.data.get("checks") or {}).items():
            if isinstance(model, dict) and "origin" in model:
                model["origin"] = rule.origin(check, model["origin"])

    def check(self, scenarios: Sequence[Scenario]) -> None:
        """Raises ScenarioError if an address is one that none of its scenarios has, or if a claim or check is
        named that no scenario has; `scenarios` are all of the paper."""
        known = {check for scenario in scenarios for check in scenario.checks}
        for name, rule in self.by_name.items():
            used = {pair for scenario in scenarios for pair in self._one(name, scenario)[1]}
            for pattern, values in rule.values.items():
                for address in values:
                    if (pattern, address) not in used:
                        raise self._error(
                            f"no scenario of '{pattern}' has this address",
                            (name, "values", pattern, address),
                            "it is spelt as in --set",
                        )
            lists = {"fitted": rule.fitted, "inputs": rule.inputs, "held_out": tuple(rule.held_out)}
            for key, claims in lists.items():
                for place, claim in enumerate(claims):
                    if not any(_is_of(check, claim) for check in known):
                        at = claim if key == "held_out" else place
                        close = nearest(claim, known)
                        raise self._error(
                            f"no scenario of the paper has a check of '{claim}'",
                            (name, key, at),
                            f"did you mean '{close}'?" if close else None,
                        )

    def _values(
        self, rule: ReadingRule, scenario: str, data: dict[str, Any]
    ) -> list[tuple[tuple[str, str], ReadingValue]]:
        """Returns the values that apply to a scenario, by pattern and address."""
        found = [
            ((pattern, address), value)
            for pattern, values in rule.values.items()
            if _matches(pattern, scenario)
            for address, value in values.items()
        ]
        return [one for one in found if leads_anywhere(data, one[0][1])]

    def _one(self, name: str, scenario: Scenario) -> tuple[Scenario, list[tuple[str, str]]]:
        """Returns a scenario under a reading, with the patterns and addresses that applied."""
        rule = self.named(name)
        data = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
        applied = self._values(rule, scenario.id, data)
        changes: dict[str, Any] = {}
        for (_, address), value in applied:
            # The order is that of the file, so that a later one wins.
            changes.pop(address, None)
            changes[address] = value.value
        for check, model in scenario.checks.items():
            origin = rule.origin(check, model.origin)
            if origin != model.origin:
                changes[f"checks.{check}.origin"] = origin
        pairs = [pair for pair, _ in applied]
        if not changes:
            return scenario, pairs
        try:
            return override(scenario, changes), pairs
        except ValidationError as error:
            problem = problems_of(error)[0]
            key = key_text(problem.path)
            nearest_pair = max(pairs, key=lambda pair: len(_common(pair[1], key)), default=("", ""))
            raise self._error(
                f"{scenario.id} cannot run so: {problem.why}", (name, "values", *nearest_pair), problem.hint
            ) from None

    def _place(self, key: tuple[str | int, ...]) -> Place:
        return ("", None) if self.document is None else self.document.place(key)

    def _error(self, why: str, key: tuple[str | int, ...], hint: str | None = None) -> ScenarioError:
        file, line = self._place(key)
        return ScenarioError(why, file=file, line=line, key=key_text(key), hint=hint)


def load_readings(path: Path, paper: str) -> PaperReadings:
    """Returns the readings of a file, for the scenarios below ``paper/``.

    Raises ScenarioError with file, line and key.
    """
    document = parse_document(read_text(path), str(path))
    data = dict(document.data)
    default = data.pop("default", SOURCES)
    data.setdefault(SOURCES, {"meaning": "public rules and the stated conditions alone"})
    data = {SOURCES: data.pop(SOURCES), **data}
    try:
        file = _File.model_validate({"readings": data, "default": default})
    except ValidationError as error:
        problem = problems_of(error)[0]
        key = problem.path[1:] if problem.path[:1] == ("readings",) else problem.path
        key = tuple("from" if part == "evidence" else part for part in key)
        name, line = document.place(key)
        raise ScenarioError(problem.why, file=name, line=line, key=key_text(key), hint=problem.hint) from None
    found = PaperReadings(paper, file.readings, file.default, document)
    ids = [name for name in catalogue_ids(f"{paper}/") if name.startswith(f"{paper}/")]
    for reading, rule in file.readings.items():
        for pattern in rule.values:
            if not any(_matches(pattern, name) for name in ids):
                close = nearest(pattern, ids)
                raise found._error(
                    f"no scenario of the paper '{paper}' is called so",
                    (reading, "values", pattern),
                    f"did you mean '{close}'?" if close else "an id, a family of ids or a glob",
                )
    return found


@cache
def readings_of(paper: str) -> PaperReadings:
    """Returns the readings of a paper by its folder in the catalogue; `SOURCES` alone where it has no file.

    Raises ScenarioError as `load_readings`.
    """
    path = catalogue_folder() / paper / READINGS_FILE
    if path.is_file():
        return load_readings(path, paper)
    rule = ReadingRule(meaning="public rules and the stated conditions alone")
    return PaperReadings(paper, {SOURCES: rule}, SOURCES)


def _matches(pattern: str, scenario: str) -> bool:
    """Returns whether a scenario is meant: by its id, its family's name, or a glob."""
    return fnmatch.fnmatchcase(scenario, pattern) or scenario.startswith((f"{pattern}-", f"{pattern}/"))


def _is_of(check: str, claim: str) -> bool:
    """Returns whether a check is the named one, or one of the numbered claim (``DC-4`` has
    ``DC-4.order``)."""
    return check == claim or bool(_CLAIM.fullmatch(claim) and re.match(rf"{claim}(?!\d)", check))


def _among(check: str, claims: Iterable[str]) -> bool:
    return any(_is_of(check, claim) for claim in claims)


def _common(one: str, other: str) -> list[str]:
    found = []
    for mine, theirs in zip(one.split("."), other.split("."), strict=False):
        if mine != theirs:
            break
        found.append(mine)
    return found
