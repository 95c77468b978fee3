"""Our player and consumer with other people's NDN producers."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import put_ladder
from play_ndn import Ndnd, PythonProducer, files, manifest, producing, report
from starved import again_if_starved

pytestmark = pytest.mark.emu

SECONDS = 4
FRAMES = 25 * SECONDS


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ladder as ffmpeg packaged it: files that anybody may have as named content."""
    folder = tmp_path_factory.mktemp("packaged")
    put_ladder(folder, "ladder", SECONDS)
    return folder / "packaged"


@pytest.fixture
def python_producer(packaged: Path) -> Iterator[int]:
    """Its port."""
    pytest.importorskip("ndn", reason="python-ndn is not here")
    with producing(PythonProducer, packaged) as port:
        yield port


@pytest.mark.parametrize("metadata", ["true", "false"])
@again_if_starved
def test_our_player_plays_what_python_ndn_produces(
    python_producer: int, packaged: Path, metadata: str
) -> None:
    address = f"ndn://127.0.0.1:{python_producer}/clip/{manifest(packaged)}"
    said = report(address, f"--set=metadata={metadata}")
    assert said["frames_shown"] == FRAMES and said["interests_expired"] == 0, said


@again_if_starved
def test_our_player_plays_what_ndnd_puts(tmp_path: Path, packaged: Path) -> None:
    with Ndnd(tmp_path) as ndnd:
        running = [ndnd.put(f"/clip/{name}", path) for name, path in files(packaged).items()]
        try:
            wait_for(ndnd.port)
            said = report(f"ndn://127.0.0.1:{ndnd.port}/clip/{manifest(packaged)}")
        finally:
            for one in running:
                one.terminate()
            for one in running:
                one.wait(20)
    assert said["frames_shown"] == FRAMES, said
    assert said["interests"] > 10


def wait_for(port: int) -> None:
    """Until the forwarder takes connections, and producers have told it their names."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    time.sleep(2)
