"""The path that the options describe."""

from __future__ import annotations

from pathlib import Path as File

from streamgauge.errors import ScenarioError
from streamgauge.scenario.path import Direction, Path, direction_of_text, preset

__all__ = ["label_of", "path_of"]

_OF_A_RATE = ("rate", "trace", "csv")


def path_of(*, down: str | None, up: str | None, preset_name: str | None, trace: File | None) -> Path:
    """Returns the path; a plain wire by default. A preset supplies the parts that the texts leave open.

    Raises ScenarioError that begins with the option at fault.
    """
    if trace is not None:
        if "," in str(trace):
            raise ScenarioError(f"--trace {trace}: a comma cannot stand in its name; rename or link it")
        if down is not None and (clash := [key for key in _keys(down) if key in _OF_A_RATE]):
            raise ScenarioError(f"--trace and '{clash[0]}' of --down exclude each other")
        down = f"{down}, trace {trace}" if down and down.strip() else f"trace {trace}"
    base = preset(preset_name) if preset_name is not None else Path(down=Direction(), up=Direction())
    return Path(
        based_on=base.based_on,
        down=_over(base.down, down, "--down" if trace is None else "--trace"),
        up=_over(base.up, up, "--up"),
    )


def _keys(text: str) -> list[str]:
    return [part.split()[0] for part in text.split(",") if part.strip()]


def _over(base: Direction, text: str | None, source: str) -> Direction:
    """Returns `base` with the values of `text` in its place."""
    if text is None:
        return base
    if base.stages:
        raise ScenarioError(
            f"{source}: the preset's direction is a chain of named stages, which a line cannot change. "
            "Give the whole direction without --preset, or write a scenario."
        )
    return direction_of_text(text, source=source, base=None if base.stages is not None else base)


def label_of(*, down: str | None, up: str | None, preset_name: str | None, trace: File | None) -> str:
    """Returns the path in the caller's own few words, as prompts show it."""
    if trace is not None:
        down = f"{down}, trace {trace.name}" if down and down.strip() else f"trace {trace.name}"
    same = [down] if down == up else [f"{name} {text}" for name, text in (("down", down), ("up", up)) if text]
    parts = [part for part in (preset_name, *same) if part]
    return "; ".join(" ".join(part.split()) for part in parts) or "plain wire"
