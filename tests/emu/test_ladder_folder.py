"""A ladder in emu: its server serves the folder, its player fetches the description and what it names."""

from __future__ import annotations

from pathlib import Path

from driving import Person, the_valid_one
from scenarios import scenario
from streamgauge.media import Content, content_of_file

LADDER = """
  video:
    role: subject
    system:
      server: >-
        python3 -u -m http.server --bind $STREAMGAUGE_SERVER --directory $STREAMGAUGE_MEDIA
        $STREAMGAUGE_PORT
      player: >-
        sh -c 'for file in content.json 100k.mp4 200k.mp4 audio.mp4;
        do curl -sSf -o $STREAMGAUGE_OUT/$file http://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/$file; done'
    clip: {source: testsrc2, ladder: [100k, 200k], audio: 32 kbit/s, duration: 2 s}
"""


def test_a_ladder_is_a_folder_that_is_served(person: Person) -> None:
    trial = the_valid_one(person.trials(scenario(LADDER, until="5 s", rate="1 Mbit/s")))
    logs = Path(trial["directory"]) / "logs"
    content = Content.load(logs / "video-player-content.json")
    assert [one.name for one in content.encodings] == ["100k", "200k", "audio"]
    for one in content.encodings:
        (fetched,) = content_of_file(logs / f"video-player-{one.file}").encodings
        assert fetched.frames == one.frames
