"""Rates from a file: a trace of a link, a shipped one by its name or one's own."""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal

from streamgauge.errors import DoubtWarning, ScenarioError
from streamgauge.input_files import UnfitInputError
from streamgauge.scenario.path.common import Settings
from streamgauge.scenario.path.trace_forms import read_trace
from streamgauge.scenario.values import Model, issue, nearest

__all__ = ["DelayTrace", "LossTrace", "Trace", "TraceFile", "shipped_traces"]

LARGEST_TRACE_BYTES = 200_000_000
"""Some hours of delivery opportunities at thousands a second."""

_MOST_STEPS = 1_000_000

Format = Literal["mahimahi", "csv", "pensieve", "byte_log", "ucc", "ucc_up"]


@cache
def shipped_traces() -> dict[str, Path]:
    """Returns every trace that ships, by name."""
    folder = Path(str(resources.files("streamgauge") / "traces"))
    files = sorted(path for path in folder.glob("*") if path.suffix in (".csv", ".pps", ".txt"))
    return {path.stem: path for path in files}


@lru_cache(maxsize=16)
def _parsed(text: str, format: str | None, lasts_ns: int | None) -> dict[str, Any]:
    from streamgauge import _native

    parsed: dict[str, Any] = json.loads(_native.parse_trace(text, format, lasts_ns))
    return parsed


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class TraceFile(Settings):
    """A trace: a shipped one's name, or a file, from a scenario file relative to it."""

    first: ClassVar[str | None] = "file"

    file: str
    format: Format | None = None
    """Format; derived from its first line if left out."""
    digest: str | None = None
    """Digest of its text. Filled in, for the record to identify the trace; another text is refused."""

    @classmethod
    def from_words(cls, data: Any) -> Any:
        data = super().from_words(data)
        if not isinstance(data, dict) or not isinstance(data.get("file"), str):
            return data
        text = _read(data["file"])
        try:
            parsed = _parsed(text, data.get("format"), None)
        except ScenarioError as error:
            raise issue(f"the trace {data['file']}: {error.message}", "file") from None
        if parsed["doubt"] and "digest" not in data:
            # A scenario that is read again, in a record or by a process of a campaign, has the digest.
            warnings.warn(f"the trace {data['file']}: {parsed['doubt']}", DoubtWarning, stacklevel=2)
        found = _digest(text)
        if data.get("digest", found) != found:
            raise issue(
                f"the trace {data['file']} is not the one that was used: its text is another",
                "digest",
                "take the digest out to use it as it is now",
            )
        return {**data, "digest": found}

    @property
    def name(self) -> str:
        """Returns its name in texts."""
        return Path(self.file).name

    def _text(self) -> str:
        text = _read(self.file)
        if _digest(text) != self.digest:
            raise ScenarioError(f"the trace {self.file} has changed since the scenario was loaded")
        return text

    def rate_plan(self, lasts_ns: int | None = None) -> dict[str, Any]:
        """Returns the rate as the plan has it: opportunities, or steps repeated until ``lasts_ns``."""
        rate: dict[str, Any] = _parsed(self._text(), self.format, lasts_ns)["rate"]
        return rate

    def mean_bps(self) -> int:
        """Bit/s on the mean."""
        return int(_parsed(self._text(), self.format, None)["mean_bps"])

    def duration_ns(self) -> int:
        """Returns how long it is before it begins again, ns."""
        return int(_parsed(self._text(), self.format, None)["duration_ns"])

    def rates_bps(self) -> list[int]:
        """Returns every rate that it takes, bit/s; the mean of delivery opportunities."""
        rate = self.rate_plan()
        return [bps for _, bps in rate["steps"]] if "steps" in rate else [self.mean_bps()]

    @property
    def is_opportunities(self) -> bool:
        """Returns whether it lists when packets may leave, instead of rates."""
        return "opportunities" in self.rate_plan()


class _ColumnTrace(TraceFile):
    """A trace whose table has a column beside time and rate."""

    column: ClassVar[Literal["delay", "loss"]]
    example: ClassVar[str]

    @classmethod
    def from_words(cls, data: Any) -> Any:
        data = super().from_words(data)
        if isinstance(data, dict) and isinstance(data.get("file"), str):
            parsed = _parsed(_read(data["file"]), data.get("format"), None)
            fault = parsed["faults"][cls.column]
            if fault is not None:
                raise issue(f"the trace {data['file']}: {fault}", "file")
            if not parsed[cls.column]:
                raise issue(
                    f"the trace {data['file']} has no column of a {cls.column}",
                    "file",
                    f"name one such as {cls.example} in its header",
                )
        return data

    def steps(self, lasts_ns: int | None = None) -> list[tuple[int, float]]:
        """Returns the time (ns) of each change and the value from there on, the first at 0. They begin again
        as the rate does, until `lasts_ns`.

        Raises:
            ScenarioError: if that makes more than a million steps.
        """
        parsed = _parsed(self._text(), self.format, None)
        once: list[tuple[int, float]] = [(at, value) for at, value in parsed[self.column]]
        made, period_ns = list(once), parsed["duration_ns"]
        for start in range(period_ns, lasts_ns or 0, period_ns):
            made += [(start + at, value) for at, value in once if (at, value) != (0, made[-1][1])]
            if len(made) > _MOST_STEPS:
                raise ScenarioError(
                    f"the trace {self.file}: repeated it has more than {_MOST_STEPS} steps of its "
                    f"{self.column}; shorten the trial or thin the trace"
                )
        return made


class DelayTrace(_ColumnTrace):
    """The column of one-way delays, ns."""

    column = "delay"
    example = "delay_ms"


class LossTrace(_ColumnTrace):
    """The column of losses, parts of 1."""

    column = "loss"
    example = "loss_percent"


def _read(file: str) -> str:
    path = shipped_traces().get(file, Path(file))
    try:
        return read_trace(path, LARGEST_TRACE_BYTES)
    except (OSError, UnicodeDecodeError, UnfitInputError) as error:
        why = "is not text" if isinstance(error, UnicodeDecodeError) else str(error)
        if isinstance(error, OSError):
            why = error.strerror or why
        shipped = ", ".join(shipped_traces())
        close = nearest(Path(file).stem, shipped_traces())
        raise issue(
            f"the trace {file} cannot be read: {why}; expected a file, or one that ships: {shipped}",
            "file",
            f"did you mean '{close}'?" if close else f"looked in {path.absolute().parent}",
        ) from None


class Trace(Model):
    """The rate of a trace, repeated until the trial's end."""

    trace: TraceFile
