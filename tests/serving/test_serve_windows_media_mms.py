"""Windows Media by FFmpeg and MPlayer over MMS and HTTP, at our server's port of RTSP: as from the file."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import FILM_RATE, FILM_SECONDS, Server
from mplayer import pictures
from starved import again_if_starved

Packet = tuple[str, str]
"""Bytes and their digest."""

SHORT = ["-analyzeduration", "500000", "-t", "1.5"]
"""At the end of a stream of MMS FFmpeg 5.1 reads on for ever: it is not to get there, while it probes too."""


@pytest.fixture(scope="module")
def server(wmvs: Path) -> Iterator[Server]:
    with Server(wmvs, system="windows_media") as server:
        yield server


def ffmpeg(*options: str) -> list[list[str]]:
    """What ffmpeg says of each packet: stream, times, bytes, digest."""
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", *options, "-f", "framemd5", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    return [[word.strip() for word in line.split(",")] for line in lines]


def packets(source: str) -> list[list[Packet]]:
    """The coded packets of the first seconds of each stream, streams in the order of their bytes."""
    found: dict[str, list[Packet]] = {}
    for stream, _, _, _, size, digest in ffmpeg(*SHORT, "-i", source, "-map", "0", "-c", "copy"):
        found.setdefault(stream, []).append((size, digest))
    return sorted(found.values(), key=lambda stream: sum(int(size) for size, _ in stream))


@pytest.mark.parametrize("scheme", ["mmst", "mmsh"])
@again_if_starved
def test_ffmpeg_has_every_packet_as_from_the_file(server: Server, wmvs: Path, scheme: str) -> None:
    expected = packets(str(wmvs / "film.wmv"))
    assert len(expected) == 2 and all(len(stream) > 10 for stream in expected)
    assert packets(f"{scheme}://127.0.0.1:{server.port}/film.wmv") == expected


@pytest.mark.parametrize("scheme", ["mmst", "mmsh"])
@again_if_starved
def test_mplayer_shows_every_picture_as_from_the_file(
    server: Server, wmvs: Path, tmp_path: Path, scheme: str
) -> None:
    expected = pictures(str(wmvs / "film.wmv"), tmp_path)
    assert len(expected) >= FILM_SECONDS * FILM_RATE - 1
    assert pictures(f"{scheme}://127.0.0.1:{server.port}/film.wmv", tmp_path) == expected
