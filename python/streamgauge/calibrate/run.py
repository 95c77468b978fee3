"""The launcher's side of a calibration: lock, sandbox, rows, document."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge.calibrate.analyse import Array, quantiles
from streamgauge.calibrate.check import overall
from streamgauge.calibrate.passes import Pass, passes
from streamgauge.calibrate.rows import Calibrated, CalibrationResults, rows
from streamgauge.emu.certificate import SCHEMA, identity, keep
from streamgauge.emu.doctor import why_not
from streamgauge.emu.engine import engine
from streamgauge.emu.lock import machine_lock
from streamgauge.emu.options import SPEEDS, EmuOptions
from streamgauge.emu.sandbox import run_worker
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.live.server import needs_extra
from streamgauge.record.provenance import collect

WORKER = "streamgauge.calibrate.worker"
STARTING_S = 0.25
"""Start-up time of the emulator and the gauge in each pass, for the progress bar."""
BUSY = 0.5
"""Load average per processor from which on the machine counts as busy."""


@dataclass(frozen=True)
class CalibrationProgress:
    """How far a calibration is."""

    what: str
    done_s: float
    total_s: float


def calibrate(
    *,
    way: str | None = None,
    quick: bool = False,
    only: Collection[str] | None = None,
    sabotage: tuple[str, ...] = (),
    say: Callable[[str], None] = lambda _: None,
    told: Callable[[CalibrationProgress], None] = lambda _: None,
    store: bool = True,
    live: bool = False,
) -> dict[str, Any]:
    """Measures the emulator here and now, and keeps the result as the machine's certificate.

    Args:
        way: "root" or "user"; by the current user if None; "virtual", or "virtual:2", in a virtual machine,
            without a stored certificate: its time is its own.
        quick: a third of the time, and wider intervals.
        only: names of the passes to run (`streamgauge.calibrate.passes`); all if None. Some are not a
            certificate, and not kept.
        sabotage: faults for our own mutation tests; a sabotaged calibration is never kept.
        say: receives a line about the current wait.
        told: receives the progress.
        store: keep the result as the machine's certificate.
        live: a live page is open in each pass. It is no certificate of trials without one, and not kept.

    Returns:
        The calibration as docs/calibrate.md describes it, schema `streamgauge.calibration/1`.

    Raises:
        CannotRunError: if this machine cannot; the message has the reason and the remedy.
        TrialBrokenError: if a process of ours died meanwhile.
    """
    todo = [one for one in passes(quick=quick) if only is None or one.name in only]
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-calibrate-"))
    try:
        done = run_passes(todo, folder=folder, way=way, sabotage=sabotage, live=live, say=say, told=told)
        calibrated = rows(CalibrationResults(done.passes, done.results, folder, done.is_fifo))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    checks = [row.to_json() for row in calibrated.rows]
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "id": uuid.uuid4().hex,
        "verdict": overall(checks),
        "checks": checks,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(done.unix_s)),
        "unix_s": done.unix_s,
        **identity(done.engine, done.way),
        "class": done.class_["class"],
        "mlock": done.class_["mlock"],
        "quick": quick,
        "live": live,
        "duration_s": done.took_s,
        "stolen_s": done.stolen_s,
        "load_average": list(done.load_average),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "streamgauge": streamgauge.__version__,
        **{key: value for key, value in collect().items() if key in ("cpu", "commit", "machine")},
        "sabotage": list(sabotage),
        "distributions": _distributions(calibrated),
        "passes": {name: _kept(done.passes[name], result) for name, result in done.results.items()},
    }
    found = {key: _plain(value) for key, value in found.items()}
    if store and not live and not sabotage and only is None and done.way in ("root", "user"):
        try:
            found["kept"] = str(keep(found, done.engine, done.way))
        except OSError as error:
            say(f"cannot keep the certificate: {error.filename}: {error.strerror}; set STREAMGAUGE_CACHE")
    return found


@dataclass(frozen=True)
class Done:
    """The finished passes, and their conditions."""

    passes: dict[str, Pass]
    results: dict[str, dict[str, Any]]
    way: str
    engine: Path
    class_: Mapping[str, Any]
    unix_s: float
    took_s: float
    stolen_s: float
    load_average: tuple[float, float]

    @property
    def is_fifo(self) -> bool:
        """Returns whether the emulator had a real-time class."""
        return str(self.class_["class"]).startswith("SCHED_FIFO")


def run_passes(
    todo: Sequence[Pass],
    *,
    folder: Path,
    way: str | None = None,
    sabotage: tuple[str, ...] = (),
    live: bool = False,
    say: Callable[[str], None] = lambda _: None,
    told: Callable[[CalibrationProgress], None] = lambda _: None,
) -> Done:
    """Runs passes one after the other in one sandbox, under the machine's lock; their stamps go to `folder`.

    Raises as `calibrate` does.
    """
    options = EmuOptions(way=way)
    if live:
        if options.virtual is not None:
            raise ScenarioError("--live shows the real clock; leave out --machine virtual")
        needs_extra()
    chosen = options.chosen_way
    reason = why_not(way if options.virtual else chosen)
    if reason is not None:
        raise CannotRunError(f"this machine cannot run the emulator: {reason}")
    executable = engine()
    total_s = sum(one.wall_s + STARTING_S for one in todo)
    names = {one.name: one for one in todo}

    def listen(words: Mapping[str, Any]) -> None:
        if "say" in words:
            say(words["say"])
        elif "at" in words:
            before = todo[: todo.index(names[words["at"]])]
            told(CalibrationProgress(words["at"], sum(one.wall_s + STARTING_S for one in before), total_s))

    request = {
        "engine": str(executable),
        "way": chosen,
        "fifo_priority": options.fifo_priority,
        "out": str(folder),
        "seed": time.time_ns() % 2**32,
        "sabotage": list(sabotage),
        "live": live,
        "passes": [asdict(one) for one in todo],
    }
    alone: AbstractContextManager[int] = nullcontext(-1) if options.virtual else machine_lock(say)
    with alone as lock:
        load_before, stolen_before = os.getloadavg()[0], stolen_s()
        began, date = time.monotonic(), time.time()
        if options.virtual is not None:
            from streamgauge.emu.machine.virtual import run_module

            speed = options.virtual.speed or SPEEDS[0]
            told_way = f"virtual:{speed}"
            done = run_module(WORKER, request, speed, folder, say=say, listen=listen)
        else:
            told_way = chosen
            done = run_worker(
                WORKER, json.dumps(request), engine=str(executable), way=chosen, lock=lock, listen=listen
            )
        took_s, stolen = time.monotonic() - began, stolen_s() - stolen_before
    results = done["passes"]
    return Done(
        passes=names,
        results=results,
        way=told_way,
        engine=executable,
        class_=next(one["class"] for one in results.values() if "class" in one),
        unix_s=date,
        took_s=took_s,
        stolen_s=stolen,
        load_average=(load_before, os.getloadavg()[0]),
    )


def busy() -> str | None:
    """Returns the warning for a machine that has other work; None if it is quiet."""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load < BUSY * processors:
        return None
    return (
        f"the machine is busy (load average {load:.1f} on {processors} processors): what follows is measured "
        "under that load; run it again on a quiet machine to see what the instrument can do"
    )


def stolen_s() -> float:
    """CPU time that a hypervisor has kept from this machine since boot, s."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()
        return int(fields[8]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


SHARES = (*(n / 100 for n in range(1, 98)), *(1 - 10 ** (-n / 20) for n in range(31, 61)))
"""Places of the kept quantiles: every hundredth, then evenly in the logarithm of the tail to 0.999."""


def _distributions(calibrated: Calibrated) -> dict[str, Any]:
    """Quantiles for the figure, us."""

    def of(values_s: Array) -> dict[str, Any]:
        return {"n": len(values_s), "shares": SHARES, "us": [1e6 * q for q in quantiles(values_s, SHARES)]}

    return {"departure_error": of(calibrated.departure_errors_s), "unshaped": of(calibrated.unshaped_s)}


def _kept(one: Pass, result: Mapping[str, Any]) -> dict[str, Any]:
    if "failed" in result:
        return {"failed": result["failed"]}
    return {
        "offered_packets_per_s": one.packets_per_s,
        "frame_bytes": one.frame,
        "gauge": result["gauge"],
        "link": result.get("link"),
        "cpu_s": result.get("cpu_s"),
        **({"live": result["live"]} if "live" in result else {}),
    }


def _plain(value: Any) -> Any:
    """Returns the value without numbers that JSON cannot express."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
