"""Pictures of a ladder whose player changes encodings frame by frame, by real encodes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.cli import main
from streamgauge.errors import MediaError
from streamgauge.media import Ladder
from streamgauge.media.level_quality import Sent, of_level_trial, of_levels, pictured
from streamgauge.media.pictures import compare
from streamgauge.media.quality import Quality, flows_with_levels, flows_with_pictures
from streamgauge.record import Record

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

LADDER = Ladder(source="testsrc2", rates_bps=(200_000, 600_000), duration_s=6)
"""Of one picture size, a key frame each 50 frames."""
LEVELS = [LADDER.clip(rate) for rate in LADDER.rates_bps]
LOW, HIGH = 0, 1
FRAMES, GROUP = 150, 50
ALL = frozenset(range(FRAMES))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMGAUGE_CACHE", str(folder))
        yield folder


def sent(*changes: tuple[int, int]) -> list[Sent]:
    return [Sent(frame=frame, encoding=encoding) for frame, encoding in changes]


def judged(changes: list[Sent], lost: set[int] | frozenset[int] = frozenset()) -> Quality:
    return of_levels(LEVELS, changes, sorted(ALL - lost), FRAMES, name="test")


# What is on the screen, without pictures.

KEYS = [[number % GROUP == 0 for number in range(FRAMES)]] * 3
changed = st.lists(st.integers(0, 2), min_size=3, max_size=3).map(
    lambda encodings: sent(*((GROUP * place, encoding) for place, encoding in enumerate(encodings)))
)


@given(changes=changed)
def test_with_nothing_lost_what_was_sent_is_on_the_screen(changes: list[Sent]) -> None:
    found = pictured(KEYS, changes, sorted(ALL), FRAMES)
    assert found == [changes[number // GROUP].encoding for number in range(FRAMES)]


@given(changes=changed, lost=st.sets(st.integers(0, FRAMES - 1)))
def test_another_encoding_is_seen_from_a_key_frame_of_it_that_was_shown(
    changes: list[Sent], lost: set[int]
) -> None:
    found = pictured(KEYS, changes, sorted(ALL - lost), FRAMES)
    before: int | None = None
    for number, now in enumerate(found):
        if now != before:
            assert number not in lost and number % GROUP == 0
            assert now == changes[number // GROUP].encoding
        before = now


# Real encodes.


@needs_ffmpeg
def test_with_nothing_lost_at_the_highest_level_it_is_what_that_costs(cache: Path) -> None:
    found = judged(sent((0, HIGH)))
    assert (found.ssim, found.psnr_db) == (found.clip_ssim, found.clip_psnr_db)
    assert found.pictures == compare(LEVELS[HIGH], [], FRAMES)
    assert (found.frames_shown, found.frames_due) == (FRAMES, FRAMES)
    assert set(found.rates_bps or ()) == {600_000}


@needs_ffmpeg
def test_the_more_is_seen_of_the_lower_level_the_worse(cache: Path) -> None:
    ladder = [
        judged(sent((0, LOW))),
        judged(sent((0, LOW), (100, HIGH))),
        judged(sent((0, LOW), (50, HIGH))),
        judged(sent((0, HIGH))),
    ]
    ssim = [found.ssim for found in ladder]
    assert ssim == sorted(ssim) and ssim[0] < ssim[1] < ssim[2] < ssim[3]
    assert {found.clip_ssim for found in ladder} == {ssim[3]}


@needs_ffmpeg
def test_each_frame_is_that_of_the_encoding_that_it_was_sent_in(cache: Path) -> None:
    found = judged(sent((0, LOW), (50, HIGH), (100, LOW)))
    low, high = (compare(level, [], FRAMES).ssim for level in LEVELS)
    assert found.pictures.ssim == low[:50] + high[50:100] + low[100:]
    assert found.rates_bps == (200_000,) * 50 + (600_000,) * 50 + (200_000,) * 50


@needs_ffmpeg
def test_without_its_key_frame_nothing_of_a_new_level_is_seen_before_the_next(cache: Path) -> None:
    found = judged(sent((0, LOW), (50, HIGH)), {50})
    high = compare(LEVELS[HIGH], [], FRAMES).ssim
    held = compare(LEVELS[LOW], list(range(50, 100)), 100).ssim
    assert found.pictures.ssim == held + high[100:]
    assert found.rates_bps == (200_000,) * 100 + (600_000,) * 50


@needs_ffmpeg
def test_what_is_missing_only_takes_from_it(cache: Path) -> None:
    changes = sent((0, LOW), (50, HIGH))
    lost: set[int] = set()
    before = judged(changes).ssim
    for number in (149, 120, 30, 100, 50, 0):
        lost.add(number)
        after = judged(changes, lost)
        assert after.ssim < before and after.frames_shown == FRAMES - len(lost)
        before = after.ssim
    # All three key frames are: nothing can be seen.
    nothing = judged(changes, ALL)
    assert nothing.ssim == before and set(nothing.rates_bps or ()) == {0}


@needs_ffmpeg
def test_key_frames_alone_are_better_than_nothing_and_worse_than_all(cache: Path) -> None:
    keys = judged(sent((0, LOW)), {number for number in ALL if number % GROUP})
    assert judged(sent((0, LOW)), ALL).ssim < keys.ssim < judged(sent((0, LOW))).ssim
    assert keys.frames_shown == 3


@needs_ffmpeg
def test_smaller_pictures_are_compared_at_the_size_of_the_highest(cache: Path) -> None:
    ladder = Ladder(source="testsrc2", rates_bps=(100_000, 400_000), duration_s=2)
    small, large = (ladder.clip(rate) for rate in ladder.rates_bps)
    assert small.picture != large.picture
    found = of_levels([small, large], sent((0, 0)), range(50), 50, name="sizes")
    assert found.pictures == compare(small, [], 50, size=large.picture) != compare(small, [], 50)
    assert compare(large, [], 50, size=large.picture) == compare(large, [], 50)
    assert found.ssim < found.clip_ssim


@needs_ffmpeg
def test_it_is_the_same_again_without_what_was_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes, lost = sent((0, LOW), (50, HIGH)), {20, 70, 71}
    first = judged(changes, lost)
    shutil.copytree(cache / "clips", tmp_path / "clips")
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    assert judged(changes, lost) == first


@needs_ffmpeg
def test_more_frames_than_there_are_and_none_are_refused(cache: Path) -> None:
    for due in (0, FRAMES + 1):
        with pytest.raises(MediaError, match=f"{due} frames were due of 150"):
            of_levels(LEVELS, sent((0, LOW)), [], due, name="test")


# Of trials.

SCENARIO = """
id: test/levels
title: A ladder by UDP and by TCP through one link
path:
  down: {rate: RATE kbit/s, queue: droptail 10 kB, delay: 20 ms}
  up: {}
flows:
  udp:
    role: subject
    system: realvideo
    parameters: {preset: realserver8, player: realplayer8, transport: udp}
    clip: &clip {source: testsrc2, ladder: [40k, 150k], audio: 8 kbit/s, segment: 1 s, duration: 12 s}
  tcp:
    role: subject
    system: realvideo
    parameters: {preset: realserver8, player: realplayer8, transport: tcp}
    clip: *clip
until: {time: 120 s, idle: 20 s}
"""


def run(folder: Path, rate: int, *, clip: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    scenario = folder / "scenario.yaml"
    text = SCENARIO.replace("RATE", str(rate))
    scenario.write_text(text.replace("*clip", clip or "*clip"), encoding="utf-8")
    assert main(["run", str(scenario), "--mode", "sim", "--repeat", "2", "--out", str(folder / "runs")]) == 0
    return folder / "runs"


def records(runs: Path) -> list[Record]:
    return [Record.open(found.parent) for found in sorted(runs.rglob("trial.json"))]


def rows_of(runs: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["quality", str(runs), "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["trials"]
    return found


@needs_ffmpeg
def test_both_sides_of_a_link_are_judged(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide, narrow = run(tmp_path / "wide", 2000), run(tmp_path / "narrow", 120)
    assert flows_with_levels(records(wide)[0].trial) == ["udp", "tcp"]
    assert flows_with_pictures(records(wide)[0].trial) == []
    for row in rows_of(wide, capsys):
        assert row["frames_shown"] == row["frames_due"] == 300
        assert row["ssim"] == row["clip_ssim"] and row["frame_rate"] == pytest.approx(25, rel=0.01)
        assert set(row["series"]["rate_bps"]) == {150_000}
    squeezed = rows_of(narrow, capsys)
    assert len(squeezed) == 4
    for row in squeezed:
        assert row["ssim"] <= row["clip_ssim"] < 1
        series = row["series"]
        assert len(series["ssim"]) == len(series["rate_bps"]) == row["frames_due"] >= row["frames_shown"]
        assert set(series["rate_bps"]) <= {0, 40_000, 150_000}
    by_udp = [row for row in squeezed if row["flow"] == "udp"]
    assert all(row["ssim"] < row["clip_ssim"] and row["frame_rate"] < 25 for row in by_udp)
    assert any(40_000 in row["series"]["rate_bps"] for row in squeezed)
    assert main(["quality", str(narrow)]) == 0
    said = capsys.readouterr().out
    assert "frames/s" in said and "udp − tcp" in said and "testsrc2-40k-to-150k" in said


@needs_ffmpeg
def test_a_clip_of_one_rate_is_a_ladder_of_one(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = run(tmp_path, 2000, clip="{source: testsrc2, rate: 60 kbit/s, audio: 8 kbit/s, duration: 12 s}")
    row = next(row for row in rows_of(runs, capsys) if row["flow"] == "tcp")
    assert (row["clip"], set(row["series"]["rate_bps"])) == ("testsrc2-60k", {52_000})
    assert row["ssim"] == row["clip_ssim"]


@needs_ffmpeg
def test_a_player_that_never_showed_a_picture_had_a_black_screen(cache: Path, tmp_path: Path) -> None:
    whole = records(run(tmp_path, 2000))[0]

    class Dark:
        directory, trial = whole.directory, whole.trial
        events = whole.events.filter(pl.col("name") != "frame_shown")

    class Over(Dark):
        """It showed six seconds and gave up."""

        events = whole.events.filter((pl.col("name") != "frame_shown") | (pl.col("value") < 150))

    clip = Ladder(source="testsrc2", rates_bps=(40_000, 150_000), audio_bps=8_000, segment_s=1, duration_s=12)
    ladder = [clip.clip(rate) for rate in clip.rates_bps]
    found = of_level_trial(Dark(), "udp", ladder, name="dark")
    assert (found.frames_shown, found.frames_due, found.frame_rate) == (0, 300, 0)
    assert found.ssim < 0.5

    over = of_level_trial(Over(), "udp", ladder, name="over")
    assert (over.frames_due, over.frames_shown) == (300, 150)
    assert over.frame_rate == pytest.approx(150 / 12, rel=0.01)
    assert found.ssim < over.ssim < over.clip_ssim

    class Short(Dark):
        """The trial ended while nothing had been shown yet."""

        trial = whole.trial | {"duration_s": 4.0}
        events = Dark.events.filter(pl.col("name") != "media_end")

    assert 0 < of_level_trial(Short(), "udp", ladder, name="short").frames_due < 100

    for name, said in (("frame_shown", "the shown frames"), ("level_sent", "the sent encodings")):
        reason = pl.when(pl.col("name") == name).then(pl.lit("")).otherwise(pl.col("reason"))

        class Earlier(Dark):
            events = whole.events.with_columns(reason=reason.cast(whole.events.schema["reason"]))

        with pytest.raises(MediaError, match=f"{said}, as in earlier versions. Run the trial again"):
            of_level_trial(Earlier(), "udp", ladder, name="earlier")
    with pytest.raises(MediaError, match="other rates than its scenario"):
        of_level_trial(whole, "udp", ladder[:1], name="another")


@needs_ffmpeg
def test_of_windows_media_a_session_of_one_encoding_is_judged(cache: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "wm.yaml"
    scenario.write_text(
        """
id: test/wm
title: Windows Media on a wide link
path: {down: {rate: 2 Mbit/s, queue: droptail 50 packets}}
flows:
  wm:
    role: subject
    system: windows_media
    parameters: {player: wmp9-helix, silence: 0 s, buffered: 2 s}
    clip: {source: testsrc2, ladder: [40 kbit/s, 150 kbit/s], audio: 8 kbit/s, segment: 1 s, duration: 12 s}
until: {time: 20 s}
repetitions: {sim: 1}
""",
        encoding="utf-8",
    )
    assert main(["run", str(scenario), "--mode", "sim", "--out", str(tmp_path / "runs")]) == 0
    (whole,) = records(tmp_path / "runs")
    clip = Ladder(source="testsrc2", rates_bps=(40_000, 150_000), audio_bps=8_000, segment_s=1, duration_s=12)
    ladder = [clip.clip(rate) for rate in clip.rates_bps]
    found = of_level_trial(whole, "wm", ladder, name="wm", rates_alone=True)
    assert found.rates_bps is not None and set(found.rates_bps) == {150_000}
    assert found.frames_shown == found.frames_due == 300 and found.ssim == found.clip_ssim

    told = whole.events.filter(pl.col("name") == "level_sent")

    class Changed:
        directory, trial = whole.directory, whole.trial
        events = pl.concat([whole.events, told])

    with pytest.raises(MediaError, match="without reporting the position in the media"):
        of_level_trial(Changed(), "wm", ladder, name="wm", rates_alone=True)


@needs_ffmpeg
def test_a_ladder_of_ones_own_files_is_refused(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["ladder", "testsrc2", "--rates", "40k,150k", "--duration", "6s", "--out", str(tmp_path / "own")]
        )
        == 0
    )
    runs = run(tmp_path / "files", 2000, clip=f"{{files: [{tmp_path}/own/40k.mp4, {tmp_path}/own/150k.mp4]}}")
    capsys.readouterr()
    assert main(["quality", str(runs), "--flow", "tcp"]) == 3
    assert "its ladder is of your own files" in capsys.readouterr().err
