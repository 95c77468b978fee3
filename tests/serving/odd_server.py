"""A web server that is odd in one way, and what is put on it: short media as ffmpeg makes them."""

from __future__ import annotations

import contextlib
import gzip
import socketserver
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SECONDS = 1.2
RATE = 25
FRAMES = 30
SEGMENTS = 3

PICTURES = ["-f", "lavfi", "-i", f"testsrc2=s=160x90:r={RATE}"]
SOUND = ["-f", "lavfi", "-i", "sine=440:r=48000"]
CODED = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "10", "-keyint_min", "10", "-sc_threshold", "0"]
CODED += ["-b:v", "200k", "-c:a", "aac", "-b:a", "48k"]
PLAYLIST = ["-f", "hls", "-hls_time", "0.4", "-hls_playlist_type", "vod"]
HEAD = (
    '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
    f'mediaPresentationDuration="PT{SECONDS}S" minBufferTime="PT1S" '
    'profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period>'
)


def mpd(kind: str, track: str) -> str:
    """A presentation of that one track."""
    return (
        f'{HEAD}<AdaptationSet contentType="{kind}" mimeType="{kind}/mp4">'
        '<SegmentTemplate timescale="10" duration="4" startNumber="1" '
        f'initialization="{track}-init.mp4" media="{track}-$Number$.m4s"/>'
        f'<Representation id="{track}" bandwidth="200000"/></AdaptationSet></Period></MPD>\n'
    )


def _ffmpeg(folder: Path, *arguments: str) -> None:
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", *arguments]
    subprocess.run(command, cwd=folder, check=True)


def put_media(folder: Path) -> None:
    """Writes DASH, HLS of several containers, and files for progressive download."""
    length = ["-t", str(SECONDS)]
    _ffmpeg(folder, *PICTURES, *SOUND, *length, *CODED, "-movflags", "+faststart", "clip.mp4")
    for track in ("v", "a"):
        dash = ["-f", "dash", "-seg_duration", "0.4", "-use_timeline", "0", "-use_template", "1"]
        names = ["-init_seg_name", f"{track}-init.mp4", "-media_seg_name", f"{track}-$Number$.m4s"]
        _ffmpeg(folder, "-i", "clip.mp4", "-map", f"0:{track}", "-c", "copy", *dash, *names, "made.mpd")
    (folder / "x.mpd").write_text(mpd("video", "v"))
    (folder / "sound.mpd").write_text(mpd("audio", "a"))
    entries = "".join(f"#EXTINF:0.4,\nv-{number}.m4s\n" for number in range(1, SEGMENTS + 1))
    head = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n#EXT-X-PLAYLIST-TYPE:VOD\n"
    (folder / "alone.m3u8").write_text(f'{head}#EXT-X-MAP:URI="v-init.mp4"\n{entries}#EXT-X-ENDLIST\n')
    _ffmpeg(folder, "-i", "clip.mp4", "-c", "copy", *PLAYLIST, "ts.m3u8")
    _ffmpeg(folder, "-i", "clip.mp4", "-vn", "-c", "copy", *PLAYLIST, "tssound.m3u8")
    fragments = ["-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", "muxed-init.mp4"]
    _ffmpeg(folder, "-i", "clip.mp4", "-c", "copy", *PLAYLIST, *fragments, "muxed.m3u8")
    packed = [
        "-f",
        "segment",
        "-segment_time",
        "0.4",
        "-segment_format",
        "adts",
        "-segment_list",
        "packed.m3u8",
    ]
    _ffmpeg(folder, "-i", "clip.mp4", "-vn", "-c", "copy", *packed, "packed%d.aac")
    _ffmpeg(
        folder, *PICTURES, *length, *CODED, "-x264-params", "bframes=2:b-adapt=0", *PLAYLIST, "reordered.m3u8"
    )
    _ffmpeg(folder, *PICTURES, *length, "-c:v", "mpeg2video", "-g", "10", "-bf", "2", *PLAYLIST, "mpeg2.m3u8")
    hevc = [
        "-c:v",
        "libx265",
        "-preset",
        "ultrafast",
        "-x265-params",
        "keyint=10:min-keyint=10:log-level=error",
    ]
    _ffmpeg(folder, *PICTURES, *length, *hevc, *PLAYLIST, "hevc.m3u8")
    _ffmpeg(folder, "-i", "clip.mp4", "-vn", "-c", "copy", "-movflags", "+faststart", "sound.mp4")
    _ffmpeg(folder, "-i", "ts.m3u8", "-c", "copy", "-f", "mpegts", "-mpegts_m2ts_mode", "1", "whole.m2ts")
    (folder / "m2ts.m3u8").write_text(f"{head}#EXTINF:{SECONDS},\nwhole.m2ts\n#EXT-X-ENDLIST\n")


class Asked(NamedTuple):
    """A request: its path, its head's fields by lower-case names, and earlier requests for the path."""

    path: str
    fields: dict[str, str]
    times: int

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1].split("?")[0]

    @property
    def is_manifest(self) -> bool:
        return self.name.endswith((".mpd", ".m3u8"))


class Answer(NamedTuple):
    """Bytes of an answer; the connection ends behind it, or goes on."""

    data: bytes
    closes: bool = False


def answer(
    body: bytes, status: str = "200 OK", *, version: str = "1.1", closes: bool = False, **fields: str
) -> Answer:
    """An ordinary answer; fields by name, `_` for `-`."""
    named = {"Content_Length": str(len(body)), **fields}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in named.items()]
    head = "\r\n".join([f"HTTP/{version} {status}", *lines, "", ""])
    return Answer(head.encode() + body, closes)


def bare(head: str, body: bytes, closes: bool = True) -> Answer:
    """An answer whose head is given as it is, without the blank line."""
    return Answer(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body, closes)


def redirect(location: str, status: int = 302) -> Answer:
    """An answer that leads elsewhere, with a body that says so."""
    return answer(b"<html>moved</html>", f"{status} Moved", Location=location)


def chunked(body: bytes, size: int = 1000, extension: str = "", trailer: str = "") -> bytes:
    """A body in the chunked coding."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    framed = b"".join(f"{len(part):X}{extension}\r\n".encode() + part + b"\r\n" for part in parts)
    return framed + f"0\r\n{trailer}\r\n".encode()


def gzipped(body: bytes) -> bytes:
    """As gzip."""
    return gzip.compress(body)


def deflated(body: bytes, raw: bool = False) -> bytes:
    """As deflate: in zlib's format, or without it."""
    coder = zlib.compressobj(wbits=-15 if raw else 15)
    return coder.compress(body) + coder.flush()


Answers = Callable[[Asked, bytes | None], Answer]


class OddServer(socketserver.ThreadingTCPServer):
    """Serves a folder; `answers` makes of a request, and of the file that it names, what is sent."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, answers: Answers) -> None:
        self.folder, self.answers = folder, answers
        self.asked: list[Asked] = []
        super().__init__(("127.0.0.1", 0), _Connection)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def give(self, path: str, fields: dict[str, str]) -> Answer:
        """The answer to a request."""
        times = sum(asked.path == path for asked in self.asked)
        asked = Asked(path, fields, times)
        self.asked.append(asked)
        file = self.folder / asked.name
        return self.answers(asked, file.read_bytes() if file.is_file() else None)

    def handle_error(self, *_: object) -> None:
        """Players may leave whenever they like."""


class _Connection(socketserver.StreamRequestHandler):
    server: OddServer

    def handle(self) -> None:
        while line := self.rfile.readline().decode():
            if not line.strip():
                continue
            fields: dict[str, str] = {}
            while field := self.rfile.readline().decode().strip():
                name, _, value = field.partition(":")
                fields[name.lower()] = value.strip()
            given = self.server.give(line.split()[1], fields)
            self.wfile.write(given.data)
            self.wfile.flush()
            if given.closes:
                return


@contextlib.contextmanager
def serving(folder: Path, answers: Answers) -> Iterator[OddServer]:
    """A server that runs meanwhile."""
    with OddServer(folder, answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
