"""A real server process over a folder of small clips."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from starved import GAVE_UP, STARVED, TOO_BUSY
from streamgauge.emu.engine import engine
from streamgauge.errors import CannotRunError
from streamgauge.media import Ladder, prepare_ladder, prepare_presentation
from streamgauge.media.asf import asf_of_files

SECONDS = 4
RATE = 25

VIDEO = ["-f", "lavfi", "-i", f"testsrc2=size=176x144:rate={RATE}:duration={SECONDS}"]
SOUND = ["-f", "lavfi", "-i", f"sine=frequency=440:sample_rate=44100:duration={SECONDS}"]
H264 = ["-c:v", "libx264", "-preset", "veryfast", "-b:v", "240k", "-g", "25"]
LONG = ["-f", "lavfi", "-i", f"testsrc2=size=176x144:rate={RATE}:duration=60"]
CLIPS = {
    "h264.mp4": [*VIDEO, *SOUND, *H264, "-c:a", "aac"],
    "plain.mp4": [*VIDEO, *H264, "-bf", "0"],
    "mpeg4.mov": [*VIDEO, "-c:v", "mpeg4", "-b:v", "240k", "-g", "25"],
    "long.mp4": [*LONG, *H264],
    "mjpeg.mov": [*VIDEO, "-frames:v", "2", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p"],
}


def put_ladder(folder: Path, name: str, seconds: int) -> None:
    """Puts a ladder there by that name, and beside it, in `packaged`, the same as ffmpeg packaged it."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg encodes the ladder, and it is not here")
    rates = (235_000, 560_000)
    ladder = prepare_ladder(
        Ladder(source="testsrc2", rates_bps=rates, duration_s=float(seconds), audio_bps=64_000)
    )
    shutil.copytree(ladder, folder / name)
    shutil.copytree(prepare_presentation(ladder), folder / "packaged")


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Of several processes (pytest-xdist) only the first one's terminal is seen.
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output.update(starved=STARVED, gave_up=GAVE_UP)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    STARVED.extend(output.get("starved", []))
    GAVE_UP.extend(output.get("gave_up", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if STARVED:
        terminalreporter.section(f"{len(STARVED)} times a real player or server was starved, and run again")
        for line in STARVED:
            terminalreporter.line(line)
    if GAVE_UP:
        terminalreporter.section(f"{len(GAVE_UP)} times another's player failed by itself, and was run again")
        for line in GAVE_UP:
            terminalreporter.line(line)
    for report in terminalreporter.stats.get("skipped", ()):
        if TOO_BUSY in str(report.longrepr):
            terminalreporter.line(f"NOT JUDGED, {TOO_BUSY}: {report.nodeid}", red=True)


class Process:
    """A program that says JSON lines."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.said: list[dict[str, Any]] = []
        self._text = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def wait_for(self, event: str, within_s: float = 30.0, count: int = 1) -> dict[str, Any]:
        """The `count`-th line about `event`."""
        until = time.monotonic() + within_s
        while True:
            found = [line for line in self.said if line["event"] == event]
            if len(found) >= count:
                return found[count - 1]
            assert self.listen(until - time.monotonic()), f"no {event}: {self.said[-3:]}"

    def listen(self, within_s: float) -> bool:
        """Reads what it says by then; false if there is nothing."""
        assert self.process.stdout is not None
        file = self.process.stdout.fileno()
        if not select.select([file], [], [], max(0.0, within_s))[0]:
            return False
        more = os.read(file, 65536)
        *lines, self._text = (self._text + more).split(b"\n")
        self.said += [json.loads(line) for line in lines]
        return bool(more)

    def descriptors(self) -> int:
        """How many it has open."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def resident_bytes(self) -> int:
        """Its memory that is its own, files and shared libraries left out."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("RssAnon:")]
        return int(line.split()[1]) * 1024

    def cpu_s(self) -> float:
        """CPU time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, with_: signal.Signals = signal.SIGINT) -> int:
        """Ends it and says its status."""
        self.process.send_signal(with_)
        return self.process.wait(10)


class Server(Process):
    """`streamgauge-engine serve --json`."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        prefix: tuple[str, ...] = (),
        system: str = "darwin",
        listen: str = "127.0.0.1:0",
    ) -> None:
        command = [*prefix, str(engine()), "serve", "--system", system, "--json", "--listen", listen]
        super().__init__([*command, *options, str(folder)])
        self.port = int(self.wait_for("ready")["port"])


@pytest.fixture(scope="session", autouse=True)
def engine_is_built() -> None:
    """All of this needs it, and so Linux."""
    try:
        engine()
    except CannotRunError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def clips() -> Iterator[Path]:
    """A folder of clips."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg makes the clips, and it is not here")
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-serve-"))
    folder.chmod(0o755)
    for name, options in CLIPS.items():
        command = ["ffmpeg", "-nostdin", "-loglevel", "error", *options, "-shortest", str(folder / name)]
        subprocess.run(command, check=True)
    yield folder
    shutil.rmtree(folder)


FILM_SECONDS, FILM_RATE = 4, 15
LEVELS = {"40k.rm": "40k", "200k.rm": "200k"}


def put_film(file: Path, seconds: int, rate: str) -> None:
    """Writes pictures of that rate, a key frame each 2 s, with sound of 32 kbit/s."""
    pictures = ["-f", "lavfi", "-i", f"testsrc=size=176x144:rate={FILM_RATE}"]
    sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100"]
    coded = ["-t", str(seconds), "-c:v", "rv20", "-b:v", rate, "-g", str(2 * FILM_RATE)]
    coded += ["-c:a", "ac3", "-b:a", "32k", str(file)]
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", *pictures, *sound, *coded], check=True)


@pytest.fixture(scope="session")
def films() -> Iterator[Path]:
    """RealMedia: a film, the same cut short, two of several rates of which one is long, and what is none."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg makes the films, and it is not here")
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-serve-"))
    folder.chmod(0o755)
    film = folder / "film.rm"
    put_film(film, FILM_SECONDS, "150k")
    (folder / "cut.rm").write_bytes(film.read_bytes()[: film.stat().st_size // 2])
    (folder / "none.rm").write_bytes(b"RIFF" * 100)
    (folder / "notes.txt").write_text("nothing to play")
    for name, seconds in (("levels.rm", FILM_SECONDS), ("long.rm", 60)):
        (folder / name).mkdir()
        for level, rate in LEVELS.items():
            put_film(folder / name / level, seconds, rate)
    (folder / "empty.rm").mkdir()
    yield folder
    shutil.rmtree(folder)


WMV_RATES = ("40k", "90k", "200k")


def put_wmv(file: Path, seconds: int, rate: str, *options: str) -> None:
    """Writes pictures of that rate as Windows Media, a key frame each 2 s, with sound of 32 kbit/s."""
    pictures = ["-f", "lavfi", "-i", f"testsrc=size=176x144:rate={FILM_RATE}"]
    sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100"]
    coded = ["-t", str(seconds), "-c:v", "wmv2", "-b:v", rate, "-g", str(2 * FILM_RATE)]
    coded += ["-c:a", "wmav2", "-b:a", "32k", *options, str(file)]
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", *pictures, *sound, *coded], check=True)


@pytest.fixture(scope="session")
def wmvs() -> Iterator[Path]:
    """Windows Media: a film, the same cut short and broken, two files of several rates of which one is long,
    the encodings of each as a folder, sound alone, and what is none."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg makes the films, and it is not here")
    folder = Path(tempfile.mkdtemp(prefix="streamgauge-serve-"))
    folder.chmod(0o755)
    film = folder / "film.wmv"
    put_wmv(film, FILM_SECONDS, "150k")
    whole = film.read_bytes()
    (folder / "cut.wmv").write_bytes(whole[: len(whole) // 2])
    (folder / "broken.wmv").write_bytes(whole[:8_000] + b"\xff" * 4_000 + whole[12_000:])
    (folder / "head.wmv").write_bytes(whole[:300])
    (folder / "none.wmv").write_bytes(b"RIFF" * 100)
    (folder / "notes.txt").write_text("nothing to play")
    for name, seconds in (("levels", FILM_SECONDS), ("long", 60)):
        encodings = folder / f"{name}-files.wmv"
        encodings.mkdir()
        for rate in WMV_RATES:
            put_wmv(encodings / f"{rate}.wmv", seconds, rate)
        levels = [encodings / f"{rate}.wmv" for rate in WMV_RATES]
        (folder / f"{name}.wmv").write_bytes(asf_of_files(levels))
    put_wmv(folder / "sound.wma", FILM_SECONDS, "40k", "-vn", "-f", "asf")
    (folder / "empty.wmv").mkdir()
    yield folder
    shutil.rmtree(folder)


Serve = Callable[..., Server]


@pytest.fixture
def serve(clips: Path) -> Iterator[Serve]:
    """Starts servers over the clips, and ends them."""
    servers: list[Server] = []

    def start(*options: str, folder: Path = clips) -> Server:
        servers.append(Server(folder, *options))
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()
