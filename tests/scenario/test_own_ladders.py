"""``files:`` of a flow's clip: a ladder of one's own, held against what one is before anything starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from streamgauge.campaign.plan import resume_key
from streamgauge.emu.trial_setup import flow_setups
from streamgauge.errors import MediaError, ScenarioError
from streamgauge.media import Content, content_given, own_ladder, store_at
from streamgauge.media.ladder import DESCRIPTION
from streamgauge.metrics.shares import as_rtp, wire_rate_bps
from streamgauge.record import legend
from streamgauge.scenario import Scenario, from_text, lower
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.loading import ScenarioErrors
from streamgauge.scenario.lower import as_drawn
from streamgauge.scenario.model import MODES
from streamgauge.scenario.words import in_words
from streamgauge.units import Rate, Time

needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
S = 10**9
TEXT = """\
id: test/own-ladder
title: A ladder of one's own
path: {down: {rate: 2 Mbit/s, queue: droptail 100 ms}}
flows:
  video:
    role: subject
    system: {server: ./serve, player: ./play}
    clip:
      files: [high.mp4, low.mp4]
    sim: {system: rtp, clip: testsrc2-300k}
until: {time: 4 s}
"""


def encode(
    file: Path, rate: str, *more: str, size: str = "160x120", seconds: int = 2, sound: bool = False
) -> None:
    source = f"testsrc2=size={size}:rate=25:duration={seconds}"
    command = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-f", "lavfi", "-i", source]
    command += ["-f", "lavfi", "-i", f"sine=duration={seconds}", "-b:a", "32k"] if sound else []
    command += ["-b:v", rate, "-g", "25", "-keyint_min", "25", "-sc_threshold", "0", "-pix_fmt", "yuv420p"]
    subprocess.run([*command, *more, str(file)], check=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files that are a ladder, the higher with sound, and some that are none with the lower."""
    folder = tmp_path_factory.mktemp("own")
    encode(folder / "low.mp4", "60k")
    encode(folder / "high.mp4", "300k", sound=True)
    encode(folder / "odd.mp4", "300k", "-g", "20", "-keyint_min", "20")
    encode(folder / "long.mp4", "300k", seconds=3)
    encode(folder / "upright.mp4", "300k", size="120x160")
    encode(folder / "part2.mp4", "300k", "-c:v", "mpeg4")
    sound = ["-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=2", "sound.mp4"]
    subprocess.run(["ffmpeg", *sound], cwd=folder, check=True)
    shutil.copyfile(folder / "sound.mp4", folder / "sound2.mp4")
    sound[sound.index("sine=duration=2")] = "sine=duration=4"
    subprocess.run(["ffmpeg", *sound[:-1], "long-sound.mp4"], cwd=folder, check=True)
    turned = ["-i", "high.mp4", "-c", "copy", "-metadata:s:v:0", "rotate=270", "turned.mp4"]
    subprocess.run(["ffmpeg", "-nostdin", "-loglevel", "error", *turned], cwd=folder, check=True)
    (folder / "text.mp4").write_text("no video")
    (folder / "empty.mp4").touch()
    shutil.copyfile(folder / "low.mp4", folder / "again.mp4")
    (folder / "more").mkdir()
    shutil.copyfile(folder / "high.mp4", folder / "more/low.mp4")
    return folder


def scenario(folder: Path, files: str = "[high.mp4, low.mp4]", text: str = TEXT) -> Scenario:
    (one,) = from_text(text.replace("[high.mp4, low.mp4]", files), file="my.yaml", folder=folder)
    return one


def refused(folder: Path, files: str, text: str = TEXT) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        scenario(folder, files, text)
    return caught.value


@needs_ffmpeg
def test_its_files_are_relative_to_the_scenarios_and_taken_as_they_are(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path / "cache"))
    one = scenario(made)
    assert Scenario.model_validate(one.normalised()) == one
    assert f"playing {made}/high.mp4, {made}/low.mp4 as they are" in "\n".join(in_words(one))
    (setup,) = flow_setups(one, lower(one, "emu", 1))
    assert setup.media is not None and setup.variables("server")["STREAMGAUGE_MEDIA"] == str(setup.media)
    for name in ("low.mp4", "high.mp4"):
        assert (setup.media / name).read_bytes() == (made / name).read_bytes()
    content = Content.load(setup.media / DESCRIPTION)
    assert [(each.name, each.file) for each in content.encodings] == [
        ("low.mp4", "low.mp4"),
        ("high.mp4", "high.mp4"),
        ("audio", "high.mp4"),
    ]
    assert content.boundaries_ns().tolist() == [0, S]
    # The same again is the same folder, and another segment another description.
    (again,) = flow_setups(scenario(made), lower(one, "emu", 2))
    assert again.media == setup.media
    longer = scenario(made, "[high.mp4, low.mp4]\n      segment: 2 s")
    (other,) = flow_setups(longer, lower(longer, "emu", 1))
    assert other.media is not None and other.media != setup.media
    assert Content.load(other.media / DESCRIPTION).boundaries_ns().tolist() == [0]


@needs_ffmpeg
def test_a_campaign_stores_its_content_once_and_its_plans_name_it(made: Path, tmp_path: Path) -> None:
    one, store = scenario(made), store_at(tmp_path)
    plans = [lower(one, "emu", seed, contents=store) for seed in (1, 2)]
    (stored,) = (tmp_path / "content").iterdir()
    assert [plan["flows"][0]["content"] for plan in plans] == [stored.stem] * 2
    assert lower(one, "emu", 1)["flows"][0]["content"] == stored.stem
    assert "content" not in lower(one, "sim", 1)["flows"][0], "sim plays the stand-in's"
    # The plan is one that sim and the emulator read.
    assert legend(plans[0])["flow"]
    # What it comes to at most is known without the files.
    given = content_given(plans[0]["flows"][0], tmp_path / "scenario=x/mode=emu/seed=1")
    assert given is not None and given.digest == stored.stem
    wanted = sum(given.encoding(name).bit_rate_bps for name in ("high.mp4", "audio"))
    assert wanted < wire_rate_bps(as_rtp(one.normalised()["flows"]["video"], given)) < 1.2 * wanted


@needs_ffmpeg
def test_a_file_that_changes_decides_the_resume_key(made: Path, tmp_path: Path) -> None:
    for name in ("low.mp4", "high.mp4"):
        shutil.copyfile(made / name, tmp_path / name)
    one = scenario(tmp_path)
    key, sim = resume_key(one, "emu", 1), resume_key(one, "sim", 1)
    os.utime(tmp_path / "low.mp4", ns=(0, 0))
    assert resume_key(one, "emu", 1) != key
    assert resume_key(one, "sim", 1) == sim, "which plays something else"


BAD = [
    (
        "[low.mp4, none.mp4]",
        "files.1",
        "there is no media file {made}/none.mp4 (a path in a file is relative to it",
    ),
    ("[text.mp4, low.mp4]", "files.0", "{made}/text.mp4: ffprobe cannot read it"),
    ("[low.mp4, empty.mp4]", "files.1", "{made}/empty.mp4: it is empty; copy it anew"),
    ("[sound.mp4, sound2.mp4]", "files", "there are no pictures; name the files that have them, too"),
    (
        "[low.mp4, sound.mp4, sound2.mp4]",
        "files",
        "sound.mp4 and sound2.mp4: each is sound alone, and a ladd",
    ),
    ("[low.mp4, long-sound.mp4]", "files", "long-sound.mp4: its sound lasts 4.0"),
    ("[low.mp4, turned.mp4]", "files.1", "{made}/turned.mp4: it asks players to turn its pictures by"),
    ("[low.mp4]", "files", "has two or more, one of each rate (write such as 'file: {made}/low.mp4' with"),
    ("[]", "files", "has two or more, one of each rate (write such as 'files: [low.mp4, high.mp4]')"),
    ("[low.mp4, low.mp4]", "files.1", "two files are called low.mp4, and programs get all of them in one"),
    ("[low.mp4, more/low.mp4]", "files.1", "in one folder (rename one of them)"),
    ("[low.mp4, again.mp4]", "files", "both have {rate} on average; give one file for each rate"),
    ("[low.mp4, odd.mp4]", "files", "do not align. odd.mp4 has one at 0.800 s, low.mp4 has none there. Enc"),
    ("[low.mp4, long.mp4]", "files", "low.mp4 and long.mp4: they last 2.000 s and 3.000 s; cut them to one"),
    ("[low.mp4, upright.mp4]", "files", "their pictures are 160x120 and 120x160, wide and upright; scale"),
    ("[low.mp4, part2.mp4]", "files", "one is h264, the other mpeg4; encode all with one codec"),
    ("[high.mp4, low.mp4]\n      rate: 1 Mbit/s", "rate", "files are taken as they are (leave 'rate' out)"),
    ("[high.mp4, low.mp4]\n      duration: 2 s", "duration", "taken as they are (leave 'duration' out)"),
    ("[high.mp4, low.mp4]\n      audio: 32 kbit/s", "audio", "taken as they are (leave 'audio' out)"),
    ("[high.mp4, low.mp4]\n      file: low.mp4", "files", "either a 'source', a 'file' or 'files'"),
]


@needs_ffmpeg
@pytest.mark.parametrize(("files", "key", "says"), BAD)
def test_what_is_no_ladder_is_told_at_its_key(files: str, key: str, says: str, made: Path) -> None:
    error = refused(made, files)
    rate = own_ladder([made / "low.mp4", made / "high.mp4"]).encodings[0].bit_rate_bps
    assert says.format(made=made, rate=f"{rate / 1000:g} kbit/s") in str(error)
    line = 10 if "\n" in files and key != "files" else 9
    assert (error.file, error.line, error.key) == ("my.yaml", line, f"flows.video.clip.{key}")
    assert str(error).count("\n") == 0


@needs_ffmpeg
def test_all_files_that_cannot_be_read_are_told_at_once(made: Path) -> None:
    error = refused(made, "[none.mp4, text.mp4, low.mp4]")
    assert isinstance(error, ScenarioErrors)
    assert [one.key for one in error.errors] == ["flows.video.clip.files.0", "flows.video.clip.files.1"]


@needs_ffmpeg
@pytest.mark.parametrize("system", ["rtp", "darwin", "http", "rtsp", "nginx-http"])
def test_a_system_of_one_encoding_says_so_of_files_too(system: str, made: Path) -> None:
    text = TEXT.replace("system: {server: ./serve, player: ./play}", f"system: {system}")
    text = text.replace("    sim: {system: rtp, clip: testsrc2-300k}\n", "")
    error = refused(made, "[high.mp4, low.mp4]", text)
    assert error.key == "flows.video.clip.files" and error.line == 9
    assert f"'{system}' plays one encoding, not a ladder (write such as 'file: " in str(error)


@needs_ffmpeg
@pytest.mark.parametrize(
    ("population", "key"),
    [
        ("{size: 2, rate: 'uniform 100 kbit/s to 200 kbit/s'}", "rate"),
        ("{size: 2, duration: uniform 1 s to 2 s}", "duration"),
        ("{size: 2, encodings: [1, 2]}", "encodings"),
        ("{clips: [{files: [high.mp4, low.mp4]}]}", "clips.0.files"),
    ],
)
def test_nothing_of_files_is_drawn(population: str, key: str, made: Path) -> None:
    error = refused(made, "[high.mp4, low.mp4]", f"{TEXT}population: {population}\n")
    assert error.key == f"population.{key}"


STAND_IN = TEXT.replace(
    """    system: {server: ./serve, player: ./play}
    clip:
      files: [high.mp4, low.mp4]
    sim: {system: rtp, clip: testsrc2-300k}
""",
    """    system: http
    clip: {source: carphone, rate: 300 kbit/s, duration: 3 s}
    emu:
      system: {server: ./serve, player: ./play}
      clip: {files: [high.mp4, low.mp4]}
""",
)


@needs_ffmpeg
@pytest.mark.parametrize(
    "drawn",
    ["rate: 'uniform 100 kbit/s to 200 kbit/s'", "duration: uniform 1 s to 2 s", "encodings: [1, 2]"],
)
def test_nothing_of_a_stand_ins_files_is_drawn(drawn: str, made: Path) -> None:
    text = f"{STAND_IN}population:\n  size: 2\n  {drawn}\n"
    error = refused(made, "[high.mp4, low.mp4]", text)
    assert (error.file, error.line, error.key) == ("my.yaml", 15, f"population.{drawn.partition(':')[0]}")
    assert "what plays in emu is of files, which are taken as they are (leave it out, or" in str(error)
    # Other things are, and where nobody plays the files.
    assert lower(scenario(made, text=text.replace(drawn, "rtt: uniform 1 ms to 2 ms")), "emu", 1)
    if "encodings" not in drawn:
        assert lower(scenario(made, text=f"{text}modes: [sim]\n"), "sim", 1)


@needs_ffmpeg
@pytest.mark.parametrize("text", [TEXT, STAND_IN], ids=["own", "stand-in"])
def test_members_are_played_in_place_of_files_and_their_rates_are_drawn(text: str, made: Path) -> None:
    clips = "clips: [{source: bikes, rate: 100 kbit/s, duration: 2 s}, {source: carphone, rate: 1 Mbit/s}]"
    rates = "rate: one of 150 kbit/s, 200 kbit/s"
    lengths = "duration: uniform 3 s to 4 s"
    one = scenario(made, text=f"{text}population:\n  {clips}\n  {rates}\n  {lengths}\n")
    for seed, source in enumerate(("bikes", "carphone"), 1):
        for mode in MODES:
            clip = as_drawn(one, mode, seed).in_mode(mode).flows["video"].clip
            assert isinstance(clip, Clip) and clip.source == source and clip.duration is not None
            assert clip.rate in (Rate("150 kbit/s"), Rate("200 kbit/s")) and clip.duration > Time("3 s")
            assert lower(one, mode, seed)["duration"] == 4 * S


@needs_ffmpeg
def test_its_media_never_ends_by_itself(made: Path) -> None:
    error = refused(made, "[high.mp4, low.mp4]", TEXT.replace("{time: 4 s}", "{media_end: video}"))
    assert "so its media never ends (add 'time' beside 'media_end')" in str(error)


@needs_ffmpeg
def test_a_scenario_made_in_python_is_told_too(made: Path) -> None:
    data = scenario(made).normalised()
    data["flows"]["video"]["clip"]["files"] = [str(made / "low.mp4"), str(made / "odd.mp4")]
    with pytest.raises(MediaError, match=r"low\.mp4 and odd\.mp4: their key frames do not align"):
        lower(Scenario.model_validate(data), "emu", 1)
