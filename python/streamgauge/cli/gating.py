"""Files that CI reads after a command: JUnit XML, a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from streamgauge.documents import cannot_write, check_place

__all__ = ["GateFiles", "written"]


@dataclass(frozen=True)
class GateFiles:
    """Their places; None for those not requested."""

    junit: Path | None = None
    summary: Path | None = None

    def prepare(self) -> None:
        """Before work starts: refuses places that cannot be written, and takes a JUnit file of an earlier run
        away, so that CI does not show it if this run breaks off.

        Raises:
            StreamGaugeError: naming the option.
        """
        places: Mapping[str, Path | None] = {"--junit": self.junit, "--summary": self.summary}
        for option, place in places.items():
            if place is not None:
                check_place(place, option)
        if self.junit is not None and self.junit.is_file():
            self.junit.unlink()


def written(file: Path | None, write: Callable[[Path], object]) -> None:
    """Writes a file that was asked for. Raises CannotRunError if it cannot be written after all."""
    if file is None:
        return
    try:
        write(file)
    except OSError as error:
        raise cannot_write(file, error) from error
