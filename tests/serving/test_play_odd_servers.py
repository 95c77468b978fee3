"""Our player against servers that are odd in one way each: it plays, or ends with one clear sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from odd_server import (
    FRAMES,
    SECONDS,
    SEGMENTS,
    Answer,
    Answers,
    Asked,
    OddServer,
    answer,
    bare,
    chunked,
    deflated,
    gzipped,
    put_media,
    redirect,
    serving,
)
from streamgauge.emu.engine import engine

pytestmark = pytest.mark.emu

AT_ONCE = 6
"""Sessions at the same time: they wait more than they work."""


def plain(_: Asked, file: bytes | None) -> Answer:
    """As any server answers."""
    return answer(b"", "404 Not Found") if file is None else answer(file)


def to_new(status: int, manifest: bool) -> Answers:
    """Leads everything of the kind to another folder."""

    def give(asked: Asked, file: bytes | None) -> Answer:
        if asked.is_manifest == manifest and not asked.path.startswith("/new/"):
            return redirect(f"/new/{asked.name}", status)
        # Nothing but what stands in the new folder is there, once the manifest is.
        if manifest and not asked.path.startswith("/new/"):
            return answer(b"", "404 Not Found")
        return plain(asked, file)

    return give


Odd = Callable[[Asked, bytes], Answer]


def for_manifest(made: Odd) -> Answers:
    """Odd where a manifest is asked for alone."""
    return lambda asked, file: made(asked, file) if asked.is_manifest and file else plain(asked, file)


def for_file(made: Odd, name: str = "") -> Answers:
    """Odd where anything but a manifest is asked for, or that file alone."""

    def give(asked: Asked, file: bytes | None) -> Answer:
        is_meant = asked.name == name if name else not asked.is_manifest
        return made(asked, file) if is_meant and file else plain(asked, file)

    return give


def coded(body: bytes, coding: str) -> Answer:
    return answer(body, Content_Encoding=coding)


def in_chunks(head: str, body: bytes, **how: Any) -> Answer:
    return bare(f"HTTP/1.1 200 OK\n{head}Transfer-Encoding: chunked", chunked(body, **how), closes=False)


def byte_range(asked: Asked, file: bytes) -> tuple[int, int]:
    """First and last byte that were asked for."""
    given = asked.fields.get("range", "bytes=0-").removeprefix("bytes=")
    first, _, last = given.partition("-")
    return int(first), min(int(last or len(file) - 1), len(file) - 1)


def cut_once(asked: Asked, file: bytes) -> Answer:
    """The first time half of the body, and the end of the connection."""
    whole = answer(file)
    return Answer(whole.data[: -len(file) // 2], closes=True) if asked.times == 0 else whole


def busy_once(asked: Asked, file: bytes) -> Answer:
    return answer(b"", "503 Busy", Retry_After="1") if asked.times == 0 else answer(file)


def resumed(status: str, first: int = 0) -> Odd:
    """Cut at first; what is asked for from there on is refused, or stands `first` bytes beside its place."""

    def give(asked: Asked, file: bytes) -> Answer:
        if asked.times == 0:
            return cut_once(asked, file)
        begin = byte_range(asked, file)[0]
        whole = f"bytes {begin + first}-{len(file) - 1 + first}/{len(file) + first}"
        if status.startswith("416"):
            return answer(b"", status, Content_Range=f"bytes */{len(file)}")
        return answer(file[begin:], status, Content_Range=whole)

    return give


def gone(*_: object) -> Answer:
    return answer(b"", "404 Not Found")


def cut_always(_: Asked, file: bytes) -> Answer:
    """Half of the body that Content-Length promises, each time."""
    return Answer(answer(file).data[: -len(file) // 2], closes=True)


def endless_head(*_: object) -> Answer:
    """Header lines on and on."""
    return Answer(b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 100_000, closes=True)


class Case(NamedTuple):
    """A session: what is asked of which server, and how it ends."""

    name: str
    answers: Answers = plain
    url: str = "x.mpd"
    options: tuple[str, ...] = ()
    status: int = 0
    words: tuple[str, ...] = ()
    reported: dict[str, Any] = {"frames_shown": FRAMES, "shows": "pictures"}  # noqa: RUF012


SOUND = {"frames_shown": 0, "shows": "sound alone", "freezes": None}
NOTHING: dict[str, Any] = {}


def fails(name: str, answers: Answers, *words: str, url: str = "x.mpd", status: int = 3) -> Case:
    return Case(name, answers, url, (), status, words, NOTHING)


CONTAINERS = [
    Case(
        "HLS of MPEG-TS",
        url="ts.m3u8",
        reported={"frames_shown": FRAMES, "segments": SEGMENTS, "left_out": []},
    ),
    Case("pictures out of order", url="reordered.m3u8"),
    Case("H.265 in MPEG-TS", url="hevc.m3u8"),
    Case("MPEG-2 in MPEG-TS", url="mpeg2.m3u8"),
    Case("packets of 192 B", url="m2ts.m3u8"),
    Case("sound alone in MPEG-TS", url="tssound.m3u8", words=("sound alone",), reported=SOUND),
    Case("packed audio", url="packed.m3u8", words=("sound alone",), reported=SOUND),
    Case("sound and pictures in one fragment", url="muxed.m3u8"),
    Case(
        "sound alone in DASH",
        url="sound.mpd",
        words=("played to the end", f"{SEGMENTS} segments came"),
        reported=SOUND,
    ),
    Case("sound alone as a file", url="sound.mp4", words=("played to the end", "0 pictures"), reported=SOUND),
    Case(
        "no declared rate",
        url="alone.m3u8",
        words=("shown at an unknown rate",),
        reported={"frames_shown": FRAMES, "shown_mean_bps": None, "shown_least_bps": None},
    ),
    Case(
        "a container that is not read",
        for_file(lambda _, file: answer(b"\x1a\x45\xdf\xa3\x01\0\0\0" + file[8:])),
        words=("not counted (segment 0: Matroska or WebM)",),
        reported={"frames_shown": None, "frames_late": None, "shows": "uncounted"},
    ),
]

REDIRECTS = [
    *[Case(f"manifest, {status}", to_new(status, manifest=True)) for status in (301, 302, 303, 307, 308)],
    Case(
        "segments", to_new(302, manifest=False), reported={"frames_shown": FRAMES, "redirects": SEGMENTS + 1}
    ),
    Case("segments of MPEG-TS, 307", to_new(307, manifest=False), url="ts.m3u8"),
    Case(
        "a file",
        to_new(301, manifest=False),
        url="clip.mp4",
        reported={"frames_shown": FRAMES, "redirects": 1},
    ),
    Case(
        "without a body length",
        for_manifest(
            lambda asked, file: (
                answer(file)
                if asked.path.startswith("/new")
                else bare("HTTP/1.0 302 Found\nLocation: /new/x.mpd", b"moved")
            )
        ),
    ),
    Case(
        "another host that is allowed",
        for_manifest(
            lambda asked, file: (
                answer(file)
                if "localhost" in asked.fields["host"]
                else redirect(f"http://localhost:{asked.fields['host'].split(':')[1]}/x.mpd")
            )
        ),
        options=("--allow-host", "localhost"),
    ),
    fails(
        "another host",
        lambda *_: redirect("http://localhost:1/x.mpd"),
        "allow it with --allow-host localhost",
    ),
    fails(
        "another host for a file",
        lambda *_: redirect("http://localhost:1/x.mp4"),
        "--allow-host localhost",
        url="clip.mp4",
    ),
    fails("https", lambda *_: redirect("https://127.0.0.1/x.mpd"), "needs TLS"),
    fails(
        "in a circle", lambda asked, _: redirect("/b" if asked.path == "/a.mpd" else "/a.mpd"), "in a circle"
    ),
    fails("on and on", lambda asked, _: redirect(f"{asked.path}x.mpd"), "more than 10 redirections"),
    fails("no Location", lambda *_: answer(b"", "302 Found"), "names no Location"),
]

CODINGS = [
    Case("gzip", for_manifest(lambda _, file: coded(gzipped(file), "gzip"))),
    Case(
        "gzip in chunks",
        for_manifest(lambda _, file: in_chunks("Content-Encoding: gzip\n", gzipped(file), size=50)),
    ),
    Case("deflate", for_manifest(lambda _, file: coded(deflated(file), "deflate"))),
    Case(
        "deflate without zlib's frame",
        for_manifest(lambda _, file: coded(deflated(file, raw=True), "deflate")),
    ),
    Case("segments as gzip", for_file(lambda _, file: coded(gzipped(file), "gzip"))),
    Case("a file as gzip", for_file(lambda _, file: coded(gzipped(file), "gzip")), url="clip.mp4"),
    fails("br", for_manifest(lambda _, file: coded(file, "br")), "Content-Encoding: br is not read"),
    fails(
        "zstd of a file",
        for_file(lambda _, file: coded(file, "zstd")),
        "Content-Encoding: zstd is not read",
        url="clip.mp4",
    ),
    fails("gzip that is none", for_manifest(lambda _, file: coded(file, "gzip")), "the body is not that"),
    fails(
        "a bomb", for_manifest(lambda *_: coded(gzipped(bytes(100 << 20)), "gzip")), "inflates to more than"
    ),
    Case(
        "asked for as it is",
        lambda asked, file: plain(asked, file if asked.fields.get("accept-encoding") == "identity" else None),
    ),
]

ODD = [
    Case("no Content-Length", lambda _, file: bare("HTTP/1.1 200 OK", file or b"")),
    Case("HTTP/1.0", lambda _, file: answer(file or b"", version="1.0", closes=True)),
    Case(
        "extensions and trailers of chunks",
        lambda _, file: in_chunks("", file or b"", extension=';a="b;c"', trailer="X-Sum: 1\r\n"),
    ),
    Case(
        "lower case and folded lines",
        lambda _, file: bare(
            f"HTTP/1.1 200 OK\nx-long: one\n two\n\tthree\ncontent-length:{len(file or b'')}",
            file or b"",
            closes=False,
        ),
    ),
    Case("closed early between requests", lambda _, file: answer(file or b"", closes=True)),
    Case(
        "206 without Range",
        lambda _, file: answer(
            file or b"",
            "206 Partial Content",
            Content_Range=f"bytes 0-{len(file or b'') - 1}/{len(file or b'')}",
        ),
    ),
    Case(
        "a segment cut once",
        for_file(cut_once, "v-2.m4s"),
        reported={"frames_shown": FRAMES, "requests_failed": 1},
    ),
    Case(
        "busy once, with Retry-After",
        for_file(busy_once, "v-1.m4s"),
        reported={"frames_shown": FRAMES, "requests_failed": 1},
    ),
    Case(
        "a file cut once",
        for_file(
            lambda asked, file: (
                cut_once(asked, file)
                if asked.times == 0
                else answer(
                    file[byte_range(asked, file)[0] :],
                    "206 Partial Content",
                    Content_Range=f"bytes {byte_range(asked, file)[0]}-{len(file) - 1}/{len(file)}",
                )
            )
        ),
        url="clip.mp4",
    ),
    Case("a file from a server that takes no ranges", for_file(cut_once), url="clip.mp4"),
    fails(
        "206 of a part",
        lambda _, file: answer((file or b"")[:9], "206 Partial Content", Content_Range="bytes 0-8/999"),
        "with a part of the requested resource",
    ),
    fails(
        "no HTTP at all",
        lambda *_: Answer(b"SSH-2.0-OpenSSH\r\n", closes=True),
        "no HTTP",
        status=3,
        url="clip.mp4",
    ),
]

SKIPPED = {"frames_shown": FRAMES - FRAMES // SEGMENTS, "segments_skipped": 1, "requests_failed": 4}


def cut_short(name: str, answers: Answers, *words: str, url: str = "x.mpd") -> Case:
    """A session that ends early, and is told to have."""
    return fails(name, answers, "ended early", *words, url=url, status=1)


BROKEN = [
    cut_short(
        "416 where a file is resumed", for_file(resumed("416 Range Not Satisfiable")), "416", url="clip.mp4"
    ),
    cut_short(
        "another range than was asked for",
        for_file(resumed("206 Partial Content", 7)),
        "asked for from byte",
        url="clip.mp4",
    ),
    cut_short("a file shorter than its Content-Length", for_file(cut_always), url="clip.mp4"),
    Case("404 of one segment", for_file(gone, "v-2.m4s"), words=("1 skipped",), reported=SKIPPED),
    Case("a segment shorter than its Content-Length", for_file(cut_always, "v-2.m4s"), reported=SKIPPED),
    cut_short("404 of every segment", for_file(gone), "404 Not Found"),
    cut_short("endless headers", endless_head, "a head of more than"),
    fails("endless headers of a file", endless_head, "a head of more than", url="clip.mp4"),
    cut_short("endless headers of segments", for_file(endless_head), "a head of more than"),
]

CASES = {
    f"{kind}: {case.name}": case
    for kind, cases in (
        ("containers", CONTAINERS),
        ("redirections", REDIRECTS),
        ("codings", CODINGS),
        ("odd servers", ODD),
        ("broken answers", BROKEN),
    )
    for case in cases
}


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of short media."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg makes the media, and it is not here")
    folder = tmp_path_factory.mktemp("odd")
    put_media(folder)
    return folder


Done = subprocess.CompletedProcess[str]


def play(server: OddServer, url: str, *options: str) -> Done:
    """A session with the server."""
    command = [str(engine()), "play", *options, f"http://127.0.0.1:{server.port}/{url}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def both(media: Path, case: Case) -> tuple[Done, Done | None]:
    """A session's words, and the same one's JSON where it is looked at."""
    with serving(media, case.answers) as server:
        words = play(server, case.url, *case.options) if case.words or not case.reported else None
    if not case.reported and words:
        return words, None
    with serving(media, case.answers) as server:
        told = play(server, case.url, "--json", *case.options)
    return words or told, told


@pytest.fixture(scope="module")
def sessions(media: Path) -> Iterator[dict[str, Future[tuple[Done, Done | None]]]]:
    """All of them, several at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(both, media, case) for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_it_plays_or_says_why_not(sessions: dict[str, Future[tuple[Done, Done | None]]], name: str) -> None:
    case = CASES[name]
    words, told = sessions[name].result()
    said = words.stdout + words.stderr
    assert words.returncode == case.status, said
    for expected in case.words:
        assert expected in said, said
    if told is not None:
        report = json.loads(told.stdout.splitlines()[-1])
        assert report["played"] and report["outcome"] == "played to the end", report
        for field, expected in case.reported.items():
            assert report[field] == expected, (field, report)


def test_a_declared_rate_is_told_beside_the_measured_one(media: Path) -> None:
    with serving(media, plain) as server:
        report = json.loads(play(server, "alone.m3u8", "--json").stdout)
        declared = json.loads(play(server, "x.mpd", "--json").stdout)
    files = [media / f"v-{number}.m4s" for number in range(1, SEGMENTS + 1)]
    measured = sum(file.stat().st_size for file in files) * 8 / SECONDS
    assert report["shown_measured_bps"] == pytest.approx(measured)
    assert declared["shown_mean_bps"] == 200_000 and declared["shown_measured_bps"] == pytest.approx(measured)
