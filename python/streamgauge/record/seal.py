"""Digests of the files that a trial's own digest excludes: ``trial.json`` itself, metrics and provenance.

The trial's digest covers the measurements alone, for equal trials to have equal ones. Reports also read the
verdict, durations, metrics and the origin of a record; the seal covers those. It shows damage and edits. It
is no signature: a program that can write a record can seal it anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from streamgauge.errors import RecordError
from streamgauge.input_files import UnfitInputError, check_file
from streamgauge.record.schema import METRICS_FILE, OLD_METRICS, PROVENANCE, TRIAL

__all__ = ["FILES", "SEAL", "check_seal", "check_verdict", "file_digests", "is_intact", "seal_of", "text_of"]

SEAL: Final = "seal"
"""Key of ``trial.json``: the digest of all its other keys."""
FILES: Final = "files"
"""Key of ``trial.json``: the digests of the files beside it that have none of their own in it."""
SEALED: Final = (METRICS_FILE, PROVENANCE)
READ: Final = (*SEALED, OLD_METRICS)
"""Files beside ``trial.json`` that reports read, besides packets and events."""
_EXPECTED: Final = ("cbr_packets.", "preflight_", "start_offset_s")
"""Numbers of a verdict that have the expected value as their bound."""


def text_of(value: Any) -> str:
    """Returns a value as ``trial.json`` has it. Raises ValueError if a number is not finite."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def seal_of(texts: Mapping[str, str]) -> str:
    """Returns the digest of a ``trial.json``, of the text of each key but the seal."""
    hasher = hashlib.sha256()
    for key in sorted(texts):
        if key != SEAL:
            for part in (key.encode(), texts[key].encode()):
                hasher.update(len(part).to_bytes(8, "little"))
                hasher.update(part)
    return f"sha256:{hasher.hexdigest()}"


def is_intact(trial: Mapping[str, Any]) -> bool:
    """Returns whether the seal is that of the other keys."""
    return trial.get(SEAL) == seal_of({key: text_of(value) for key, value in trial.items()})


def file_digests(directory: Path, names: Collection[str] = SEALED) -> dict[str, str]:
    """Returns the digests of those files in `directory` that a seal covers, as far as they are there."""
    return {name: _digest(directory / name) for name in names if (directory / name).exists()}


def check_seal(directory: Path, trial: Mapping[str, Any]) -> list[str]:
    """Compares a record with its seal. Returns the parts that could not be checked.

    Raises:
        RecordError: naming the file that is not as it was written.
    """
    check_verdict(directory / TRIAL, trial.get("validity"))
    if SEAL not in trial:
        names = ["verdict", "duration", "counts"]
        names += [name for name in READ if (directory / name).exists()]
        return [f"{', '.join(names)} (the record is older than their digests)"]
    if not is_intact(trial):
        raise _damaged(directory / TRIAL, f"its values are not those that its {SEAL} was made of")
    digests = trial.get(FILES)
    if not isinstance(digests, Mapping):
        raise _damaged(directory / TRIAL, f"its {FILES} are no object of names and digests")
    left_out = [name for name in READ if name not in digests and (directory / name).exists()]
    for name, digest in digests.items():
        if name not in SEALED:
            left_out.append(str(name))
            continue
        if (found := _digest(directory / name)) != digest:
            raise _damaged(directory / name, f"its digest is {found}, {TRIAL} has {digest}")
    return [f"{', '.join(left_out)} ({TRIAL} has no digest that this version can check)"] if left_out else []


def check_verdict(file: Path, validity: object) -> None:
    """Derives the verdict from the measured values and bounds beside it.

    Raises:
        RecordError: if that is another verdict.
    """
    if not isinstance(validity, Mapping):
        raise _damaged(file, "its validity is no object")
    why = validity.get("why", [])
    if not isinstance(why, list) or not isinstance(validity.get("valid"), bool):
        raise _damaged(file, "its validity has no verdict ('valid') with reasons ('why')")
    if validity["valid"] == bool(why):
        verdict = "valid" if validity["valid"] else "invalid"
        raise _damaged(file, f"its verdict is {verdict} with {len(why)} reasons")
    bounds, measured = validity.get("bounds"), validity.get("measured")
    if not isinstance(bounds, Mapping) or not isinstance(measured, Mapping) or not bounds:
        return
    missed = [name for name in bounds if _misses(name, measured.get(name), bounds[name])]
    if bool(missed) != bool(why):
        found = f"{', '.join(missed)} outside its bound" if missed else "every test within its bound"
        raise _damaged(file, f"its verdict has {len(why)} reasons, its measured values show {found}")


def _misses(name: str, value: object, bound: object) -> bool:
    """Returns whether a measured value is outside its bound."""
    if name.startswith(_EXPECTED):
        return False
    if isinstance(bound, list):
        if not bound:
            return bool(value)
        return len(bound) == 2 and _is_number(value) and not bound[0] <= value <= bound[1]
    return _is_number(value) and _is_number(bound) and not value <= bound  # type: ignore[operator]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _digest(file: Path) -> str:
    try:
        check_file(file)
        with file.open("rb") as source:
            return f"sha256:{hashlib.file_digest(source, 'sha256').hexdigest()}"
    except UnfitInputError as error:
        raise RecordError(f"{file}: {error}.") from None
    except FileNotFoundError:
        raise _damaged(file, f"missing, and {TRIAL} has its digest") from None
    except OSError as error:
        raise _damaged(file, f"cannot be read ({error.strerror})") from None


def _damaged(path: Path, what: str) -> RecordError:
    return RecordError(f"{path}: damaged: {what}; run the trial again or fetch the record anew.")
