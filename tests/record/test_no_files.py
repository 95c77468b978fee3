"""A pipe or a device in the place of a file: one line that names it, wherever a user names a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small import make
from streamgauge.campaign.stored import load_metrics
from streamgauge.cli import main
from streamgauge.errors import CaptureFileError, MediaError, RecordError
from streamgauge.input_files import UnfitInputError, check_file
from streamgauge.media.content import Content
from streamgauge.media.package import Presentation
from streamgauge.qlog import read_qlog
from streamgauge.record import Record

_KINDS = {"pipe": "is a pipe", "device": "is a device"}
WRITER = """
import os, pathlib, sys, time
while True:
    time.sleep(0.5)
    for file in pathlib.Path(sys.argv[1]).rglob("*"):
        if file.is_fifo():
            try:
                os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:  # no reader
                continue
            pathlib.Path(sys.argv[2]).write_text(f"a reader waited at {file}")
"""

COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "rule": lambda file: ["show", "dash/steps-bola", "--set", f"flows.video.parameters.rule={file}:choose"],
    "control": lambda file: ["show", "hessler/ftp-no", "--set", f"flows.ftp.congestion_control={file}:Mine"],
    "candidate": lambda file: ["evaluate", "cc", file],
    "class": lambda file: ["evaluate", "cc", f"{file}:Mine"],
    "capture": lambda file: ["analyze", file],
    "second capture": lambda file: ["analyze", str(Path(__file__)), file],
    "checks": lambda file: ["analyze", str(Path(__file__)), "--checks", file],
    "cluster": lambda file: ["run", "hessler/ftp-no", "--mode", "sim", "--on", file],
    "baseline": lambda file: ["compare", "hessler/ftp-no", "--mode", "sim", "--against", file],
    "real": lambda file: ["crosscheck", "abr", "--real", file],
}


@pytest.fixture(autouse=True)
def _writer(tmp_path: Path) -> Iterator[None]:
    """A program that opens each pipe that a reader waits at, and so ends the wait. No reader may wait."""
    found = tmp_path / "waited"
    with subprocess.Popen([sys.executable, "-S", "-c", WRITER, str(tmp_path), str(found)]) as program:
        yield
        program.kill()
    assert not found.exists(), found.read_text()


def load_presentation(file: Path) -> object:
    return Presentation.load(file.parent)


def _put(kind: str, file: Path) -> Path:
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    else:
        # Its reading has an end, unlike that of /dev/zero: a test that fails must not fill the memory.
        file.symlink_to("/dev/null")
    return file


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("door", COMMANDS)
def test_a_command_refuses_it_by_name(
    door: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = _put(kind, tmp_path / {"cluster": "a.json"}.get(door, "a.py"))
    assert main(COMMANDS[door](str(file))) == 3
    told = capsys.readouterr().err
    assert str(file) in told and _KINDS[kind] in told and told.count("\n") == 1


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("name", ["packets.parquet", "events.parquet"])
def test_a_record_refuses_it_by_name(name: str, kind: str, tmp_path: Path) -> None:
    record = make(tmp_path / "trial")
    opened = Record.open(record)
    file = _put(kind, record / name)
    reads: list[Callable[[], object]] = [
        lambda: Record.open(record),
        lambda: opened.packets if name.startswith("packets") else opened.events,
    ]
    for read in reads:
        with pytest.raises(RecordError) as caught:
            read()
        assert str(caught.value) == f"{file}: {_KINDS[kind]}; expected a file."


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("name", ["metrics.parquet", "provenance.json", "metrics.json", "index.sqlite"])
def test_what_is_beside_a_record_is_no_file(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = make(tmp_path / "out" / "trial")
    _put(kind, (record.parent if name == "index.sqlite" else record) / name)
    assert load_metrics(record, {}) is None
    status = main(["verify", str(tmp_path / "out")])
    told = capsys.readouterr()
    assert status == (3 if name == "provenance.json" else 0), told
    assert status == 0 or _KINDS[kind] in told.out + told.err
    assert main(["report", str(tmp_path / "out"), "--out", str(tmp_path / "page.html")]) in (0, 3)


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("read", [read_qlog, Content.load, load_presentation])
def test_a_reader_refuses_it_by_name(read: Callable[[Path], object], kind: str, tmp_path: Path) -> None:
    file = _put(kind, tmp_path / "presentation.json")
    with pytest.raises((CaptureFileError, MediaError)) as caught:
        read(file)
    assert str(file) in str(caught.value) and _KINDS[kind] in str(caught.value)


def test_a_missing_file_and_a_folder_are_left_to_the_reader(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / ("x" * 300), Path("a\0b")):
        check_file(path)
    with pytest.raises(UnfitInputError, match="is a device"):
        check_file(Path("/dev/null"))
