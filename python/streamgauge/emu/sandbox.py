"""The launcher's side of a sandbox: starts a worker of ours in it, listens, and sees that nothing outlives
it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge import errors as public_errors
from streamgauge.emu.concurrency import Lifelines
from streamgauge.emu.engine import search_path
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.errors import CannotRunError, StreamGaugeError


def run_worker(
    module: str,
    job: str,
    *,
    engine: str,
    way: str,
    lock: int,
    lifelines: Lifelines | None = None,
    listen: Callable[[Mapping[str, Any]], None],
    passed_on: tuple[int, ...] = (),
) -> dict[str, Any]:
    """Runs ``python -m module`` in a sandbox, with `job` as the one line on its stdin.

    Args:
        module: a module that answers by `inside`, in lines of JSON: ``{"done": {...}}`` last, ``{"failed":
            {"kind", "message"}}`` if it cannot, anything else for `listen`.
        job: one line.
        engine: the executable that makes the sandbox.
        way: "root" or "user".
        lock: descriptor of the machine's lock. The sandbox inherits it, so that it is held until the
            sandbox's last process is gone.
        lifelines: keeps the sandbox's lifeline, so that another thread may end it.
        listen: takes the worker's messages.
        passed_on: further descriptors that the worker has.

    Returns:
        The worker's result.

    Raises:
        CannotRunError: if the machine cannot make the sandbox.
        TrialBrokenError: if it ended without a last message.
        StreamGaugeError: the worker's own error.
    """
    lifelines = lifelines or Lifelines()
    lifeline = lifelines.open()
    command = [engine, "sandbox", "--way", way, "--parent", str(os.getpid())]
    command += ["--lifeline", str(lifeline.reading), "--", sys.executable, "-m", module]
    environment = {**os.environ, "PATH": search_path(), "PYTHONPATH": _python_path()}
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            pass_fds=(lifeline.reading, lock, *passed_on),
            # Ctrl-C is for the launcher alone: it ends the sandbox by closing the lifeline.
            start_new_session=True,
            env=environment,
        ) as sandbox:
            os.close(lifeline.reading)
            try:
                return _converse(sandbox, job, listen)
            finally:
                # For any reason, nothing inside outlives this line.
                lifelines.close(lifeline)
                sandbox.wait()
    finally:
        lifelines.close(lifeline)


def _converse(
    sandbox: subprocess.Popen[str], job: str, listen: Callable[[Mapping[str, Any]], None]
) -> dict[str, Any]:
    assert sandbox.stdin is not None and sandbox.stdout is not None and sandbox.stderr is not None
    with suppress(BrokenPipeError):  # it gives the reason on stderr
        sandbox.stdin.write(job + "\n")
        sandbox.stdin.flush()
    for line in sandbox.stdout:
        words = json.loads(line)
        if "done" in words:
            done: dict[str, Any] = words["done"]
            return done
        if "failed" in words:
            raise as_error(words["failed"])
        listen(words)
    said = sandbox.stderr.read().strip()
    code = sandbox.wait()
    last = said.splitlines()[-1] if said else "it said nothing"
    if code == CannotRunError.exit_status:
        raise CannotRunError(f"{last}")
    raise TrialBrokenError(f"the sandbox ended before the trial did (status {code}: {last}); run it again.")


def as_error(failed: Mapping[str, str]) -> StreamGaugeError:
    """Returns a worker's failure (`inside.answer`) as the error to raise."""
    kind = getattr(public_errors, failed["kind"], TrialBrokenError)
    error = kind(failed["message"])
    assert isinstance(error, StreamGaugeError)
    return error


def _python_path() -> str:
    """Where the worker finds this very package."""
    ours = str(Path(streamgauge.__file__).parent.parent)
    before = os.environ.get("PYTHONPATH")
    return f"{ours}{os.pathsep}{before}" if before else ours
