"""Other people's players of HTTP, without a window. A test is left out where one is not here."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest
from streamgauge.systems import javascript

PAGE = """<!doctype html><video id=v muted autoplay></video><script src="SCRIPT"></script><script>
const video = document.getElementById("v");
if ("PLAYER" === "dashjs") dashjs.MediaPlayer().create().initialize(video, "URL", true);
else { const hls = new Hls(); hls.loadSource("URL"); hls.attachMedia(video); }
</script>"""

NOBODY = 65534


def pictures(player: str, url: str, folder: Path) -> int:
    """How many a browser has shown once it is 2 s into what a JavaScript player plays."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not here")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    script = javascript.LIBRARIES[player].path
    if program is None or not script.is_file():
        pytest.skip("no Chromium, or no JavaScript of the player; make setup-browsers installs them")
    shutil.copy(script, folder / "player.js")
    page = PAGE.replace("SCRIPT", "player.js").replace("PLAYER", player)
    (folder / "index.html").write_text(page.replace("URL", url))
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages, sync.sync_playwright() as run:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        flags = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"]
        browser = run.chromium.launch(executable_path=program, args=flags)
        opened = browser.new_page()
        opened.goto(f"http://127.0.0.1:{pages.server_port}/")
        opened.wait_for_function("document.getElementById('v').currentTime > 2", timeout=30_000)
        found = opened.evaluate("document.getElementById('v').getVideoPlaybackQuality().totalVideoFrames")
        browser.close()
        pages.shutdown()
    return int(found)


def mpv(url: str) -> None:
    """Plays to the end, four times as fast."""
    if shutil.which("mpv") is None:
        pytest.skip("mpv is not here")
    command = ["mpv", "--no-config", "--vo=null", "--ao=null", "--speed=4"]
    command += ["--term-status-msg=at ${time-pos}", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "End of file" in done.stdout, done.stdout[-400:] + done.stderr[-400:]


def vlc(url: str, home: Path) -> str:
    """Plays to the end; what it said."""
    if shutil.which("cvlc") is None:
        pytest.skip("VLC is not here; make setup-browsers installs it")
    command = ["cvlc", "--no-audio", "--vout=dummy", "-vv", "--play-and-exit", url]
    if os.geteuid() == 0:
        # VLC is nobody's that is root.
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    home.chmod(0o777)
    for above in home.parents:
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    mine = {**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=mine)
    assert done.returncode == 0, done.stderr[-800:]
    return done.stderr
