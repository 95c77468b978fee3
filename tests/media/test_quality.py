"""Picture quality: what losing coded frames costs, by real encodes and ffmpeg's filters."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamgauge.cli import main
from streamgauge.errors import MediaError
from streamgauge.media import ClipEncoding, prepare
from streamgauge.media.pictures import PSNR_CAP_DB, compare
from streamgauge.media.quality import flows_with_pictures, of_frames, of_trial
from streamgauge.record import Record
from streamgauge.scenario.recorded import recorded_clip

pytestmark = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

FRAMES = 150


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """6 s in three groups of 50 frames, without B-frames: the last of a group is the one that none needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMGAUGE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield ClipEncoding(source="testsrc2", bit_rate_bps=150_000, duration_s=6)


def without(clip: ClipEncoding, *lost: int) -> float:
    return of_frames(clip, [number for number in range(FRAMES) if number not in lost], FRAMES).ssim


def test_without_loss_it_is_what_the_encoding_costs(clip: ClipEncoding) -> None:
    found = of_frames(clip, range(FRAMES), FRAMES)
    assert (found.ssim, found.psnr_db) == (found.clip_ssim, found.clip_psnr_db)
    assert 0.8 < found.ssim < 0.999 and 20 < found.psnr_db < 60
    assert found.worst_second_ssim <= found.ssim
    assert len(found.pictures.ssim) == len(found.pictures.psnr_db) == FRAMES
    assert (found.frames_shown, found.frames_due) == (FRAMES, FRAMES)


def test_a_lost_frame_shows_the_one_before_and_spoils_the_rest_of_its_group(clip: ClipEncoding) -> None:
    whole, seen = compare(clip, [], FRAMES), compare(clip, [60], FRAMES)
    assert seen.ssim[:60] == whole.ssim[:60]
    assert seen.ssim[60] < whole.ssim[60] and seen.ssim[99] < whole.ssim[99]
    assert seen.ssim[100:] == whole.ssim[100:]


def test_a_key_frame_hurts_more_than_a_frame_that_none_needs(clip: ClipEncoding) -> None:
    whole, disposable, key = without(clip), without(clip, 99), without(clip, 50)
    assert whole > disposable > key
    # The disposable one costs its own time alone.
    seen, full = compare(clip, [99], FRAMES).ssim, compare(clip, [], FRAMES).ssim
    assert [number for number in range(FRAMES) if seen[number] != full[number]] == [99]


def test_more_loss_is_never_better(clip: ClipEncoding) -> None:
    order = [99, 60, 140, 50, 0]
    ssim = [without(clip, *order[:many]) for many in range(len(order) + 1)]
    assert ssim == sorted(ssim, reverse=True) and ssim[0] > ssim[-1]


def test_the_worst_second_is_where_the_loss_is(clip: ClipEncoding) -> None:
    found = of_frames(clip, [number for number in range(FRAMES) if number not in range(75, 100)], FRAMES)
    assert found.worst_second_at_s == pytest.approx(3.0, abs=0.1)
    assert found.worst_second_ssim < found.ssim - 0.05


def test_before_the_first_picture_the_screen_is_black(clip: ClipEncoding) -> None:
    seen, nothing = compare(clip, list(range(50)), FRAMES), compare(clip, list(range(FRAMES)), FRAMES)
    whole = compare(clip, [], FRAMES)
    assert seen.ssim[:50] == nothing.ssim[:50] and seen.ssim[50:] == whole.ssim[50:]
    assert max(nothing.ssim) < 0.5 and max(nothing.psnr_db) < 15


def test_many_separate_losses_are_all_left_out(clip: ClipEncoding) -> None:
    """More than one of ffmpeg's expressions takes."""
    long = ClipEncoding(source="testsrc2", bit_rate_bps=150_000, duration_s=20)
    whole = compare(long, [], 500)
    every_other = compare(long, [*range(1, 400, 2)], 500)
    assert all(seen < full for seen, full in zip(every_other.ssim[1:400:2], whole.ssim[1:400:2], strict=True))
    assert every_other.ssim[400:] == whole.ssim[400:]


def test_a_frame_that_is_the_same_counts_as_the_cap(clip: ClipEncoding, tmp_path: Path) -> None:
    from streamgauge.media.pictures import _measured

    width, height = clip.picture
    source = ["-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate=25,trim=end_frame=5"]
    rows = _measured(clip, 5, source, tmp_path)
    assert [row[1] for row in rows] == [PSNR_CAP_DB] * 5


def test_it_is_kept(clip: ClipEncoding, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compare(clip, [60], FRAMES)
    monkeypatch.setattr("streamgauge.media.pictures._measured", lambda *_: pytest.fail("compared again"))
    assert compare(clip, [60], FRAMES) == first


def test_a_trial_that_had_more_frames_than_the_clip_is_refused(clip: ClipEncoding) -> None:
    with pytest.raises(MediaError, match="has 150 frames, and 200 were due"):
        compare(clip, [], 200)
    with pytest.raises(MediaError, match="no frame was due"):
        of_frames(clip, [], 0)


SCENARIO = """
id: test/quality
title: A clip through a link that is too small for it
path:
  down: {rate: RATE kbit/s, queue: droptail 10 kB, delay: 10 ms}
  up: {}
flows:
  video:
    role: subject
    system: rtp
    clip: {source: testsrc2, rate: 150 kbit/s}
  echo: {role: rival, traffic: ping}
until: {time: 8 s}
measure: {window: [0 s, 8 s]}
"""


def run(folder: Path, rate: int) -> Path:
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO.replace("RATE", str(rate)), encoding="utf-8")
    assert main(["run", str(scenario), "--mode", "sim", "--repeat", "1", "--out", str(folder / "runs")]) == 0
    return folder / "runs"


def record(runs: Path) -> Record:
    return Record.open(next(runs.rglob("trial.json")).parent)


def test_a_trials_pictures_by_what_its_player_showed(clip: ClipEncoding, tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    (tmp_path / "narrow").mkdir()
    wide, narrow = record(run(tmp_path / "wide", 1000)), record(run(tmp_path / "narrow", 140))
    assert flows_with_pictures(wide.trial) == ["video"]
    good, bad = (of_trial(found, "video", recorded_clip(found.trial, "video")) for found in (wide, narrow))
    assert good.frames_shown == good.frames_due and good.ssim == good.clip_ssim
    # 8 s less the playout delay and the start phase.
    assert 8 * 25 - 60 < good.frames_due <= 8 * 25
    assert bad.frames_shown < bad.frames_due
    assert bad.ssim < good.ssim and bad.worst_second_ssim < bad.ssim


def test_the_command_prints_a_table_and_json(
    clip: ClipEncoding, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = run(tmp_path, 140)
    capsys.readouterr()
    assert main(["quality", str(runs)]) == 0
    said = capsys.readouterr().out
    assert "test/quality" in said and "video" in said and "SSIM" in said and "testsrc2-150k" in said
    assert main(["quality", str(runs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "streamgauge.quality/1"
    (trial,) = found["trials"]
    assert len(trial["series"]["ssim"]) == trial["frames_due"] > trial["frames_shown"]
    assert trial["ssim"] < trial["clip_ssim"] <= 1


@pytest.mark.parametrize(
    ("flow", "said"),
    [("echo", "plays no clip"), ("nobody", "there is none of that name")],
)
def test_a_flow_without_pictures_is_named(
    flow: str, said: str, clip: ClipEncoding, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = run(tmp_path, 1000)
    assert main(["quality", str(runs), "--flow", flow]) == 3
    error = capsys.readouterr().err
    assert said in error and flow in error


def test_a_folder_without_records_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quality", str(tmp_path)]) == 3
    assert "no record is here" in capsys.readouterr().err
    assert main(["quality", str(tmp_path / "none")]) == 3
    assert "no such folder" in capsys.readouterr().err


def test_a_player_that_said_nothing_and_anothers_player_are_told_apart(
    clip: ClipEncoding, tmp_path: Path
) -> None:
    whole = record(run(tmp_path, 1000))

    class Changed:
        events = whole.events.filter(pl.col("name") != "frame_shown")
        directory = whole.directory
        trial = whole.trial

    with pytest.raises(MediaError, match="showed no frame"):
        of_trial(Changed(), "video", clip)
    flows = [{**flow, "app": "external"} for flow in whole.trial["plan"]["flows"]]
    Changed.trial = {**whole.trial, "plan": {**whole.trial["plan"], "flows": flows}}
    with pytest.raises(MediaError, match="a third-party player"):
        of_trial(Changed(), "video", clip)
    assert flows_with_pictures(Changed.trial) == []
    assert prepare(clip).is_file()
