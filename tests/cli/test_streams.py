"""The table of exit statuses over every command, with streams that are gone, full or closed; and Ctrl-C."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).with_name("stream_cases.py")
SCRIPT = Path(sys.executable).with_name("streamgauge")

OF_HELP = {
    "| head": 0, ">/dev/full": 4, ">&-": 0, "2>/dev/full": 0, "2>&-": 0, "ulimit -f": 4, "ASCII": 0,
}  # fmt: skip
"""The status of a command that prints its help, by what its streams are."""
UNTOLD = ("2>/dev/full", "2>&-", "ulimit -f")
"""Where an error cannot be read; a limit on files holds for that of stderr too."""
OF_MISUSE = {"2>/dev/full": 3, ">&-": 3}
"""That of one with an option that does not exist."""


def _all_commands() -> list[list[str]]:
    done = subprocess.run([sys.executable, CASES, "commands"], capture_output=True, text=True, check=True)
    found: list[list[str]] = json.loads(done.stdout)
    return found


def test_every_command_has_the_status_of_the_table(tmp_path: Path) -> None:
    commands = _all_commands()
    assert {"run", "list", "verify", "doctor"} <= {name for name, *_ in commands} and len(commands) > 20
    cases = [
        *(([*names, "--help"], condition) for names in commands for condition in OF_HELP),
        *(([*names, "--no-such-option"], condition) for names in commands for condition in OF_MISUSE),
        (["--help"], ">/dev/full"),
        (["--version"], ">/dev/full"),
        (["list"], "| head"),
    ]
    wanted = [
        *(status for _ in commands for status in OF_HELP.values()),
        *(status for _ in commands for status in OF_MISUSE.values()),
        4, 4, 0,
    ]  # fmt: skip
    answers = tmp_path / "answers.json"
    subprocess.run([sys.executable, CASES, answers], input=json.dumps(cases), text=True, check=True)
    wrong = []
    for case, status, (found, errors) in zip(cases, wanted, json.loads(answers.read_text()), strict=True):
        lines = errors.splitlines()
        is_told = status == 0 or case[1] in UNTOLD or len(lines) == 1
        if found != status or not is_told or "Traceback" in errors or "Exception ignored" in errors:
            wrong.append((case, f"status {found}, not {status}", errors[-300:]))
    assert not wrong


def _run(*arguments: Any, **more: Any) -> subprocess.CompletedProcess[str]:
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.run([SCRIPT, *map(str, arguments)], text=True, check=False, **streams)


def _trial(out: Path) -> list[Any]:
    return ["run", "hessler/ftp-no", "--mode", "sim", "--seed", 1, "--out", out]


def test_remarks_that_cannot_be_written_change_no_verdict(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        assert _run(*_trial(tmp_path), stderr=full).returncode == 0
    lines = _run("verify", tmp_path).stdout.splitlines()
    assert len(lines) == 1 and "blake3:" in lines[0]


def test_results_that_cannot_be_written_are_an_error_of_the_machine(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        for arguments in (["list", "--json"], ["show", "hessler/ftp-no"], ["schema"]):
            done = _run(*arguments, stdout=full)
            assert done.returncode == 4
            assert done.stderr.startswith(
                "streamgauge: cannot write to standard output: No space left on device"
            )
            assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [["list", "--json"], ["schema"]])
def test_a_reader_that_goes_is_no_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = _run(*arguments, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_limit_on_files_is_an_error_of_the_machine(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    done = _run(*_trial(tmp_path), preexec_fn=limit)
    assert done.returncode == 4
    assert "File too large" in done.stderr and "ulimit -f" in done.stderr


def test_a_limit_on_tables_that_polars_writes_is_one_too(tmp_path: Path) -> None:
    """Its OSError has the number in its text alone."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    sweep = ["sweep", "hessler/ftp-no", "--mode", "sim", "--seed", 1, "--over", "path.down.queue=10kB,20kB"]
    assert _run(*sweep, "--out", tmp_path).returncode == 0
    done = _run(*sweep, "--out", tmp_path, preexec_fn=limit)
    assert done.returncode == 4, done.stderr
    assert "File too large" in done.stderr and "ulimit -f" in done.stderr


def test_a_terminal_without_our_signs_gets_others() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = _run("show", "hessler/ftp-no", env=environment)
    assert done.returncode == 0 and done.stdout.isascii() and done.stderr == ""


def test_what_programs_print_is_read_whatever_the_locale() -> None:
    """Copyright signs stand in the first lines of ffmpeg and mpv."""
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = _run("doctor", env=environment)
    assert done.returncode in (0, 4) and "internal error" not in done.stderr, done.stderr


def test_a_working_folder_that_is_gone_is_an_error_of_the_machine(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()

    def leave() -> None:
        os.chdir(gone)
        gone.rmdir()

    sweep = ["sweep", "hessler/ftp-no", "--mode", "sim", "--seed", 1, "--over", "path.down.queue=10kB,20kB"]
    done = _run(*sweep, preexec_fn=leave)
    told = "streamgauge: the working folder is gone; change to one that is there\n"
    assert (done.returncode, done.stderr[-len(told) :]) == (4, told)


@pytest.mark.parametrize("module", ["typer", "streamgauge.cli.app"])
def test_ctrl_c_at_the_start_is_one_line(module: str, tmp_path: Path) -> None:
    """While a module is imported, which then goes on for longer than anybody waits."""
    spoilt = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    if module == "streamgauge.cli.app":
        start = f"""
import sys
sys.argv[0] = "streamgauge"
from streamgauge.cli import main
import importlib.abc
class Spoilt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            exec({spoilt!r})
sys.meta_path.insert(0, Spoilt())
main(["list"])
"""
        command = [sys.executable, "-c", start]
    else:
        (tmp_path / f"{module}.py").write_text(spoilt)
        command = [str(SCRIPT), "list"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (130, "streamgauge: interrupted\n")
