"""``worker``: this machine's processors for a Dask cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from streamgauge.campaign.cluster import connected
from streamgauge.campaign.cluster.on_worker import EMU
from streamgauge.campaign.machine import why_not
from streamgauge.cli.output import remark
from streamgauge.cli.status import INTERRUPTED
from streamgauge.errors import CannotRunError
from streamgauge.processors import processors

__all__ = ["worker_command"]

_ONE_THREAD = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
_GONE_S = 60
"""Time that a worker waits for a lost scheduler, s."""
_OPTIONS = ("--nthreads", "1", "--no-dashboard", "--death-timeout", str(_GONE_S))
_LOOK_S = 0.2
_END_S = 10.0


def worker_command(on: str, processes: int | None, emu: bool | None) -> int:
    """Starts `dask worker` processes of a thread each, one of them for emu trials, and waits.

    Args:
        on: the scheduler, as `connected` takes it.
        processes: how many; as many as there are processors if None.
        emu: whether emu trials may come; if this machine can run them if None.

    Raises CannotRunError if the scheduler does not answer, or emu was asked for and cannot run here.
    """
    with connected(on) as cluster:
        address = cluster.address
    count = processes or processors()
    lacking = None if emu is False else why_not("emu")
    if emu and lacking is not None:
        raise CannotRunError(f"--emu: {lacking}.")
    able = emu is not False and lacking is None
    said = "and emu, one trial at a time" if able else "no emu" + (f": {lacking}" if lacking else "")
    remark(f"{count} worker{'' if count == 1 else 's'} for {address}; sim {said}")
    # Emu trials of one machine take turns, so one of its workers alone is offered for them.
    groups = [(1, ["--resources", f"{EMU}=1"]), (count - 1, [])] if able else [(count, [])]
    environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
    if "://" not in on and Path(on).suffix in (".yaml", ".yml"):
        environment["DASK_CONFIG"] = str(Path(on).absolute())
    started = [
        subprocess.Popen(
            # -P: not the contents of the current folder.
            [
                sys.executable,
                "-P",
                "-m",
                "dask",
                "worker",
                address,
                *_OPTIONS,
                "--nworkers",
                str(number),
                *more,
            ],
            env=environment,
        )
        for number, more in groups
        if number
    ]
    try:
        # Not by one long wait: a signal that another thread takes, such as Dask's, would not end that.
        while any(process.poll() is None for process in started):
            time.sleep(_LOOK_S)
        statuses = [process.wait() for process in started]
    except KeyboardInterrupt:
        statuses = [INTERRUPTED]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if statuses == [INTERRUPTED]:
        return INTERRUPTED
    if any(statuses):
        raise CannotRunError(
            f"a worker for {address} ended with status {max(statuses, key=abs)}; see its output above."
        )
    return 0
