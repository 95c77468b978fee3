"""RealVideo's frames in fragments of ours, as ffmpeg reads them. The files are vectors of `crates/wire`,
whose tests hold that they are what it makes of the whole one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

VECTORS = Path(__file__).parents[2] / "crates" / "wire" / "src" / "rm" / "tests"
WHOLE = VECTORS / "whole.rm"


def output(*command: str) -> bytes:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stderr == b"", done.stderr.decode()
    return done.stdout


def decoded(file: Path) -> list[str]:
    """MD5 of each decoded picture and block of sound, with its time."""
    text = output("ffmpeg", "-loglevel", "error", "-i", str(file), "-f", "framemd5", "-").decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def frames(file: Path) -> list[tuple[int, bytes]]:
    """Coded frames as ffmpeg puts them together: how many fragments each came in, and its bytes. ffmpeg puts
    the number of fragments less 1 in front, and 8 B for each."""
    show = ["-select_streams", "v", "-show_entries", "packet=size", "-of", "json"]
    sizes = json.loads(output("ffprobe", "-v", "error", *show, str(file)))["packets"]
    copy = ["-map", "0:v", "-c", "copy", "-f", "data", "-"]
    rest = output("ffmpeg", "-loglevel", "error", "-i", str(file), *copy)
    found = []
    for size in (int(packet["size"]) for packet in sizes):
        fragments = rest[0] + 1
        found.append((fragments, rest[1 + 8 * fragments : size]))
        rest = rest[size:]
    assert rest == b""
    return found


@pytest.mark.parametrize(("name", "most"), [("fragments-600", 2), ("fragments-250", 5)])
def test_ffmpeg_puts_our_fragments_together(name: str, most: int) -> None:
    whole, found = frames(WHOLE), frames(VECTORS / f"{name}.rm")
    assert len(whole) == 20
    assert {fragments for fragments, _ in whole} == {1}
    assert max(fragments for fragments, _ in found) == most
    assert [frame for _, frame in found] == [frame for _, frame in whole]


def test_fragments_decode_as_whole_frames_do() -> None:
    """Up to two a frame: libavcodec follows a slice into one fragment more, and a frame of ffmpeg's is one
    slice."""
    whole = decoded(WHOLE)
    assert sum(line.startswith("0,") for line in whole) == 20
    assert decoded(VECTORS / "fragments-600.rm") == whole
