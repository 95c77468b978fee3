"""`make profiled`: the same trials by a native module that is built by what it does most."""

from __future__ import annotations

import subprocess
import sys

import pytest
from stranger import CHECKOUT

MODULE = CHECKOUT / "python/streamgauge/_native.abi3.so"


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def compared(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(sys.executable, "benches/native.py", *arguments)


def test_an_option_that_it_has_not_is_refused() -> None:
    done = ran("scripts/profiled.sh", "--besides")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "profiled: unknown option --besides; it is called without one, or with --aside\n"


def test_a_module_has_the_digests_of_itself() -> None:
    done = compared(str(MODULE), str(MODULE), "hessler/ftp-no", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "digests: the same\n" in done.stdout


def test_a_module_that_is_not_there_is_named() -> None:
    done = compared(str(MODULE), "none.so")
    assert done.returncode == 2
    assert "none.so: no native module lies there; scripts/setup.sh builds one" in done.stderr


@pytest.mark.long
def test_the_same_trials_and_nothing_replaced() -> None:
    before = MODULE.read_bytes()
    done = ran("scripts/profiled.sh", "--aside")
    if "llvm-profdata of LLVM" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert "digests: the same\n" in done.stdout
    assert MODULE.read_bytes() == before
    left = {path.name for path in (CHECKOUT / "target/profiled").iterdir()}
    assert "lib_native.so" in left
    assert not left & {"counters", "trials", "package"}
