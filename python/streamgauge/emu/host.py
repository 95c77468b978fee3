"""The machine that a trial runs on: this one, or a virtual one in its place (`streamgauge.emu.machine`)."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamgauge.emu import controls, remedy
from streamgauge.emu.certificate import for_trial
from streamgauge.emu.concurrency import ConcurrentTrials, TrialSlot
from streamgauge.emu.doctor import TOOLS
from streamgauge.emu.engine import engine, search_path
from streamgauge.emu.lock import machine_lock
from streamgauge.emu.sandbox import run_worker
from streamgauge.emu.trial_request import WORKER
from streamgauge.emu.trial_setup import planned_controls
from streamgauge.errors import CannotRunError
from streamgauge.systems.adapters import check_programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streamgauge.emu.options import EmuOptions
    from streamgauge.emu.trial_request import TrialRequest
    from streamgauge.systems.adapter import FlowSetup
    from streamgauge.systems.relay import RelaySetup


class TrialMachine(Protocol):
    """The machine of a trial. It raises CannotRunError for an unsupported trial, before anything starts."""

    def check(self, flows: Sequence[FlowSetup], relays: Sequence[RelaySetup]) -> None:
        """Whether it has the programs and the TCP that these need."""
        ...

    def own_controls(self, wanted: Iterable[str]) -> dict[str, str]:
        """The congestion controls that must be registered, by their Linux names: a name of this trial's."""
        ...

    def turn(self) -> AbstractContextManager[TrialSlot]:
        """The trial's place among others."""
        ...

    def run(
        self, request: TrialRequest, seed: int, turn: TrialSlot, listen: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Runs the trial and returns the worker's measurements. Files are in the request's directory."""
        ...

    def provenance(self, request: TrialRequest, started_at: float) -> dict[str, Any]:
        """The machine's description."""
        ...


class Host:
    """This machine."""

    def __init__(self, options: EmuOptions) -> None:
        self._options = options

    def check(self, flows: Sequence[FlowSetup], relays: Sequence[RelaySetup]) -> None:
        for tool in TOOLS:
            if shutil.which(tool.name, path=search_path()) is None:
                raise CannotRunError(f"{tool.name} is missing; {remedy.install(tool.packages, alone=False)}.")
        for setup in flows:
            check_programs(setup)
        way = self._options.chosen_way
        for who, control in planned_controls(flows, relays):
            controls.check(who, control, way)

    def own_controls(self, wanted: Iterable[str]) -> dict[str, str]:
        return controls.names(wanted)

    @contextmanager
    def turn(self) -> Iterator[TrialSlot]:
        if self._options.concurrent is not None:
            with self._options.concurrent.slot() as mine:
                yield mine
        else:
            with machine_lock(self._options.say) as lock, ConcurrentTrials(lock).slot() as mine:
                yield mine

    def run(
        self, request: TrialRequest, seed: int, turn: TrialSlot, listen: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        return run_worker(
            WORKER,
            request.to_json(),
            engine=request.engine,
            way=request.way,
            lock=turn.lock,
            lifelines=turn.lifelines,
            listen=listen,
            passed_on=() if request.live_fd is None else (request.live_fd,),
        )

    def provenance(self, request: TrialRequest, started_at: float) -> dict[str, Any]:
        return {
            "host": platform.node(),
            "machine": platform.machine(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "sandbox": request.way,
            "certificate": for_trial(Path(request.engine), request.way, started_at),
        }


def machine_for(options: EmuOptions, plan: Mapping[str, Any]) -> TrialMachine:
    """The machine that the options ask for, ready for a trial of that plan.

    Raises CannotRunError if there is none.
    """
    if options.virtual is None:
        engine()
        return Host(options)
    from streamgauge.emu.machine.virtual import VirtualMachine

    return VirtualMachine(options, options.virtual.speed_for(plan))
