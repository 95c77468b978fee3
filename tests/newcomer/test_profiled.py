"""`make profiled`: the same trials by a native module that is built by what it does most."""

from __future__ import annotations

import subprocess

import pytest
from stranger import CHECKOUT

MODULE = CHECKOUT / "python/streamgauge/_native.abi3.so"


def profiled(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["scripts/profiled.sh", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def test_an_option_that_it_has_not_is_refused() -> None:
    done = profiled("--besides")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "profiled: unknown option --besides; it is called without one, or with --aside\n"


@pytest.mark.long
def test_the_same_trials_and_nothing_replaced() -> None:
    before = MODULE.read_bytes()
    done = profiled("--aside")
    assert done.returncode == 0, done.stderr
    assert "digests: the same\n" in done.stdout
    assert MODULE.read_bytes() == before != (CHECKOUT / "target/profiled/lib_native.so").read_bytes()
    left = {path.name for path in (CHECKOUT / "target/profiled").iterdir()}
    assert not left & {"counters", "trials", "package"}
