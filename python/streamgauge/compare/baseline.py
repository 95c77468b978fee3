"""A baseline in a file: a subject's values, kept as a reference for builds to come."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from streamgauge import __version__
from streamgauge.compare.comparison import SubjectTrials
from streamgauge.compare.judging import with_harm
from streamgauge.compare.origin import TrialsOrigin
from streamgauge.documents import write_whole
from streamgauge.errors import RecordError, ScenarioError
from streamgauge.input_files import UnfitInputError, read_input
from streamgauge.scenario.recorded import in_todays_words

__all__ = ["SCHEMA", "load_baseline", "save_baseline"]

SCHEMA = "streamgauge.baseline/1"
_LARGEST_BYTES = 256_000_000
_REMEDY = "save it again with 'streamgauge compare ... --save-baseline FILE'"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Origin(_Strict):
    simulators: list[int]
    systems: dict[str, list[str]]
    releases: list[str]
    machines: list[str]


class _Case(_Strict):
    id: str
    of: str
    mode: str
    scenario: dict[str, Any]
    base: dict[str, Any] | None
    invalid: int = Field(ge=0)
    note: str
    origin: _Origin | None
    trials: dict[str, dict[str, float]]

    @field_validator("trials")
    @classmethod
    def _seeds(cls, trials: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for seed, values in trials.items():
            if not seed.isdecimal():
                raise ValueError(f"'{seed}' is no seed")
            if not all(map(math.isfinite, values.values())):
                raise ValueError(f"a value of seed {seed} is not finite")
        return trials


class _Saved(_Strict):
    schema_: str = Field(alias="schema")
    label: str
    saved_at: str
    streamgauge: str
    digest: str
    cases: list[_Case]


def save_baseline(cases: Sequence[SubjectTrials], file: Path) -> None:
    """Writes the trials of one subject, whole or not at all, as ``streamgauge.baseline/1``.

    Values are in canonical units (bit/s, s, fractions) and by the seed of the repetition; with them stand the
    scenarios in full, as they ran, so that conditions are known. Harm is reckoned first.

    Args:
        cases: the subject's, and those of the neighbours alone.
        file: the place.

    Raises:
        ScenarioError: if there is no valid trial to save.
        ValueError: if there is more than one subject.
        OSError: if it cannot be written.
    """
    mine = [case for case in with_harm(cases) if case.trials]
    subjects = list(dict.fromkeys(case.subject for case in mine))
    if not mine:
        raise ScenarioError(
            "there is no valid trial to save as a baseline",
            key="--save-baseline",
            hint="see why they are invalid",
        )
    if len(subjects) > 1:
        raise ValueError(f"a baseline is of one subject, not of {', '.join(subjects)}")
    told = [_case(case).model_dump(mode="json") for case in mine]
    saved = {
        "schema": SCHEMA,
        "label": subjects[0],
        "saved_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "streamgauge": __version__,
        "digest": _digest(told),
        "cases": told,
    }
    write_whole(file, json.dumps(saved, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def load_baseline(file: Path, *, label: str = "baseline") -> list[SubjectTrials]:
    """Returns the trials that `save_baseline` wrote.

    Args:
        file: the place.
        label: the subject's name: not its saved name, which the compared subject has too.

    Raises:
        RecordError: naming the file and the fault: missing, no JSON, no baseline or one of another version,
            damaged, without a trial.
    """
    try:
        text = read_input(file, _LARGEST_BYTES)
    except UnfitInputError as error:
        raise RecordError(f"{file}: {error}; {_REMEDY}.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "not text"
        raise RecordError(f"{file}: no baseline can be read ({why}); {_REMEDY}.") from error
    try:
        data = json.loads(text)
    except RecursionError:
        raise RecordError(f"{file}: nested too deeply; {_REMEDY}.") from None
    except ValueError as error:
        raise RecordError(f"{file}: not JSON ({error}); {_REMEDY}.") from error
    found = data.get("schema") if isinstance(data, dict) else None
    if found != SCHEMA:
        raise RecordError(f"{file}: {_other(found)}, expected {SCHEMA}; {_REMEDY}.")
    try:
        saved = _Saved.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RecordError(f"{file}: {where}: damaged ({first['msg']}); {_REMEDY}.") from error
    if saved.digest != _digest(data["cases"]):
        raise RecordError(f"{file}: damaged: it was changed since it was written; {_REMEDY}.")
    if not any(case.trials for case in saved.cases):
        raise RecordError(f"{file}: it holds no trial; {_REMEDY}.")
    return [_trials(case, label) for case in saved.cases]


def _other(schema: Any) -> str:
    if isinstance(schema, str) and schema.startswith(SCHEMA.partition("/")[0]):
        return f"a baseline of another version, {schema}"
    return f"no baseline but {schema}" if isinstance(schema, str) else "no baseline"


def _digest(cases: Any) -> str:
    """Returns the digest of the compared data, in any layout."""
    text = json.dumps(cases, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _case(case: SubjectTrials) -> _Case:
    origin = case.origin
    told = None
    if origin is not None:
        told = _Origin(
            simulators=list(origin.simulators),
            systems={name: list(versions) for name, versions in origin.systems.items()},
            releases=list(origin.releases),
            machines=list(origin.machines),
        )
    return _Case(
        id=case.id,
        of=case.of,
        mode=case.mode,
        scenario=_as_json(case.scenario),
        base=None if case.base is None else _as_json(case.base),
        invalid=case.invalid,
        note=case.note,
        origin=told,
        trials={str(seed): dict(values) for seed, values in sorted(case.trials.items())},
    )


def _as_json(scenario: Mapping[str, Any]) -> dict[str, Any]:
    found = json.loads(json.dumps(scenario, allow_nan=False))
    assert isinstance(found, dict)
    return found


def _trials(case: _Case, subject: str) -> SubjectTrials:
    origin = case.origin
    return SubjectTrials(
        subject=subject,
        id=case.id,
        of=case.of,
        mode=case.mode,
        scenario=in_todays_words(case.scenario),
        base=None if case.base is None else in_todays_words(case.base),
        invalid=case.invalid,
        note=case.note,
        origin=None
        if origin is None
        else TrialsOrigin(
            simulators=tuple(origin.simulators),
            systems={name: tuple(versions) for name, versions in origin.systems.items()},
            releases=tuple(origin.releases),
            machines=tuple(origin.machines),
        ),
        trials={int(seed): values for seed, values in case.trials.items()},
    )
