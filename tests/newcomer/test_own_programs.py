"""Somebody's own server and player, as commands: the worked example of docs/adapters.md, and what a shell in
a command is given."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from driving import Person, the_valid_one
from stranger import CHECKOUT

EXAMPLES = CHECKOUT / "examples"
DOLLARS = """
  dollars:
    role: rival
    system:
      server: python3 -u -m http.server --bind $STREAMGAUGE_SERVER $STREAMGAUGE_PORT
      player: >-
        sh -c 'echo "$$ $STREAMGAUGE_PORT $STREAMGAUGE_LEVEL ${STREAMGAUGE_UNSET:-unset}"
        > $STREAMGAUGE_OUT/said; exec curl -sS -o /dev/null http://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/'
      env: {STREAMGAUGE_LEVEL: high}
"""


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_to_ffmpeg(person: Person) -> None:
    """In 8 s, and with a shell's own variables in commands beside them."""
    shutil.copy(EXAMPLES / "nginx.conf", person.home)
    text = (EXAMPLES / "nginx-ffmpeg.yaml").read_text(encoding="utf-8")
    short = text.replace("time: 30 s", "time: 8 s").replace("video.start + 10 s", "video.start + 3 s")
    assert short.count("8 s") == short.count("video.start + 3 s") == 1
    before, path, flows = short.partition("flows:\n")
    trial = the_valid_one(person.trials(before + path + DOLLARS.lstrip("\n") + flows))
    logs = Path(trial["directory"]) / "logs"
    assert '"GET /clip.mp4 HTTP/1.1" 206' in (logs / "video-server-access.log").read_text()
    # 550 kbit/s for 8 s, if ffmpeg reads at the pace of a viewer and ahead as far as its buffers go.
    assert trial["flows"]["video"]["received_bytes"] > 400_000
    number, port, level, unset = (logs / "dollars-player-said").read_text().split()
    assert number.isdigit() and port.isdigit() and (level, unset) == ("high", "unset")
    assert port != number


def test_a_packager_and_an_origin(anyone: Person) -> None:
    """The page's example of several processes, in 12 s: live segments come about one after another.

    As anyone: `test_several_processes` has such sides as root and as an ordinary user."""
    text = (EXAMPLES / "hls.yaml").read_text(encoding="utf-8")
    short = text.replace("time: 30 s", "time: 12 s")
    assert short.count("12 s") == 1
    trial = the_valid_one(anyone.trials(short))
    logs = Path(trial["directory"]) / "logs"
    fetched = (logs / "video-server-origin-stderr.log").read_text()
    assert fetched.count("GET /live.m3u8") >= 3 and "GET /live3.ts" in fetched
    # 550 kbit/s for about 10 s.
    assert trial["flows"]["video"]["received_bytes"] > 400_000
