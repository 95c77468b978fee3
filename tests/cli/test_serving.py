"""`serve` and `play` become the engine's programs, with the same options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamgauge.cli.app import command as app_command
from streamgauge.emu.engine import engine
from streamgauge.errors import CannotRunError

Cli = Callable[..., Any]


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []

    def execv(_: Path, words: list[str]) -> None:
        calls.append(words)
        raise KeyboardInterrupt  # nothing after it is reached

    monkeypatch.setenv("STREAMGAUGE_ENGINE", sys.executable)
    monkeypatch.setattr(os, "execv", execv)
    return calls


def test_options_reach_the_engine(cli: Cli, became: list[list[str]]) -> None:
    cli("serve", "--system", "darwin", "videos", "--set", "a=1", "--set", "b=2 s", "--json", "--timeout", "5")
    cli("play", "rtsp://h/x", "--player", "vlc", "--duration", "2.5", "--progress")
    serve, play = became[:2]
    assert serve[:2] == ["streamgauge serve", "serve"]
    assert serve[-2:] == ["--", "videos"]
    assert {"--system=darwin", "--set=a=1", "--set=b=2 s", "--json", "--timeout=5.0"} <= set(serve)
    assert {"--max-per-address=250", "--request-within=30.0"} <= set(serve)
    assert not [word for word in serve if word.startswith(("--listen", "--log", "--preset"))]
    cli("serve", "--system", "darwin", "videos")
    assert not [word for word in became[-1] if word.startswith("--timeout")], "it would set both of Darwin's"
    assert play[:2] == ["streamgauge play", "play"]
    assert {"--player=vlc", "--duration=2.5", "--progress"} <= set(play)
    assert not [word for word in play if word.startswith(("--transport", "--json"))]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "videos"], "--system"),
        (["serve", "--system", "helix", "videos"], "helix"),
        (["serve", "--system", "darwin"], "Missing argument"),
        (["serve", "--system", "darwin", "--max-sessions", "0", "videos"], "--max-sessions"),
        (["play", "rtsp://h/x", "--player", "winamp"], "quicktime, vlc"),
        (["serve", "--system", "rtp", "videos"], "is not one of darwin"),
        (["serve", "--system", "darwin", "--preset", "mine", "videos"], "source, paper, fitted"),
    ],
)
def test_wrong_options_exit_with_3(
    cli: Cli, became: list[list[str]], arguments: list[str], words: str
) -> None:
    ran = cli(*arguments)
    assert (ran.status, became) == (3, [])
    assert words in ran.err and ran.err.startswith("streamgauge: ")


@pytest.mark.parametrize("command", ["serve", "play"])
def test_help_has_examples_and_statuses_and_the_engines_options(cli: Cli, command: str) -> None:
    said = cli(command, "--help").out
    assert "Examples" in said and f"streamgauge {command} " in said and "Exit status: 0" in said
    try:
        words = [engine(), command, "--help"]
    except CannotRunError:
        pytest.skip("the engine is not built here")
    theirs = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"--[a-z-]+", theirs))
    assert options - {"--help"} <= set(re.findall(r"--[a-z-]+", said))
    ours = {str(parameter.default) for parameter in app_command().commands[command].params}
    assert set(re.findall(r"\[default: ([^\]]+)\]", theirs)) <= ours


def test_without_the_engine_it_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_ENGINE", "/nowhere/engine")
    ran = cli("play", "rtsp://h/x")
    assert ran.status == 4 and "make setup" in ran.err


def test_the_engine_speaks_as_streamgauge(tmp_path: Path) -> None:
    try:
        program = engine()
    except CannotRunError:
        pytest.skip("the engine is not built here")
    for words, status, says in [
        (["serve", "--system=darwin", str(tmp_path / "none")], 3, "name a folder"),
        (["serve", "--system=darwin", "--udp-ports=7", str(tmp_path)], 3, "FIRST-LAST"),
        (["serve", "--system=darwin", "--set=x=1", str(tmp_path)], 3, "choose among"),
        (["serve", "--system=darwin", "--set=segment_bytes=0", str(tmp_path)], 3, "give 64 B to 65000 B"),
        (["play", "gopher://h/x"], 3, "rtsp://HOST"),
        (["play", "--player=winamp", "rtsp://h/x"], 3, "rtsp:// URLs have quicktime, vlc"),
        (["serve", "--system=darwin", "--preset=mine", str(tmp_path)], 3, "darwin has source, paper, fitted"),
        (["serve", "--system=rtp", str(tmp_path)], 3, "possible values: darwin"),
        (["play", "--duration=-1", "rtsp://h/x"], 3, "86400"),
        (["play", "rtsp://127.0.0.1:9/x"], 4, "streamgauge serve starts one"),
    ]:
        ran = subprocess.run(
            [f"streamgauge {words[0]}", *words],
            executable=program,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == status, ran.stderr
        assert ran.stderr.startswith("streamgauge: ") and says in ran.stderr
        assert len(ran.stderr.splitlines()) == 1
