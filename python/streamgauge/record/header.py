"""Reads ``trial.json`` and ``provenance.json``, whatever they hold."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from streamgauge.errors import RecordError
from streamgauge.input_files import UnfitInputError, read_input

__all__ = ["REQUIRED", "read_object", "read_trial"]

LARGEST_BYTES: Final = 256_000_000
"""A trial of ten thousand flows has some ten of them."""
REQUIRED: Final = ("scenario", "mode", "seed")

_NUMBER: Final = (int, float)
_TYPES: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "scenario": ((dict, str), "an object"),
    "plan": (dict, "an object"),
    "validity": (dict, "an object"),
    "systems": (dict, "an object"),
    "host": (dict, "an object"),
    "summary": (dict, "an object"),
    "mode": (str, "a text"),
    "schema": (str, "a text"),
    "digest": (str, "a text"),
    "seed": (int, "an integer"),
    "replaces": ((int, type(None)), "an integer"),
    "duration_s": (_NUMBER, "a number"),
    "set": (list, "a list"),
    "set_with": (list, "a list"),
    "kept": (list, "a list"),
    "stages": (list, "a list"),
    "flows": (list, "a list"),
    "balance": (list, "a list"),
}
_WITHIN: Final[Mapping[str, tuple[str, ...]]] = {
    "validity": ("bounds", "measured"),
    "scenario": ("measure", "path", "flows", "until"),
}
"""Objects in objects of it, which reports read."""
_OBJECTS: Final = ("stages", "flows", "balance")
_TEXTS: Final = ("set", "set_with", "kept")


def read_object(path: Path) -> dict[str, Any]:
    """Returns a file of one JSON object. Raises RecordError that names it."""
    try:
        value = json.loads(read_input(path, LARGEST_BYTES))
    except FileNotFoundError:
        raise RecordError(f"{path}: missing; the record is not complete, run the trial again.") from None
    except UnfitInputError as error:
        raise RecordError(f"{path}: {error}.") from None
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}.") from error
    except RecursionError:
        raise _damaged(path, "nested too deeply") from None
    except ValueError as error:
        raise _damaged(path, f"not JSON ({str(error)[:80]})") from error
    if not isinstance(value, dict):
        raise _damaged(path, "not a JSON object")
    return value


def read_trial(path: Path, required: Collection[str] = ()) -> dict[str, Any]:
    """Returns a ``trial.json`` with checked types of each key that is read, and with all keys of `required`.

    Raises RecordError that names the file and the key.
    """
    trial = read_object(path)
    for key in required:
        if key not in trial:
            raise _damaged(path, f"it has no '{key}'")
    for key, (types, name) in _TYPES.items():
        value = trial.get(key)
        if key in trial and (not isinstance(value, types) or isinstance(value, bool)):
            raise _damaged(path, f"its {key} is {_shown(value)}, not {name}")
    for keys, kind, name in ((_OBJECTS, dict, "objects"), (_TEXTS, str, "texts")):
        for key in keys:
            if not all(isinstance(one, kind) for one in trial.get(key, ())):
                raise _damaged(path, f"its {key} is no list of {name}")
    for key, names in _WITHIN.items():
        inner = trial.get(key)
        if not isinstance(inner, dict):
            continue
        for name in names:
            if not isinstance(inner.get(name), dict | None):
                raise _damaged(path, f"its {key} has {_shown(inner[name])} as '{name}', not an object")
    why = (trial.get("validity") or {}).get("why")
    if why is not None and not isinstance(why, list):
        raise _damaged(path, f"its validity has {_shown(why)} as 'why', not a list")
    return trial


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _damaged(path: Path, what: str) -> RecordError:
    return RecordError(f"{path}: damaged: {what}; run the trial again or fetch the record anew.")
