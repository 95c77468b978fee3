"""Runs the command line in this process, in an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamgauge.cli import main

SCENARIO = """\
id: test/cli
title: A download for two seconds
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets}
flows:
  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}}
until: {time: 2 s}
repetitions: {sim: 2}
checks:
  fills:
    title: The link is full
    that: throughput.ftp >= 500 kbit/s
    origin: predicted
    breaks: {path.down.rate: 300 kbit/s}
"""


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    status: int
    out: str
    err: str


Cli = Callable[..., Ran]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        status = main(list(arguments))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "my.yaml"
    file.write_text(SCENARIO)
    return file
