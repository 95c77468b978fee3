"""Every command that reads a trial.json refuses one that is none: one line with its name, status 3."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamgauge
from small import make
from streamgauge.cli import main
from streamgauge.errors import RecordError
from streamgauge.record.header import LARGEST_BYTES

SCENARIO = """\
id: test/malformed
title: Malformed
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets}
  up: {}
flows:
  ftp: {role: subject, traffic: bulk}
until: {time: 1 s}
"""


def _text(text: str) -> Callable[[Path], None]:
    return lambda file: _put(file, text)


def _put(file: Path, text: str) -> None:
    file.write_text(text)


def _key(key: str, value: Any) -> Callable[[Path], None]:
    return lambda file: _put(file, json.dumps(json.loads(file.read_text()) | {key: value}))


def _without(key: str) -> Callable[[Path], None]:
    def spoil(file: Path) -> None:
        trial = json.loads(file.read_text())
        del trial[key]
        _put(file, json.dumps(trial))

    return spoil


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def _endless(file: Path) -> None:
    """A file with holes: it takes no room."""
    os.truncate(file, 4 * LARGEST_BYTES)


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "not JSON": (_text("{"), "not JSON"),
    "a list": (_text("[]"), "not a JSON object"),
    "deep nesting": (_text('{"scenario": ' + "[" * 100_000), "nested too deeply"),
    "a wrong type": (_key("seed", "1"), "its seed is"),
    "a wrong type within": (_key("validity", {"why": 3}), "'why'"),
    "a number for bounds": (_key("validity", {"valid": True, "why": [], "bounds": 3}), "'bounds'"),
    "a text for measurements": (_key("validity", {"valid": True, "measured": "x"}), "'measured'"),
    "a list for a measure": (_key("scenario", {"id": "test/x", "measure": [1]}), "'measure'"),
    "a missing key": (_without("mode"), "it has no 'mode'"),
    "a pipe": (_pipe, "is a pipe"),
    "a link to a device": (_device, "is a device"),
    "a gigabyte": (_endless, "has more than 256 MB"),
}
COMMANDS = {
    "report": lambda folder, out: ["report", str(folder), "--out", str(out)],
    "verify": lambda folder, out: ["verify", str(folder)],
    "compare": lambda folder, out: ["compare", str(folder), str(folder.with_name("sound"))],
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("malformed") / "sound")


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    """A folder of one trial, and a sound one beside it."""
    for name in ("spoilt", "sound"):
        shutil.copytree(sound, tmp_path / name / "trial")
    return tmp_path / "spoilt"


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_it_by_name(
    command: str, how: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "trial" / "trial.json"
    spoil, why = SPOILT[how]
    spoil(file)
    assert main(COMMANDS[command](folder, tmp_path / "page.html")) == 3
    out, error = capsys.readouterr()
    told = " ".join((out + error).split())
    # A seal finds a key that is missing before anything asks for it.
    why = "its seal" if (command, how) == ("verify", "a missing key") else why
    assert str(file) in told and why in told and "Traceback" not in told
    assert len(told) < 3 * len(str(file)) + 400
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("how", SPOILT)
def test_a_notebook_refuses_it_by_name(how: str, folder: Path) -> None:
    file = folder / "trial" / "trial.json"
    spoil, why = SPOILT[how]
    spoil(file)
    reads: list[Callable[[], object]] = [lambda: streamgauge.load(folder)]
    if how != "a missing key":
        reads.append(lambda: streamgauge.open_record(file.parent))
    for read in reads:
        with pytest.raises(RecordError) as caught:
            read()
        assert str(caught.value).startswith(f"{file}: ") and why in str(caught.value)


@pytest.mark.parametrize("how", SPOILT)
def test_a_run_into_the_folder_makes_the_trial_anew(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, out = tmp_path / "my.yaml", tmp_path / "out"
    scenario.write_text(SCENARIO)
    command = ["run", str(scenario), "--mode", "sim", "--seed", "1", "--out", str(out)]
    assert main(command) == 0
    (file,) = out.rglob("trial.json")
    before = json.loads(file.read_text())["digest"]
    SPOILT[how][0](file)
    assert main(command) == 0
    assert json.loads(file.read_text())["digest"] == before
    assert "Traceback" not in capsys.readouterr().err
