"""The pictures of a ladder's segments, by real encodes and ffmpeg's filters, and what a trial showed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.cli import main
from streamgauge.errors import CannotRunError, MediaError
from streamgauge.media import ClipEncoding, Ladder, prepare_ladder, prepare_own_ladder, segment_quality
from streamgauge.media.pictures import PSNR_CAP_DB
from streamgauge.media.quality import flows_with_pictures, flows_with_segments, of_segments
from streamgauge.media.segment_quality import TABLE, SegmentPictures, SegmentTable, of_clip, of_ladder
from streamgauge.metrics import p1203

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")

LADDER = Ladder(source="testsrc2", rates_bps=(200_000, 600_000), duration_s=4)
"""Of one picture size."""
LOW, HIGH = LADDER.rates_bps


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMGAUGE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def folder(cache: Path) -> Path:
    return prepare_ladder(LADDER, jobs=2)


@needs_ffmpeg
def test_a_higher_rate_is_nearer_to_the_source_in_every_segment(folder: Path) -> None:
    table = of_ladder(folder, LADDER)
    assert (table.reference, set(table.encodings)) == ("source", {LOW, HIGH})
    low, high = table.encodings[LOW], table.encodings[HIGH]
    assert len(low) == len(high) == 2
    for poor, rich in zip(low, high, strict=True):
        assert poor.ssim < rich.ssim < 1 and 15 < poor.psnr_db < rich.psnr_db < PSNR_CAP_DB
        assert (poor.vmaf is None) is (not segment_quality.has_vmaf())


@needs_ffmpeg
def test_a_table_is_kept_beside_its_ladder_until_that_is_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = of_ladder(folder, LADDER)
    kept = json.loads((folder / TABLE).read_text(encoding="utf-8"))
    reckoned: list[str] = []
    original = segment_quality._reckoned

    def reckon(*arguments: Any) -> SegmentTable:
        reckoned.append("anew")
        return original(*arguments)

    monkeypatch.setattr(segment_quality, "_reckoned", reckon)
    assert of_ladder(folder, LADDER) == table and not reckoned
    (folder / TABLE).write_text(json.dumps(kept | {"digest": "0" * 32}), encoding="utf-8")
    assert of_ladder(folder, LADDER) == table and len(reckoned) == 1
    (folder / TABLE).write_text("{", encoding="utf-8")
    assert of_ladder(folder, LADDER) == table and len(reckoned) == 2
    assert json.loads((folder / TABLE).read_text(encoding="utf-8")) == kept


@needs_ffmpeg
def test_files_of_ones_own_are_compared_with_the_best_of_them(folder: Path, cache: Path) -> None:
    table = of_ladder(prepare_own_ladder([folder / "200k.mp4", folder / "600k.mp4"], segment_s=2))
    assert table.reference == "600k.mp4"
    low, high = (table.encodings[rate] for rate in sorted(table.encodings))
    assert [(one.ssim, one.psnr_db) for one in high] == [(1, PSNR_CAP_DB)] * 2
    assert all(0.5 < one.ssim < 1 for one in low)


@needs_ffmpeg
def test_a_clip_of_one_rate_has_segments_too(cache: Path) -> None:
    clip = ClipEncoding(source="testsrc2", bit_rate_bps=HIGH, duration_s=4)
    whole = of_ladder(prepare_ladder(LADDER), LADDER).encodings[HIGH]
    found = of_clip(clip, 2_000_000_000).encodings[HIGH]
    assert [one.ssim for one in found] == pytest.approx([one.ssim for one in whole])


# What a trial showed, of a table by hand.

NUMBERS = 6
TABLE_BY_HAND = SegmentTable(
    name="by-hand",
    reference="source",
    encodings={
        rate: tuple(
            SegmentPictures(ssim=base + number / 100, psnr_db=100 * base, vmaf=None)
            for number in range(NUMBERS)
        )
        for rate, base in ((300_000, 0.5), (900_000, 0.9))
    },
)


class Trial:
    """A record of a player that said these segments (number, bit/s)."""

    directory = Path()

    def __init__(
        self, shown: list[tuple[int, float]], app: Any = "external", reason: str = "segment {}"
    ) -> None:
        self.trial = {
            "plan": {"flows": [{"name": "video", "app": app}, {"name": "other", "app": "external"}]}
        }
        rows = [
            (number, "video", "segment_shown", rate, "bit/s", reason.format(number)) for number, rate in shown
        ]
        names = ["time", "flow", "name", "value", "unit", "reason"]
        types = [pl.Int64, pl.String, pl.String, pl.Float64, pl.String, pl.String]
        self.events = pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


shown = st.lists(
    st.tuples(st.integers(0, NUMBERS - 1), st.sampled_from([300e3, 900e3])), min_size=1, max_size=NUMBERS
)


@given(shown)
def test_a_trial_is_the_mean_of_what_it_showed(of: list[tuple[int, float]]) -> None:
    found = of_segments(Trial(of), "video", TABLE_BY_HAND)
    ssim = [(0.5 if rate == 300e3 else 0.9) + number / 100 for number, rate in of]
    assert found.ssim == pytest.approx(np.mean(ssim)) and found.segments_shown == len(of)
    assert found.worst_segment_ssim == pytest.approx(min(ssim)) and found.vmaf is None
    assert found.worst_segment_ssim - 1e-9 <= found.ssim <= found.highest_ssim + 1e-9
    # Who shows all in the highest reaches the most that can be.
    best = of_segments(Trial([(number, 900e3) for number, _ in of]), "video", TABLE_BY_HAND)
    assert best.ssim == pytest.approx(best.highest_ssim) == pytest.approx(found.highest_ssim)


def test_a_rate_that_a_player_tells_is_that_of_the_nearest_encoding() -> None:
    found = of_segments(Trial([(0, 310_000.0), (1, 2e6)]), "video", TABLE_BY_HAND)
    assert found.ssim == pytest.approx((0.5 + 0.91) / 2)


def test_which_flows_say_their_segments() -> None:
    ladder = {"adaptive": {"ladder": {"video": []}}}
    assert (
        flows_with_segments(Trial([(0, 3e5)])) == flows_with_segments(Trial([(0, 3e5)], ladder)) == ["video"]
    )
    assert flows_with_segments(Trial([])) == []
    # A machine of ours that plays a ladder says its frames too, and is not judged by them.
    assert flows_with_pictures(Trial([], {"rtp": {"ladder": {}}}).trial) == []


@pytest.mark.parametrize(
    ("trial", "flow", "said"),
    [
        (Trial([]), "video", "reported no shown segment"),
        (Trial([(0, 3e5)]), "nobody", "there is none of that name"),
        (Trial([(0, 3e5)], reason="chunk {}"), "video", "without the segment's rate or number"),
        (Trial([(NUMBERS, 3e5)]), "video", "segment 6 was shown, and it has 6"),
    ],
)
def test_what_cannot_be_judged_says_why(trial: Trial, flow: str, said: str) -> None:
    with pytest.raises(MediaError, match=said):
        of_segments(trial, flow, TABLE_BY_HAND)


# The command.

SCENARIO = """
id: test/segments
title: A record whose player is given other words
path: {down: {rate: 1 Mbit/s, queue: droptail 10 kB, delay: 10 ms}, up: {}}
flows: {video: {role: subject, system: rtp, clip: {source: testsrc2, rate: 150 kbit/s}}}
until: {time: 4 s}
"""
WORDS = [
    (500, "playout_start", 0.5, "s", ""), (0, "stall_count", 0.0, "1", ""),
    (500, "segment_shown", 200e3, "bit/s", "segment 0"), (1500, "stall", None, "", ""),
    (2000, "resume", 0.5, "s", ""), (3000, "segment_shown", 600e3, "bit/s", "segment 1"),
]  # fmt: skip


@pytest.fixture
def runs(cache: Path, tmp_path: Path) -> Path:
    """A trial whose player is another, of a ladder."""
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    assert main(["run", str(file), "--mode", "sim", "--repeat", "1", "--out", str(tmp_path / "runs")]) == 0
    (found,) = (tmp_path / "runs").rglob("trial.json")
    trial = json.loads(found.read_text(encoding="utf-8"))
    clip = {"source": "testsrc2", "ladder": ["200 kbit/s", "600 kbit/s"]}
    trial["scenario"]["flows"]["video"] = {
        "role": "subject", "system": {"server": "a", "player": "b"}, "clip": clip
    }  # fmt: skip
    trial["plan"]["flows"][0]["app"] = "external"
    found.write_text(json.dumps(trial), encoding="utf-8")
    events = pl.read_parquet(found.parent / "events.parquet")
    rows = [(ms * 10**6, "video", *rest) for ms, *rest in WORDS]
    said = pl.DataFrame(rows, schema=["time", "flow", "name", "value", "unit", "reason"], orient="row")
    said = said.select(pl.col(name).cast(events.schema[name]) for name in events.columns)
    footer = pl.read_parquet_metadata(found.parent / "events.parquet")
    footer |= {key: str(len(said)) for key in footer if key.endswith("rows")}
    said.write_parquet(found.parent / "events.parquet", metadata=footer)
    return tmp_path / "runs"


@needs_ffmpeg
def test_the_command_judges_segments(runs: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["quality", str(runs)]) == 0
    told = capsys.readouterr().out
    assert "test/segments" in told and "segments shown" in told and "at the highest" in told
    assert main(["quality", str(runs), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["trials"]
    table = of_ladder(folder, LADDER)
    expected = [table.encodings[LOW][0].ssim, table.encodings[HIGH][1].ssim]
    assert row["ssim"] == pytest.approx(np.mean(expected)) and row["mos"] is None
    assert (row["segments_shown"], row["series"]["segment"], row["worst_segment"]) == (2, [0, 1], 0)
    assert row["series"]["ssim"] == pytest.approx(expected)


def test_without_the_model_its_licence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CannotRunError, match="non-commercial research"):
        p1203.mean_opinion({})


def a_model(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """In the place of itu-p1203, which no test may have."""
    package = folder / "itu_p1203"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(program, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{':'.join(sys.path)}")


@needs_ffmpeg
def test_a_model_that_is_there_is_asked(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = "import json, sys\nprint(json.dumps({sys.argv[-1]: {'O46': 3.25}}))\n"
    a_model(tmp_path, monkeypatch, scores)
    monkeypatch.setattr(p1203, "session_of", lambda record, flow: {"of": flow})
    capsys.readouterr()
    assert main(["quality", str(runs), "--p1203", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["trials"]
    assert row["mos"] == 3.25
    assert main(["quality", str(runs), "--p1203"]) == 0
    assert "P.1203" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "error", "said"),
    [
        ("print('please accept')\ninput()\n", CannotRunError, "notice to be accepted"),
        ("raise SystemExit('no such mode')\n", MediaError, "no such mode"),
        ("print('{}')\n", MediaError, "it printed no score"),
    ],
)
def test_a_model_that_fails_is_told_apart(
    program: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_model(tmp_path, monkeypatch, program)
    with pytest.raises(error, match=said):
        p1203.mean_opinion({})
