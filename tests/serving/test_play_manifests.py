"""`streamgauge play` on manifests as packagers write them: what is played, refused, or left out by name."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from starved import again_if_starved
from streamgauge.emu.engine import engine

pytestmark = pytest.mark.emu

SECONDS = 6
RATE = 25

MPD = '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" {}>\n{}\n</MPD>'
VIDEO = '<AdaptationSet contentType="video">\n{}<SegmentTemplate initialization="v-init.mp4" {}'
ONE = '<Representation id="v" bandwidth="300000"/></AdaptationSet>'
BY_NUMBER = VIDEO.format("", 'media="v-$Number$.m4s" duration="1"/>') + ONE
SOUND = (
    '<AdaptationSet contentType="audio" lang="{}">{}<SegmentTemplate initialization="a-init.mp4" '
    'media="a-$Number$.m4s" duration="1"/><Representation id="a" bandwidth="48000"/></AdaptationSet>'
)
PROTECTED = '<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc"/>\n'
TRICK = '<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>'
DUB = '<Role schemeIdUri="urn:mpeg:dash:role:2011" value="dub"/>'


def timeline(attributes: str, times: str) -> str:
    template = VIDEO.format("", f'media="v-$Number$.m4s" timescale="1000" {attributes}>')
    return f"{template}<SegmentTimeline>{times}</SegmentTimeline></SegmentTemplate>{ONE}"


def media(*lines: str, kind: str = "v", count: int = SECONDS) -> str:
    """A media playlist, with these lines behind its initialization."""
    segments = [f"#EXTINF:1.0,\n{kind}-{number}.m4s" for number in range(1, count + 1)]
    head = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", f'#EXT-X-MAP:URI="{kind}-init.mp4"']
    return "\n".join([*head, *lines, *segments, "#EXT-X-ENDLIST", ""])


KEY = '#EXT-X-KEY:METHOD={},URI="key.bin"'
RENDITIONS = """#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,URI="en.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Commentary, director's",LANGUAGE="en",URI="com.m3u8"
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="x",URI="s.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=300000,AUDIO="a"
x.m3u8
"""
TWO_MAPS = """#EXTM3U
#EXT-X-TARGETDURATION:1
#EXT-X-MAP:URI="v-init.mp4"
#EXTINF:1.0,
v-1.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="ad-v-init.mp4"
#EXTINF:1.0,
v-2.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="v-init.mp4"
#EXTINF:1.0,
v-3.m4s
#EXT-X-ENDLIST
"""


@dataclass
class Case:
    """A presentation: its manifests, the first of which is played, and what becomes of it."""

    texts: dict[str, str]
    status: int = 0
    frames: int | None = None
    says: str = ""
    """Stands in the error."""
    left_out: str = ""
    """Stands in the list of what is not played."""
    asked: tuple[str, ...] = ()
    """Among what is asked for, in this order."""
    not_asked: tuple[str, ...] = ()


def one(text: str, name: str = "x.mpd", **expected: Any) -> Case:
    return Case({name: text}, **expected)


def whole(attributes: str, period: str, **expected: Any) -> Case:
    return one(MPD.format(attributes, period), **expected)


CASES = {
    "aes-128": one(
        media(KEY.format("AES-128")),
        "x.m3u8",
        status=3,
        says="line 4: segments from line 5 on are encrypted with AES-128",
    ),
    "sample-aes-of-the-only-variant": Case(
        {
            "m.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000\nx.m3u8\n",
            "x.m3u8": media(KEY.format("SAMPLE-AES")),
        },
        status=3,
        says="x.m3u8: line 4: segments from line 5 on are encrypted with SAMPLE-AES",
    ),
    "session-key": one(
        '#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES-CTR,URI="k"\n#EXT-X-STREAM-INF:BANDWIDTH=3\nx.m3u8\n',
        "m.m3u8",
        status=3,
        says="line 2: the variants are encrypted with SAMPLE-AES-CTR",
    ),
    "key-none": one(media("#EXT-X-KEY:METHOD=NONE", count=2), "x.m3u8", frames=50),
    "content-protection": whole(
        'mediaPresentationDuration="PT6S"',
        f"<Period>{BY_NUMBER.replace('<SegmentTemplate', PROTECTED + '<SegmentTemplate', 1)}</Period>",
        status=3,
        says="line 3: pictures of line 2: encrypted with cenc",
    ),
    "only-the-sound-is-protected": whole(
        'mediaPresentationDuration="PT2S"',
        f"<Period>{BY_NUMBER}\n{SOUND.format('en', PROTECTED)}</Period>",
        frames=50,
        left_out="sound of line 4 (en): encrypted with cenc",
        not_asked=("a-1.m4s",),
    ),
    "encrypted-by-its-initialization": whole(
        'mediaPresentationDuration="PT6S"',
        f"<Period>{BY_NUMBER.replace('v-init', 'encrypted-v-init')}</Period>",
        status=3,
        says="encrypted-v-init.mp4: its media are encrypted with an unnamed scheme",
    ),
    "zero-years": whole(
        'mediaPresentationDuration="P0Y0M0DT0H0M2.000S"',
        f'<Period start="P0Y0M0DT0H0M0.000S">{BY_NUMBER}</Period>',
        frames=50,
    ),
    "a-month": whole(
        'mediaPresentationDuration="P1M"',
        f"<Period>{BY_NUMBER}</Period>",
        status=3,
        says="years and months must be 0",
    ),
    "timeline-past-the-period": whole(
        "",
        f"""<Period duration="PT3S">{timeline("", '<S t="0" d="1000" r="9"/>')}</Period>""",
        frames=75,
        asked=("v-3.m4s",),
        not_asked=("v-4.m4s",),
    ),
    "numbers-past-the-period": whole(
        "", f'<Period duration="PT2.4S">{BY_NUMBER}</Period>', frames=60, not_asked=("v-4.m4s",)
    ),
    "offset-inside-a-segment": whole(
        'mediaPresentationDuration="PT2.5S"',
        f"""<Period>{timeline('presentationTimeOffset="10500"', '<S t="10000" d="1000" r="5"/>')}</Period>""",
        frames=62,
        asked=("v-1.m4s", "v-2.m4s", "v-3.m4s"),
        not_asked=("v-4.m4s",),
    ),
    "an-empty-timeline": whole(
        'mediaPresentationDuration="PT6S"',
        f"<Period>{timeline('', '')}</Period>",
        status=3,
        says="no segment of it lies in its period",
    ),
    "the-default-rendition": Case(
        {
            "m.m3u8": RENDITIONS,
            "x.m3u8": media(count=2),
            "en.m3u8": media(kind="a", count=2),
            "com.m3u8": media(kind="a", count=2),
        },
        frames=50,
        asked=("en.m3u8",),
        not_asked=("com.m3u8", "s.m3u8"),
        left_out="sound of line 3 (en, Commentary, director",
    ),
    "a-size-with-decimals": Case(
        {
            "m.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000.0,RESOLUTION=320.0x180.0\nx.m3u8\n",
            "x.m3u8": media(count=2),
        },
        frames=50,
    ),
    "two-initializations": one(
        TWO_MAPS, "x.m3u8", frames=75, asked=("v-init.mp4", "v-1.m4s", "ad-v-init.mp4", "v-2.m4s", "v-3.m4s")
    ),
    "three-periods": whole(
        "",
        f'<Period duration="PT2S">{BY_NUMBER}{SOUND.format("en", "")}</Period>'
        f'<Period id="ad" duration="PT1S">{BY_NUMBER.replace("v-init", "ad-v-init")}</Period>'
        f'<Period duration="PT2S">{BY_NUMBER}{SOUND.format("en", "")}</Period>',
        frames=125,
        asked=("v-init.mp4", "v-2.m4s", "ad-v-init.mp4", "v-1.m4s", "v-2.m4s"),
    ),
    "a-period-elsewhere": whole(
        'xmlns:xlink="http://www.w3.org/1999/xlink"',
        f'<Period duration="PT2S">{BY_NUMBER}</Period>\n'
        '<Period xlink:href="http://ads.example/" xlink:actuate="onLoad"/>',
        frames=50,
        left_out="it is in another file (xlink:href http://ads.example/)",
    ),
    "a-trick-mode-first": whole(
        'mediaPresentationDuration="PT2S"',
        "<Period>"
        + BY_NUMBER.replace("v-", "trick-v-").replace(
            "<SegmentTemplate",
            f"{TRICK}<SegmentTemplate",
        )
        + f"\n{BY_NUMBER}{SOUND.format('fr', DUB)}{SOUND.format('en', '')}</Period>",
        frames=50,
        left_out="pictures of a trick mode",
        not_asked=("trick-v-1.m4s",),
    ),
    "the-second-base-url": whole(
        'mediaPresentationDuration="PT2S"',
        f"<BaseURL>nowhere/</BaseURL><BaseURL>./</BaseURL><Period>{BY_NUMBER}</Period>",
        frames=50,
        left_out="nowhere/: it failed, another copy is asked for",
    ),
    "the-second-variant": Case(
        {
            "m.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=300000\nnowhere/x.m3u8\n"
            "#EXT-X-STREAM-INF:BANDWIDTH=300000\nx.m3u8\n",
            "x.m3u8": media(count=2),
        },
        frames=50,
        left_out="nowhere/x.m3u8: it failed",
    ),
}


class Origin(ThreadingHTTPServer):
    """Each case's manifests in a folder of its name, and the media in every folder."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.asked: dict[str, list[str]] = {name: [] for name in CASES}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Origin

    def do_GET(self) -> None:
        _, case, name = self.path.split("/", 2)
        self.server.asked[case].append(name)
        text = CASES[case].texts.get(name)
        found = text.encode() if text is not None else self.server.files.get(name)
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *_: object) -> None:
        pass


def packaged(folder: Path) -> dict[str, bytes]:
    """Pictures and sound in segments of a second."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg packages the media, and it is not here")
    run = ["ffmpeg", "-nostdin", "-loglevel", "error"]
    inputs = ["-f", "lavfi", "-i", f"testsrc2=s=320x180:r={RATE}", "-f", "lavfi", "-i", "sine=f=440:r=48000"]
    coded = ["-t", str(SECONDS), "-c:v", "libx264", "-preset", "ultrafast", "-g", str(RATE)]
    coded += ["-sc_threshold", "0", "-c:a", "aac", str(folder / "film.mp4")]
    subprocess.run([*run, *inputs, *coded], check=True)
    for kind in "va":
        form = ["-map", f"0:{kind}", "-c", "copy", "-f", "dash", "-seg_duration", "1", "-use_timeline", "0"]
        form += ["-init_seg_name", f"{kind}-init.mp4", "-media_seg_name", f"{kind}-$Number$.m4s"]
        subprocess.run([*run, "-i", str(folder / "film.mp4"), *form, str(folder / f"{kind}.mpd")], check=True)
    files = {path.name: path.read_bytes() for path in folder.glob("[va]-*")}
    files["ad-v-init.mp4"] = files["v-init.mp4"]
    # Of another sample entry the boxes stay as long.
    files["encrypted-v-init.mp4"] = files["v-init.mp4"].replace(
        b"avc1\0\0\0\0\0\0\0\1", b"encv\0\0\0\0\0\0\0\1"
    )
    return files


@dataclass
class Played:
    status: int
    report: dict[str, Any]
    error: str
    asked: list[str]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    with Origin(packaged(tmp_path_factory.mktemp("media"))) as origin:
        serving = threading.Thread(target=origin.serve_forever)
        serving.start()
        yield origin
        origin.shutdown()
        serving.join()


def play(origin: Origin, name: str) -> Played:
    origin.asked[name].clear()
    url = f"http://127.0.0.1:{origin.server_port}/{name}/{next(iter(CASES[name].texts))}"
    command = [str(engine()), "play", "--json", "--duration", "20", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    report = json.loads(lines[-1]) if lines else {}
    return Played(done.returncode, report, done.stderr + done.stdout, list(origin.asked[name]))


@pytest.fixture(scope="module")
def played(origin: Origin) -> dict[str, Played]:
    """All of them, side by side: each takes as long as it plays."""
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(CASES, pool.map(lambda name: play(origin, name), CASES), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_a_manifest(origin: Origin, played: dict[str, Played], name: str) -> None:
    @again_if_starved
    def judged() -> None:
        found = played.pop(name, None) or play(origin, name)
        case = CASES[name]
        assert found.status == case.status, found
        if case.status != 0:
            assert case.says in found.error, found
            return
        assert found.report["outcome"] == "played to the end", found
        assert found.report["frames_shown"] == case.frames, found
        left_out = "; ".join(found.report["left_out"])
        assert case.left_out in left_out and bool(case.left_out) == bool(left_out), found
        rest = iter(found.asked)
        assert all(wanted in rest for wanted in case.asked), found.asked
        assert not set(case.not_asked) & set(found.asked), found.asked

    judged()


def test_what_is_left_out_is_told_in_words(origin: Origin) -> None:
    url = f"http://127.0.0.1:{origin.server_port}/only-the-sound-is-protected/x.mpd"
    done = subprocess.run(
        [str(engine()), "play", url], capture_output=True, text=True, timeout=60, check=True
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("left out: ")]
    assert line == "left out: sound of line 4 (en): encrypted with cenc (ContentProtection, line 4)"
