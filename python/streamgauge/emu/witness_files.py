"""The files of the witnesses at the ends of a path, which stay in a trial's folder until it is judged."""

from __future__ import annotations

from pathlib import Path


def stamps_file(directory: Path, end: str) -> Path:
    """Where the witness at `end` leaves its stamps."""
    return directory / f"witness-{end}.stamps"


def samples_file(directory: Path, end: str) -> Path:
    """Where the witness at `end` leaves the state of TCP connections."""
    return directory / f"tcp-{end}.json"
