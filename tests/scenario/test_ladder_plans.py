"""What a plan has of a ladder that our own machines play."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge import media
from streamgauge.errors import MediaError
from streamgauge.media import ContentStore, Ladder, prepare_ladder
from streamgauge.scenario import Clip, from_text, lower
from streamgauge.scenario.ladders import ladder_content
from streamgauge.units import Rate, Time

SCENARIO = """
id: my/ladder
title: A ladder
path: {down: {rate: 2 Mbit/s, queue: droptail 50 packets}}
flows:
  video: {role: subject, system: dash, clip: CLIP}
until: {time: 20 s}
"""


def planned(clip: str, contents: ContentStore | None = None):  # type: ignore[no-untyped-def]
    (made,) = from_text(SCENARIO.replace("CLIP", clip))
    return lower(made, "sim", 1, contents=contents)["flows"][0]["app"]["dash"]["ladder"]


def test_levels_have_their_rates_sizes_and_frames() -> None:
    ladder = planned("{source: carphone, ladder: [235k, 560k], audio: 64 kbit/s, segment: 4 s}")
    assert [level["bit_rate_bps"] for level in ladder["video"]] == [235_000, 560_000]
    assert ladder["segment"] == 4_000_000_000 and ladder["video"][0]["size"] == [352, 288]
    for level in ladder["video"]:
        clip = level["clip"]
        # To the trial's end, from the start that was drawn.
        assert 19_900_000_000 <= clip["duration"] <= 20_000_000_000
        lasts_s = len(clip["frame_bytes"]) * clip["frame_interval"] / 1e9
        assert sum(clip["frame_bytes"]) * 8 / lasts_s == pytest.approx(level["bit_rate_bps"], rel=1e-3)
        # A key frame begins each segment.
        assert clip["key_frames"] == list(range(0, len(clip["frame_bytes"]), 100))
    sound = ladder["audio"]["clip"]
    assert sum(sound["frame_bytes"]) * 8e9 / sound["frame_interval"] == pytest.approx(64_000, rel=0.01)


def test_a_clip_of_one_rate_is_a_ladder_of_one_level() -> None:
    ladder = planned("carphone-550k")
    assert [level["bit_rate_bps"] for level in ladder["video"]] == [550_000] and ladder["audio"] is None


def test_a_campaign_stores_one_content_for_all_levels(tmp_path: Path) -> None:
    contents = ContentStore(tmp_path)
    ladder = planned("{source: carphone, ladder: [235k, 560k], audio: 64 kbit/s}", contents)
    named = [level["clip"]["content"] for level in (*ladder["video"], ladder["audio"])]
    assert [one["encoding"] for one in named] == [0, 1, 2]
    (digest,) = {one["digest"] for one in named}
    assert contents.get(digest).segment_ns == 2_000_000_000


def test_what_ships_is_planned_once_and_ones_own_file_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = Clip.model_validate({"source": "carphone", "ladder": ["235k", "560k"]})
    first, again = (ladder_content(shipped, Time("20 s")) for _ in range(2))
    assert first is again
    assert ladder_content(shipped, Time("30 s")).duration_ns == 30_000_000_000
    # A file may be another one the next time.
    asked = []
    frames = media.content_of_clip(media.ClipEncoding.named("carphone-550k", duration_s=20.0))
    monkeypatch.setattr(media, "content_of_clip", lambda clip: asked.append(clip.source) or frames)
    own = Clip.model_validate({"file": "own.mp4", "rate": "550 kbit/s"})
    for _ in range(2):
        ladder_content(own, Time("20 s"))
    assert asked == ["own.mp4", "own.mp4"]


@settings(max_examples=10)
@given(rates=st.lists(st.integers(50, 3000), min_size=2, max_size=5, unique=True))
def test_every_segment_begins_with_a_key_frame_at_every_level(rates: list[int]) -> None:
    clip = Clip(source="testsrc2", ladder=tuple(Rate.of(1000 * rate) for rate in sorted(rates)))
    content = ladder_content(clip, Time("12 s"))
    cuts = {tuple(one.start_ns for one in content.segments(encoding)) for encoding in content.encodings}
    assert cuts == {tuple(range(0, 12_000_000_000, 2_000_000_000))}


def test_files_are_played_as_they_are(tmp_path: Path) -> None:
    folder = prepare_ladder(Ladder(source="testsrc2", rates_bps=(235_000, 560_000), duration_s=6.0))
    files = [str(folder / name) for name in ("235k.mp4", "560k.mp4")]
    ladder = planned(f"{{files: {files}}}".replace("'", '"'))
    assert ladder["segment"] == 2_000_000_000
    assert [level["clip"]["duration"] for level in ladder["video"]] == [6_000_000_000] * 2
    # The files' own frames.
    assert all(len(level["clip"]["frame_bytes"]) == 150 for level in ladder["video"])


def test_files_without_regular_key_frames_need_a_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamgauge.media import Content, Encoding, Frames, Track
    from streamgauge.scenario import ladders

    frames = Frames.regular([10] * 100, 40_000_000, [0, 25, 75])
    encoding = Encoding(name="a", bit_rate_bps=2_000, codec="h264", frames=frames)
    content = Content(
        name="a", duration_ns=4_000_000_000, tracks=(Track(kind="video", encodings=(encoding,)),)
    )
    monkeypatch.setattr(ladders, "own_ladder_of", lambda clip: content)
    clip = Clip(files=("a.mp4", "b.mp4"))
    with pytest.raises(MediaError, match=r"1 to 2 s apart. Give the length of segments"):
        ladder_content(clip, Time("4 s"))
    given_ = ladder_content(Clip(files=("a.mp4", "b.mp4"), segment=Time("2 s")), Time("4 s"))
    assert given_.segment_ns == 2_000_000_000
