"""Capabilities of this machine, and thereby the mode in which a scenario runs."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.emu import remedy
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario import Scenario
from streamgauge.systems.machines import lacking_library
from streamgauge.systems.registry import Mode

__all__ = ["LibraryLackingError", "ModeChoice", "choose_mode", "why_not"]


class LibraryLackingError(CannotRunError):
    """A scenario needs a library of others that this build lacks.

    ``why`` is the reason with its remedy, in words that do not name the scenario.
    """

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


@functools.cache
def why_not(mode: Mode, *, way: str | None = None) -> str | None:
    """Returns why this machine cannot run ``mode``, with the remedy; ``None`` if it can. Looked up once a
    process."""
    if importlib.util.find_spec("streamgauge._native") is None:
        return f"the native module is not built; {remedy.build()}"
    if mode == "sim":
        return None
    from streamgauge.emu.doctor import why_not as emu_why_not

    return emu_why_not(way)


@dataclass(frozen=True)
class ModeChoice:
    """The mode that a scenario is going to run in."""

    mode: Mode
    why: str
    """In words that do not name the scenario."""


def choose_mode(
    scenario: Scenario,
    asked: Mode | None,
    *,
    way: str | None = None,
    elsewhere: Callable[[Mode], str | None] | None = None,
) -> ModeChoice:
    """Returns the mode asked for, or the first that the scenario supports and the machine can do, and why
    that.

    ``elsewhere`` replaces `why_not` where the scenario runs on another machine: the missing parts of a mode
    there.

    Raises ScenarioError if the scenario cannot run so, CannotRunError if the machine cannot, and of these
    LibraryLackingError if a library of others is all that it lacks in one of the modes.
    """
    candidates: Sequence[Mode] = [asked] if asked is not None else list(scenario.modes)
    refused: list[str] = []
    machine: list[str] = []
    library: str | None = None
    where = "this machine" if elsewhere is None else "the cluster"
    for mode in candidates:
        unsupported = scenario.unsupported(mode)
        if unsupported is not None:
            refused.append(f"{mode}: {unsupported}")
            continue
        lacking = why_not(mode, way=way) if elsewhere is None else elsewhere(mode)
        if lacking is None and (lacking := _library(scenario, mode)) is not None:
            library = library or lacking.partition(": ")[2]
        if lacking is None:
            return ModeChoice(mode, _why(scenario, mode, asked, machine, where))
        machine.append(f"{mode}: {lacking}")
    if library is not None:
        raise LibraryLackingError(f"{where} cannot run {scenario.id}: {'; '.join(machine)}", library)
    if machine:
        raise CannotRunError(f"{where} cannot run {scenario.id}: {'; '.join(machine)}")
    raise ScenarioError(f"{scenario.id} cannot run: {'; '.join(refused)}")


def _library(scenario: Scenario, mode: Mode) -> str | None:
    """Returns the first flow with a system that this build lacks, with the remedy; None if it has all."""
    for name, flow in scenario.flows.items():
        entry = flow.in_mode(mode).registered
        if entry is not None and mode in entry.ours and (why := lacking_library(entry.name)) is not None:
            return f"flows.{name}: {why}"
    return None


def _why(scenario: Scenario, mode: Mode, asked: Mode | None, cannot: Sequence[str], where: str) -> str:
    """``cannot`` has for each mode before this one the reason against it."""
    supported = scenario.supported_modes()
    if asked is not None:
        return "as asked for"
    if cannot:
        return f"{where} cannot run {'; '.join(cannot)}"
    if len(supported) == 1:
        return "the only one that is supported"
    return f"{where} can; supported are {' and '.join(supported)}, in this order"
