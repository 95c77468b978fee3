"""Playlists: many clips, one's own files among them, some of which cannot be read; whole trials of sim."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from streamgauge.campaign import plan as planning
from streamgauge.campaign import resume_key, run
from streamgauge.errors import ScenarioError
from streamgauge.media import Content, own_files
from streamgauge.media.encode import packets
from streamgauge.media.probe import streams_in
from streamgauge.record import Record
from streamgauge.scenario import from_text, lower
from streamgauge.scenario.loading import ScenarioErrors
from streamgauge.scenario.model import MODES

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
TEXT = """\
id: test/playlist
title: A playlist with files of one's own
path: {down: {rate: 2 Mbit/s, queue: droptail 100 ms}}
flows:
  video: {role: subject, system: rtp, clip: carphone-100k}
population:
  clips:
    - bikes-100k
    - {file: own.mp4, rate: 150 kbit/s}
    - {file: other.mp4, rate: 120 kbit/s, duration: 1 s}
until: {time: 2 s}
repetitions: {sim: 3}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    for name, picture in (("own", "testsrc2"), ("other", "mandelbrot")):
        source = ["-f", "lavfi", "-i", f"{picture}=size=320x240:rate=30", "-t", "2", "-pix_fmt", "yuv420p"]
        command = ["ffmpeg", "-nostdin", "-loglevel", "error", *source, str(tmp_path / f"{name}.mp4")]
        subprocess.run(command, check=True)
    return tmp_path


def test_hundreds_of_clips_of_which_some_are_not_there(tmp_path: Path) -> None:
    """In the order of the file, each at its line and key, before anything starts."""
    clips = [f"    - carphone-{100 + number}k" for number in range(300)]
    clips[17] = "    - {file: none.mp4, rate: 1 Mbit/s}"
    clips[250] = "    - {file: films, rate: 1 Mbit/s}"
    clips[260] = "    - {file: empty.mp4, rate: 1 Mbit/s}"
    (tmp_path / "films").mkdir()
    (tmp_path / "empty.mp4").touch()
    before, _, rest = TEXT.partition("    - bikes-100k\n")
    text = before + "\n".join(clips) + "\n" + rest.partition("duration: 1 s}\n")[2]
    with pytest.raises(ScenarioErrors) as caught:
        from_text(text, file="my.yaml", folder=tmp_path)
    assert [(one.file, one.line, one.key) for one in caught.value.errors] == [
        ("my.yaml", 8 + number, f"population.clips.{number}.file") for number in (17, 250, 260)
    ]
    said = str(caught.value).splitlines()
    assert f"there is no media file {tmp_path}/none.mp4 (a path in a file is relative to it" in said[0]
    assert f"{tmp_path}/films: it is a folder; name a file in it" in said[1]
    assert f"{tmp_path}/empty.mp4: it is empty; copy it anew" in said[2]
    for number, name in ((17, "none.mp4"), (250, "films"), (260, "empty.mp4")):
        text = text.replace(f"{{file: {name}, rate: 1 Mbit/s}}", f"bikes-{100 + number}k")
    (made,) = from_text(text, file="my.yaml", folder=tmp_path)
    names = [lower(made, "sim", seed)["flows"][0]["app"]["rtp"]["clip"]["name"] for seed in (1, 18, 300)]
    assert names == ["carphone-100k", "bikes-117k", "carphone-399k"]


@needs_ffmpeg
def test_a_file_that_is_no_film_is_told_before_the_others_play(folder: Path) -> None:
    (folder / "other.mp4").write_text("no video")
    with pytest.raises(ScenarioError) as caught:
        from_text(TEXT, file="my.yaml", folder=folder)
    assert (caught.value.line, caught.value.key) == (10, "population.clips.2.file")
    assert f"{folder}/other.mp4: ffprobe cannot read it" in str(caught.value)
    assert not (folder / "cache/clips").exists(), "nothing is encoded before all is known"


@needs_ffmpeg
def test_a_file_is_read_once_as_long_as_it_does_not_change(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whichever process: hundreds of files take ffprobe many seconds."""

    def probed() -> list[str]:
        asked: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(own_files, "streams_in", lambda file: asked.append(file.name) or streams_in(file))
            own_files._head.cache_clear()
            from_text(TEXT, folder=folder)
        return sorted(asked)

    assert probed() == ["other.mp4", "own.mp4"]
    assert probed() == []
    os.utime(folder / "own.mp4", ns=(0, 0))
    assert probed() == ["own.mp4"]


def close(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may enter the folder from now on; its mode would not keep root out."""

    def guarded(really: Callable[..., object]) -> Callable[..., object]:
        def ask(self: Path, *given: object, **more: object) -> object:
            if folder in self.parents:
                raise PermissionError(13, "Permission denied", str(self))
            return really(self, *given, **more)

        return ask

    for name in ("stat", "open"):
        monkeypatch.setattr(Path, name, guarded(getattr(Path, name)))


@needs_ffmpeg
def test_a_cache_that_may_not_be_searched_is_done_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_files._head.cache_clear()
    from_text(TEXT, folder=folder)
    own_files._head.cache_clear()
    close(folder / "cache", monkeypatch)
    (made,) = from_text(TEXT, folder=folder)
    assert made.id == "test/playlist"


def test_files_that_one_may_not_reach_are_told_with_those_that_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    close(tmp_path / "closed", monkeypatch)
    (tmp_path / "a.mp4").touch()
    text = TEXT.replace("own.mp4", "closed/own.mp4").replace("other.mp4", "a.mp4/other.mp4")
    with pytest.raises(ScenarioErrors) as caught:
        from_text(text, file="my.yaml", folder=tmp_path)
    assert [(one.line, one.key) for one in caught.value.errors] == [
        (9, "population.clips.1.file"),
        (10, "population.clips.2.file"),
    ]
    said = str(caught.value).splitlines()
    assert f"{tmp_path}/closed/own.mp4: Permission denied; let everybody read it" in said[0]
    assert f"there is no media file {tmp_path}/a.mp4/other.mp4 (a path in a file is relative to it" in said[1]


@needs_ffmpeg
def test_a_population_plays_files_of_ones_own(folder: Path) -> None:
    (made,) = from_text(TEXT, folder=folder)
    done = run([made], {made.id: ["sim"]}, folder / "out")
    played = []
    for outcome in done.outcomes:
        assert outcome.valid and outcome.metrics is not None
        assert outcome.metrics.flow_json("video")["received_bytes"] > 10_000
        clip = Record.open(outcome.job.directory).trial["plan"]["flows"][0]["app"]["rtp"]["clip"]
        content = Content.load(folder / "out/content" / f"{clip['content']['digest']}.json")
        played.append((clip["name"], clip["duration"] / 1e9, content.encodings[0].frames.sizes_bytes))
    assert [(name, round(duration_s)) for name, duration_s, _ in played] == [
        ("bikes-100k", 2),
        ("own-150k", 2),
        ("other-120k", 1),
    ]
    for name, duration_s, sizes in played[1:]:
        (encoded,) = (folder / "cache/clips").glob(f"{name}-{duration_s:.0f}s-*.mp4")
        assert sizes.tolist() == [frame.size for frame in packets(encoded)]
    again = run([made], {made.id: ["sim"]}, folder / "out")
    assert all(outcome.reused for outcome in again.outcomes)


@needs_ffmpeg
def test_two_clips_in_one_trial_one_of_them_a_file(folder: Path) -> None:
    more = "  more: {role: rival, system: http, clip: {file: own.mp4, rate: 150 kbit/s}}\n"
    text = TEXT.replace("population:\n", f"{more}population:\n  flow: video\n")
    (made,) = from_text(text, folder=folder)
    done = run([made], {made.id: ["sim"]}, folder / "out", repeat=2)
    for outcome in done.outcomes:
        assert outcome.valid, outcome.why
        flows = Record.open(outcome.job.directory).trial["plan"]["flows"]
        played = [next(iter(flow["app"].values()))["clip"] for flow in flows]
        assert [clip["name"] for clip in played] == [
            "bikes-100k" if outcome.job.seed == 1 else "own-150k",
            "own-150k",
        ]
        assert (played[0]["content"] == played[1]["content"]) is (outcome.job.seed == 2)
    assert len(list((folder / "out/content").iterdir())) == 2, "what is played twice is stored once"


STAND_INS = [
    "system: rtp, clip: carphone-100k, emu: {system: rtsp, clip: carphone-300k}",
    "system: {server: ./serve, player: ./play}, clip: {source: carphone, rate: 300 kbit/s, duration: 30 s}, "
    "sim: {system: http, clip: {source: bikes, rate: 1 Mbit/s, duration: 9 s}}",
    "system: rtp, clip: carphone-100k, emu: {traffic: cbr, parameters: {rate: 20 /s}}",
    "system: {server: ./serve, player: ./play}, clip: carphone-300k, sim: {system: rtp}",
]
LASTING = """\
id: test/lasting
title: Clips that last
path: {{down: {{rate: 2 Mbit/s, queue: droptail 100 ms}}}}
flows: {{video: {{role: subject, {flow}}}}}
population:
  clips:
    - {{source: bikes, rate: 100 kbit/s, duration: 1 s}}
    - {{source: carphone, rate: 200 kbit/s, duration: 4 s}}
until: {{media_end: video}}
"""


@pytest.mark.parametrize("flow", STAND_INS)
def test_a_member_lasts_as_long_in_both_modes(flow: str) -> None:
    """A stand-in's clip and the flow's own say nothing: the member's is played in both."""
    (made,) = from_text(LASTING.format(flow=flow))
    for seed, (lasting, name) in enumerate([(1, "bikes-100k"), (4, "carphone-200k")], 1):
        for mode in MODES:
            plan = lower(made, mode, seed)
            assert plan["duration"] == (2 * lasting + 30) * 10**9
            app = plan["flows"][0]["app"]
            clip = None if isinstance(app, str) else next(iter(app.values())).get("clip")
            if clip is not None:
                assert (clip["name"], clip["duration"]) == (name, lasting * 10**9)


def test_trials_that_ended_with_the_flows_own_clip_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the member's is played in place of a stand-in's; everybody else's keys are those of before."""

    def changed(text: str) -> list[str]:
        (made,) = from_text(text)
        now = {mode: resume_key(made, mode, 1) for mode in MODES}
        with monkeypatch.context() as patch:
            patch.setattr(planning, "_ends_with_the_member", lambda *_: False)
            return [mode for mode in MODES if resume_key(made, mode, 1) != now[mode]]

    assert [changed(LASTING.format(flow=flow)) for flow in STAND_INS] == [["emu"], ["sim"], [], []]
    text = LASTING.format(flow=STAND_INS[1])
    assert changed(text.replace("{media_end: video}", "{media_end: video, time: 9 s}")) == []
    assert changed(text.replace("until:", "  duration: uniform 2 s to 3 s\nuntil:")) == []
    before, _, after = text.partition("  clips:")
    assert (
        changed(f"{before}  size: 2\n  rtt: uniform 1 ms to 2 ms\nuntil:{after.partition('until:')[2]}") == []
    )


@pytest.mark.parametrize("flow", STAND_INS)
def test_a_length_that_is_drawn_is_a_members_in_both_modes(flow: str) -> None:
    text = LASTING.format(flow=flow).replace(", duration: 4 s", "")
    (made,) = from_text(text.replace("until:", "  duration: uniform 2 s to 3 s\nuntil:"))
    for seed in (1, 2, 3):
        sim, emu = (lower(made, mode, seed)["duration"] for mode in MODES)
        assert sim == emu and 34 * 10**9 <= sim <= 36 * 10**9


@pytest.mark.parametrize("clip", ["carphone-200k", "{source: carphone, rate: 200 kbit/s}"])
def test_a_member_whose_media_never_ends_is_refused(clip: str) -> None:
    """Whatever the flow's own clip says, which no trial plays."""
    text = LASTING.format(flow=STAND_INS[1])
    text = text.replace("{source: carphone, rate: 200 kbit/s, duration: 4 s}", clip)
    with pytest.raises(ScenarioError) as caught:
        from_text(text, file="my.yaml")
    assert (caught.value.line, caught.value.key) == (8, "population.clips.1")
    assert "this clip of 'video' has no duration of its own, so its media never ends (add" in str(
        caught.value
    )
    assert from_text(text.replace("{media_end: video}", "{media_end: video, time: 9 s}"))
