"""``clip`` and ``ladder``: what they print, what they leave, and what they refuse."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))


@needs_ffmpeg
def test_a_clip_is_said_as_what_its_file_holds(cli: Cli) -> None:
    ran = cli("clip", "testsrc2-200k", "a.mp4", "--duration", "2 s", "--audio", "32 kbit/s")
    assert ran.status == 0, ran.err
    assert ran.out.startswith("a.mp4: testsrc2 at 200 kbit/s, 2 s, 352x288, 32 kbit/s of it sound; ")
    ran = cli("clip", "testsrc2-200k", "a.mp4", "--duration", "2 s", "--audio", "32 kbit/s", "--json")
    said = json.loads(ran.out)
    assert said["schema"] == "streamgauge.content/1"
    video, audio = (track["encodings"][0] for track in said["tracks"])
    assert (video["frames"], video["key_frames"], video["bit_rate_bps"]) == (50, 1, 168_000)
    assert (video["size"], audio["codec"], len(said["digest"])) == ([352, 288], "aac", 32)


@needs_ffmpeg
def test_a_ladder_is_written_whole_and_said(cli: Cli) -> None:
    asked = ("ladder", "testsrc2", "--rates", "100k,200 kbit/s", "--duration", "4s", "--segment", "1 s")
    ran = cli(*asked, "--out", "videos/mine")
    assert ran.status == 0, ran.err
    assert "key frames align: 4 segments; videos/mine/content.json says where" in ran.out
    assert sorted(file.name for file in Path("videos/mine").iterdir()) == [
        "100k.mp4",
        "200k.mp4",
        "content.json",
    ]
    assert sorted(file.name for file in Path("videos").iterdir()) == ["mine"]
    said = json.loads(cli(*asked, "--json").out)
    assert [row["segments"] for row in said["tracks"][0]["encodings"]] == [4, 4]
    files = [str(Path("videos/mine") / name) for name in ("100k.mp4", "200k.mp4")]
    taken = json.loads(cli("ladder", *files, "--json", "--out", "again").out)
    assert [row["name"] for row in taken["tracks"][0]["encodings"]] == files
    described = json.loads(Path("again/content.json").read_text())
    for row in described["tracks"][0]["encodings"]:
        assert (Path("again") / row["file"]).read_bytes() == Path(row["name"]).read_bytes()


@needs_ffmpeg
def test_a_ladder_is_one_file_of_windows_media_where_its_name_says_so(cli: Cli) -> None:
    asked = ("ladder", "testsrc2", "--rates", "50k,100k", "--duration", "2s", "--audio", "24kbit/s")
    ran = cli(*asked, "--out", "films/film.wmv")
    assert ran.status == 0, ran.err
    assert ran.out.startswith("films/film.wmv: 2")
    rows = [line.split()[:3] for line in ran.out.splitlines()[2:]]
    assert rows == [["1", "audio,", "wmav2"], ["2", "video,", "wmv2"], ["3", "video,", "wmv2"]]
    assert [file.name for file in Path("films").iterdir()] == ["film.wmv"]
    again = cli(*asked, "--out", "films/film.wmv", "--json")
    said = json.loads(again.out)
    assert said["file"] == "films/film.wmv" and len(said["tracks"]) == 3
    own = cli("ladder", "films/film.wmv", "films/film.wmv", "--out", "films/twice.WMV")
    assert own.status == 0 and len(own.out.splitlines()) == 2 + 5
    other = cli(*asked[:-1], "32kbit/s", "--out", "films/film.wmv")
    assert other.status == 3 and "films/film.wmv is there already, with other content" in other.err
    cut = cli("ladder", "films/film.wmv", "films/film.wmv", "--segment", "1s", "--out", "x.wmv")
    assert cut.status == 3 and "--segment places key frames" in cut.err
    quiet = cli(*asked[:-1], "16kbit/s", "--out", "quiet.wmv")
    assert quiet.status == 3 and "24 kbit/s of sound or more" in quiet.err and not Path("quiet.wmv").exists()


@needs_ffmpeg
def test_a_folder_that_holds_something_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    asked = ("ladder", "testsrc2", "--rates", "100k,200k", "--duration", "1s", "--segment", "1s")
    ran = cli(*asked, "--out", "mine")
    assert ran.status == 3
    assert ran.err.splitlines()[-1] == (
        "streamgauge: mine is there already, and not empty; name another folder."
    )
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["letter.txt"]


REFUSED = [
    (("testsrc2",), "one source is no ladder (give its --rates 235k,560k, or name two files or more)"),
    (("testsrc2", "bikes", "--rates", "1M,2M"), "2 sources cannot be encoded as one ladder"),
    (("testsrc2", "--rates", "235,560"), "--rates: 235 has no unit; expected a bit rate"),
    (("testsrc2", "--rates", "2M,1M"), "1000k stands after 2000k; write the rates from the lowest up"),
    (("testsrc2", "--rates", "1M"), "it has 1 rate; give two or more, such as 235k,560k"),
    (("testsrc2", "--rates", "1M,2M", "--segment", "2"), "--segment: 2 has no unit"),
    (("testsrc2", "--rates", "1M,2M", "--duration", "0s"), "must be above zero"),
    (("nosuch.mp4", "--rates", "1M,2M"), "nosuch.mp4: no such video file"),
    (("none.mp4", "other.mp4"), "none.mp4: no such media file"),
    (("a.mp4", "b.mp4", "--jobs", "2"), "--jobs says how to encode, and files without --rates are taken as"),
    (
        ("a.mp4", "b.mp4", "--audio", "64kbit/s", "--frame-rate", "25"),
        "--audio and --frame-rate say how to encode, and files without --rates are taken as they are (leave "
        "them out, or name one source and its --rates)",
    ),
]


@needs_ffmpeg
@pytest.mark.parametrize(("arguments", "says"), REFUSED)
def test_what_makes_no_sense_is_one_line(cli: Cli, arguments: tuple[str, ...], says: str) -> None:
    ran = cli("ladder", *arguments, "--out", "mine")
    (line,) = [line for line in ran.err.splitlines() if line.startswith("streamgauge: ")]
    assert ran.status == 3 and says in line and not Path("mine").exists()


def test_a_machine_without_ffmpeg_is_told_what_is_missing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = cli("ladder", "testsrc2", "--rates", "1M,2M")
    assert ran.status == 4 and "ffmpeg is missing: install it" in ran.err
    (tmp_path / "a.mp4").write_bytes(b"")
    ran = cli("ladder", "a.mp4", "a.mp4")
    assert ran.status == 4 and "ffprobe is missing: install ffmpeg" in ran.err
