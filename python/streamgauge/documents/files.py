"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from streamgauge.errors import CannotRunError, ScenarioError

__all__ = ["cannot_write", "check_place", "write_whole"]


def write_whole(out: Path, text: str) -> Path:
    """Writes a text that appears whole or not at all; into a device or pipe, such as ``/dev/stdout``, piece
    by piece."""
    if out.exists() and not out.is_file():
        out.write_text(text, encoding="utf-8")
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(out)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return out


def check_place(out: Path, option: str) -> None:
    """Before work starts: whether a file can be written there, as far as can be seen.

    Raises:
        ScenarioError: if it is a folder, or below a file.
        CannotRunError: if nothing may be written there.
    """
    if out.is_dir():
        raise ScenarioError(f"'{out}' is a folder", key=option, hint="name a file in it")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ScenarioError(f"'{out}' cannot be: {above} is a file", key=option, hint="choose another place")
    if not os.access(out if out.exists() else above, os.W_OK):
        raise CannotRunError(f"{option}: nothing may be written to {out}; choose another place.")


def cannot_write(out: Path, error: OSError) -> CannotRunError:
    """Returns the error for a write that failed after all."""
    return CannotRunError(
        f"cannot write {out}: {error.strerror or error}; free some space or choose another place."
    )
