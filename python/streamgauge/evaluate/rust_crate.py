"""Controls of a Rust crate: built once, and run in a program of their own.

The crate's program takes ``simulate PLAN DIRECTORY``, as ``examples/controller-crate`` does. A scenario names
a stand-in for the control, and the plan gets the crate's own name before the program runs it.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamgauge.errors import CannotRunError, ScenarioError, StreamGaugeError

__all__ = ["STAND_IN", "CrateControl", "built_crate", "is_crate"]

STAND_IN: Final = "tfrc"
"""A control of sim that scenarios name in the crate's place."""
_LONGEST_S: Final = 900


@dataclass(frozen=True)
class CrateControl:
    """A program that simulates with a control of its own."""

    program: Path
    name: str

    @property
    def digest(self) -> str:
        """Changes with the program and the control."""
        found = hashlib.blake2b(self.program.read_bytes(), digest_size=6)
        found.update(self.name.encode())
        return found.hexdigest()

    def __call__(self, plan: str, directory: Path) -> Any:
        """Runs a plan, leaves the record in `directory`, and returns the summary. Raises StreamGaugeError."""
        file = directory / "plan.json"
        file.write_text(json.dumps(_renamed(json.loads(plan), self.name)), encoding="utf-8")
        command = [str(self.program), "simulate", str(file), str(directory)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StreamGaugeError(f"{self.name}: the trial did not end within {_LONGEST_S} s.") from None
        finally:
            file.unlink()
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
            raise StreamGaugeError(f"{self.name}: {said[0]}")
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise StreamGaugeError(f"{self.name}: its program printed no summary as JSON.") from None


def is_crate(text: str) -> bool:
    """Returns whether it names a crate, ``FOLDER:NAME``."""
    return (Path(text.rpartition(":")[0] or text) / "Cargo.toml").is_file()


def built_crate(text: str) -> CrateControl:
    """Builds the crate and finds its program.

    Raises:
        ScenarioError: if no control is named, or the crate does not build.
        CannotRunError: without cargo.
    """
    folder, _, name = text.rpartition(":")
    if not folder:
        raise ScenarioError(f"{text}: names no control", hint=f"write {text}:NAME, as its factory is called")
    command = ["cargo", "build", "--release", "--message-format", "json", "--quiet"]
    manifest = Path(folder).absolute() / "Cargo.toml"
    try:
        done = subprocess.run(
            [*command, "--manifest-path", str(manifest)],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise CannotRunError(f"cargo: {error.strerror}; install Rust to evaluate a crate.") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise ScenarioError(f"{manifest}: does not build: {said[0]}", hint="cargo build shows all of it")
    programs = [
        Path(found)
        for line in done.stdout.splitlines()
        if line.startswith("{") and (found := json.loads(line).get("executable"))
    ]
    if not programs:
        raise ScenarioError(f"{manifest}: builds no program", hint="see examples/controller-crate")
    return CrateControl(programs[-1], name)


def _renamed(data: Any, name: str) -> Any:
    """Returns the plan with the crate's control in place of the stand-in."""
    if isinstance(data, dict):
        return {
            key: name if key == "congestion_control" and value == STAND_IN else _renamed(value, name)
            for key, value in data.items()
        }
    return [_renamed(value, name) for value in data] if isinstance(data, list) else data
