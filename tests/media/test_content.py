"""Content: read back as written, cut into segments that tile it, refused where nobody could play it."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.errors import MediaError
from streamgauge.media import (
    BUILT_IN,
    ClipEncoding,
    Content,
    Encoding,
    Frames,
    Track,
    content_of_clip,
    frame_interval_ns,
    frame_sizes,
    key_frames,
)

S = 10**9


@st.composite
def frames(draw: st.DrawFn) -> Frames:
    """Regular or not, with key frames anywhere."""
    count = draw(st.integers(1, 20))
    sizes = draw(st.lists(st.integers(1, 100_000), min_size=count, max_size=count))
    steps = draw(st.lists(st.integers(2_000_000, 200_000_000), min_size=count, max_size=count))
    if draw(st.booleans()):
        steps = [steps[0]] * count
    keys = [True, *draw(st.lists(st.booleans(), min_size=count - 1, max_size=count - 1))]
    times = np.concatenate([[0], np.cumsum(steps)])
    return Frames(sizes, times[:-1], keys, int(times[-1]))


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """A ladder whose encodings have the times and keys of the first, with or without sound."""
    first = draw(frames())
    video = []
    for number in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 9_999), min_size=len(first), max_size=len(first)))
        rung = Frames(sizes, first.times_ns, first.keys, first.span_ns)
        video.append(Encoding(name=f"v{number}", bit_rate_bps=number + 1, codec="h264", frames=rung))
    tracks = [Track(kind="video", encodings=tuple(video))]
    if draw(st.booleans()):
        count = -(-first.span_ns // 23_000_000)
        sound = Frames.regular([7] * count, 23_000_000, range(count))
        encoding = Encoding(name="a", bit_rate_bps=9, codec="aac", frames=sound)
        tracks.append(Track(kind="audio", encodings=(encoding,)))
    return Content(
        name="some",
        duration_ns=draw(st.integers(1, 3 * first.span_ns)),
        tracks=tuple(tracks),
        segment_ns=draw(st.none() | st.integers(10_000_000, 5 * S)),
    )


@given(contents())
def test_it_is_read_back_as_it_was_written(content: Content) -> None:
    again = Content.from_json(json.loads(json.dumps(content.to_json())))
    assert again == content
    assert again.digest == content.digest


@given(contents())
def test_segments_tile_each_encoding_and_begin_with_key_frames(content: Content) -> None:
    for encoding in content.encodings:
        whole = encoding.frames.until(content.duration_ns)
        segments = content.segments(encoding)
        assert [one.number for one in segments] == list(range(len(segments)))
        assert segments[0].start_ns == 0 and segments[-1].end_ns == content.duration_ns
        assert segments[0].frames[0] == 0 and segments[-1].frames[1] == len(whole)
        for before, after in itertools.pairwise(segments):
            assert before.end_ns == after.start_ns > before.start_ns
            assert before.frames[1] == after.frames[0]
        assert sum(one.size_bytes for one in segments) == whole.sizes_bytes.sum()
        assert all(whole.keys[one.frames[0]] for one in segments)
        if content.segment_ns is not None:
            assert all(
                one.end_ns - one.start_ns >= min(content.segment_ns, encoding.frames.span_ns) - 25_000_000
                for one in segments[:-1]
            )


@pytest.mark.parametrize("segment_s", [1.0, 2.0, 3.0, 4.0, 6.0, 7.0])
def test_what_ships_has_segments_of_one_length(segment_s: float) -> None:
    """Its frames repeat after 10 s, which is no whole number of most segments."""
    clip = ClipEncoding(source="carphone", bit_rate_bps=500_000, duration_s=84, gop_s=segment_s)
    content = replace(content_of_clip(clip), segment_ns=round(segment_s * S))
    starts = [one.start_ns for one in content.segments(content.video.encodings[0])]
    assert starts == [round(number * segment_s * S) for number in range(round(84 / segment_s))]


@given(contents())
def test_segments_of_a_ladder_begin_at_the_same_times(content: Content) -> None:
    starts = [[one.start_ns for one in content.segments(encoding)] for encoding in content.video.encodings]
    assert all(one == starts[0] for one in starts)
    assert starts[0] == content.boundaries_ns().tolist()


@given(contents(), st.integers(1, 10 * S))
def test_frames_repeat_until_the_end(content: Content, until_ns: int) -> None:
    once = content.encodings[0].frames
    long = once.until(until_ns)
    assert long.times_ns.max() < until_ns <= long.span_ns
    assert np.array_equal(long.sizes_bytes, np.resize(once.sizes_bytes, len(long)))
    assert np.array_equal(long.keys, np.resize(once.keys, len(long)))
    assert np.all(np.diff(long.times_ns) > 0)


@given(contents(), st.data())
def test_one_key_frame_elsewhere_is_told_with_both_names_and_the_time(
    content: Content, data: st.DataObject
) -> None:
    first = content.video.encodings[0]
    if len(first.frames) < 2:
        return
    number = data.draw(st.integers(1, len(first.frames) - 1))
    keys = first.frames.keys.copy()
    keys[number] = not keys[number]
    moved = Frames(first.frames.sizes_bytes, first.frames.times_ns, keys, first.frames.span_ns)
    other = Encoding(name="moved", bit_rate_bps=1, codec="h264", frames=moved)
    at = f"at {first.frames.times_ns[number] / 1e9:.3f} s"
    with pytest.raises(MediaError, match=f"v0 and moved: their key frames do not align\\. .*{at}") as caught:
        Content(
            name="two",
            duration_ns=first.frames.span_ns,
            segment_ns=S,
            tracks=(Track(kind="video", encodings=(first, other)),),
        )
    has = "moved" if keys[number] else "v0"
    assert f"{has} has one" in str(caught.value)


@given(contents())
def test_the_digest_is_of_the_content_and_not_of_its_name_or_place(content: Content) -> None:
    data = content.to_json() | {"name": "another"}
    data["tracks"][0]["encodings"][0] |= {"file": "elsewhere.mp4", "name": "elsewhere"}
    assert Content.from_json(data).digest == content.digest
    data["tracks"][0]["encodings"][0]["frames"]["frame_bytes"][0] += 1
    assert Content.from_json(data).digest != content.digest


@pytest.mark.parametrize("source", BUILT_IN)
@pytest.mark.parametrize("more", [{}, {"rate_control": "variable"}])
def test_a_clip_that_ships_is_content_with_one_encoding(source: str, more: dict[str, Any]) -> None:
    clip = ClipEncoding(source=source, bit_rate_bps=242_000, duration_s=60, **more)
    content = content_of_clip(clip)
    (encoding,) = content.encodings
    assert encoding.frames.sizes_bytes.tolist() == frame_sizes(clip)
    assert np.flatnonzero(encoding.frames.keys).tolist() == key_frames(clip)
    assert encoding.frames.interval_ns == frame_interval_ns(clip)
    assert encoding.frames.bit_rate_bps == pytest.approx(242_000, rel=0.01)
    assert (content.duration_ns, encoding.size, encoding.bit_rate_bps) == (60 * S, (352, 288), 242_000)
    assert len(encoding.frames.until(content.duration_ns)) == 60 * 25


def good() -> dict[str, Any]:
    frames = Frames.regular([1000, 200, 900, 100], S // 4, [0, 2])
    video = Encoding(name="1k", bit_rate_bps=1000, codec="h264", frames=frames, size=(16, 16))
    content = Content(name="c", duration_ns=S, tracks=(Track(kind="video", encodings=(video,)),))
    return content.to_json()


BAD: list[tuple[tuple[Any, ...], Any, str]] = [
    (
        ("schema",),
        "streamgauge.content/99",
        r"its schema is 'streamgauge\.content/99', and this version reads",
    ),
    (("duration_ns",), 0, "its duration and its segments' must be above zero"),
    (("duration_ns",), "soon", "it cannot be read"),
    (("tracks",), [], "it needs a track"),
    (("tracks",), 7, "it cannot be read"),
    (("tracks", 0, "kind"), "smell", "a track is of 'smell'; expected one of video, audio, text"),
    (("tracks", 0, "encodings", 0, "size"), [1], "it cannot be read"),
    (("tracks", 0, "encodings", 0, "frames", "frame_bytes"), [], "there is no frame in it|cannot be read"),
    (("tracks", 0, "encodings", 0, "frames", "frame_bytes"), [5, 0, 5, 5], "frame 1 has no byte"),
    (("tracks", 0, "encodings", 0, "frames", "key_frames"), [2], "does not begin with a key frame"),
    (("tracks", 0, "encodings", 0, "frames", "key_frames"), [0, 9], "its frames cannot be read"),
    (("tracks", 0, "encodings", 0, "frames", "span_ns"), S // 4, "its last frame is shown at 0.75 s, after"),
    (("tracks", 0, "encodings", 0, "frames", "interval_ns"), None, "its frames cannot be read"),
]


@pytest.mark.parametrize(("where", "value", "says"), BAD)
def test_what_is_wrong_is_said_with_the_files_name(
    where: tuple[Any, ...], value: Any, says: str, tmp_path: Path
) -> None:
    data = good()
    place = data
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    file = tmp_path / "content.json"
    file.write_text(json.dumps(data))
    with pytest.raises(MediaError, match=says) as caught:
        Content.load(file)
    assert str(caught.value).startswith(str(file)) or where == ("duration_ns",) or where == ("tracks",)


@pytest.mark.parametrize(
    ("text", "says"), [("{", "is not JSON"), ("[]", "is no content"), ("{}", "no content")]
)
def test_a_file_that_is_no_content(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "content.json"
    file.write_text(text)
    with pytest.raises(MediaError, match=says):
        Content.load(file)
    with pytest.raises(MediaError, match=r"none\.json: No such file"):
        Content.load(tmp_path / "none.json")


def test_two_encodings_of_one_name() -> None:
    data = good()
    data["tracks"][0]["encodings"] *= 2
    with pytest.raises(MediaError, match="two encodings are called 1k"):
        Content.from_json(data)


def test_the_pages_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[2] / "docs/content.md"
    (source,) = re.findall(
        r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    exec(compile(source, str(page), "exec"), {})
    assert "[0. 2. 4. 6. 8.]" in capsys.readouterr().out
