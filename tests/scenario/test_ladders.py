"""``ladder:`` of a flow's clip: read, refused where one encoding is played, and made where files are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from streamgauge.emu.trial_setup import flow_setups
from streamgauge.errors import ScenarioError
from streamgauge.media import Content
from streamgauge.media.ladder import DESCRIPTION
from streamgauge.metrics.shares import as_rtp, wire_rate_bps
from streamgauge.scenario import Scenario, from_text, lower
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.words import in_words
from streamgauge.units import Rate

TEXT = """\
id: test/ladder
title: A ladder
path: {down: {rate: 2 Mbit/s, queue: droptail 100 ms}}
flows:
  video:
    role: subject
    system: {server: ./serve, player: ./play}
    clip: {source: testsrc2, ladder: [235k, 560 kbit/s, 1.05M], audio: 64 kbit/s}
    sim: {system: rtp, clip: testsrc2-560k}
until: {time: 4 s}
"""


def scenario(*settings: str, text: str = TEXT) -> Scenario:
    (made,) = from_text(text, settings=settings)
    return made


def refused(*settings: str, text: str = TEXT) -> str:
    with pytest.raises(ScenarioError) as caught:
        from_text(text, settings=settings)
    return str(caught.value)


def test_a_ladder_is_read_with_short_rates_and_with_units() -> None:
    made = scenario()
    clip = made.flows["video"].clip
    assert isinstance(clip, Clip)
    assert clip.ladder == (Rate("235 kbit/s"), Rate("560 kbit/s"), Rate("1050 kbit/s"))
    assert Scenario.model_validate(made.normalised()) == made
    assert "playing testsrc2 at 235 kbit/s or 560 kbit/s or 1.05 Mbit/s" in "\n".join(in_words(made))


def test_a_clip_without_a_ladder_is_as_it_was() -> None:
    """What a record's digest and the resume key are made of."""
    made = scenario("flows.video.clip={source: testsrc2, rate: 1 Mbit/s}")
    clip = made.normalised()["flows"]["video"]["clip"]
    assert list(clip) == ["source", "rate", "audio", "frame_rate", "rate_control", "codec"]


BAD = [
    ("ladder: [235k, 200k]", "200k stands after 235k; write the rates from the lowest up"),
    ("ladder: [235, 560]", "235 has no unit; expected a bit rate"),
    ("ladder: []", "a ladder has two rates or more (write 'rate' for one)"),
    ("ladder: 235k", "ladder"),
    ("ladder: [235k]", "a ladder has two rates or more"),
    ("ladder: [235k, 560k], rate: 1 Mbit/s", "either a 'rate' or a 'ladder' of several"),
    ("duration: 4 s", "either a 'rate' or a 'ladder' of several (add such as 'rate: 550 kbit/s')"),
    ("rate: 1 Mbit/s, segment: 0 s", "key-frame interval must be above zero"),
    ("ladder: [235k, 560k], segment: 330 ms", "no whole number of frames at 25 a second"),
    ("ladder: [235k, 560k], rate_control: variable", "a ladder is H.264 at constant rates"),
    ("laddder: [235k, 560k]", "did you mean 'ladder'?"),
]


@pytest.mark.parametrize(("keys", "says"), BAD)
def test_what_is_no_ladder_is_refused_at_its_key(keys: str, says: str) -> None:
    said = refused(f"flows.video.clip={{source: testsrc2, {keys}}}")
    assert says in said and "flows.video.clip" in said


@pytest.mark.parametrize("system", ["rtp", "darwin", "rtsp", "nginx-http"])
def test_a_system_of_one_encoding_says_so(system: str) -> None:
    text = TEXT.replace("system: {server: ./serve, player: ./play}", f"system: {system}")
    text = text.replace("    sim: {system: rtp, clip: testsrc2-560k}\n", "")
    said = refused(text=text)
    assert f"flows.video.clip.ladder: '{system}' plays one encoding, not a ladder" in said
    assert "write such as 'rate: 1.05 Mbit/s' in its place" in said


def test_a_stand_in_needs_a_clip_of_its_own() -> None:
    said = refused(text=TEXT.replace("{system: rtp, clip: testsrc2-560k}", "{system: rtp}"))
    assert "'rtp' plays one encoding, not a ladder" in said
    assert lower(scenario(), "sim", 1)["flows"][0]["app"]["rtp"]["clip"]["name"] == "testsrc2-560k"


def test_its_share_is_capped_at_the_highest_encoding_with_its_sound() -> None:
    app = as_rtp(scenario().normalised()["flows"]["video"])
    assert 1_114_000 < wire_rate_bps(app) < 1.1 * 1_114_000


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_programs_of_emu_get_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMGAUGE_CACHE", str(tmp_path))
    made = scenario()
    (setup,) = flow_setups(made, lower(made, "emu", 1))
    assert setup.media is not None and setup.variables("server")["STREAMGAUGE_MEDIA"] == str(setup.media)
    content = Content.load(setup.media / DESCRIPTION)
    assert [one.name for one in content.encodings] == ["235k", "560k", "1050k", "audio"]
    assert all((setup.media / str(one.file)).is_file() for one in content.encodings)
