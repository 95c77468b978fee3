"""Sides of several processes: started in order, each with its log and its sign of being ready, each death
told by its name; and nothing of them stays."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from driving import Person, Watched, end, events, the_valid_one
from scenarios import scenario

ORIGIN = (
    "exec python3 -u -m http.server --bind $STREAMGAUGE_SERVER --directory $STREAMGAUGE_SHARED "
    "$STREAMGAUGE_PORT"
)
FETCH = "http://$STREAMGAUGE_SERVER:$STREAMGAUGE_PORT/segment"
# Each of the first two takes a second, and leaves what the next would miss.
PACKAGED = f"""
  video:
    role: subject
    system:
      name: several
      server:
        prepare:
          command: sh -c 'sleep 1; echo prepared > $STREAMGAUGE_SHARED/order'
          ready: end
        packager:
          command: >-
            sh -c 'cp $STREAMGAUGE_SHARED/order $STREAMGAUGE_OUT/found; sleep 1;
            head -c 20000 /dev/zero > $STREAMGAUGE_SHARED/segment; echo packaging; exec sleep 987651'
          ready: $STREAMGAUGE_SHARED/segment
        logger:
          command: sh -c 'echo watching; exit 3'
          essential: off
        origin: sh -c 'ls $STREAMGAUGE_SHARED > $STREAMGAUGE_OUT/found; {ORIGIN}'
      player:
        page:
          command: >-
            python3 -u -m http.server --bind 127.0.0.1 --directory $STREAMGAUGE_HELPERS $STREAMGAUGE_PORT
          ready: port
          helpers: [page.html, assets]
        browser: >-
          sh -c 'curl -sS http://127.0.0.1:$STREAMGAUGE_PORT/page.html > $STREAMGAUGE_OUT/page;
          curl -sS http://127.0.0.1:$STREAMGAUGE_PORT/assets/play.js > $STREAMGAUGE_OUT/script;
          echo "{{\\"t_s\\": 1, \\"name\\": \\"loaded\\"}}" >> $STREAMGAUGE_EVENTS;
          while curl -sS -o $STREAMGAUGE_OUT/got {FETCH}; do sleep 0.5; done'
"""


def with_a_page(person: Person) -> None:
    """What the player's helpers are, open to their owner alone."""
    assets = person.home / "assets"
    assets.mkdir(exist_ok=True)
    for file, text in ((person.home / "page.html", "<p>a page</p>\n"), (assets / "play.js", "play();\n")):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        subprocess.run(["chown", "-R", f"{person.uid}:{person.uid}", file, assets], check=True)


def run(person: Person, flows: str, name: str) -> dict[str, Any]:
    file = person.scenario(scenario(flows, until="4 s"), name)
    done = person.run("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.home / name), "--json")
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    return dict(trial)


def test_each_starts_when_those_before_it_are_ready(person: Person) -> None:
    with_a_page(person)
    trial = the_valid_one(person.trials(scenario(PACKAGED, until="5 s")))
    logs = {file.name: file for file in (Path(trial["directory"]) / "logs").iterdir()}
    assert logs["video-server-packager-found"].read_text() == "prepared\n"
    assert logs["video-server-origin-found"].read_text().split() == ["order", "segment"]
    assert logs["video-server-packager-stdout.log"].read_text() == "packaging\n"
    assert logs["video-server-logger-stdout.log"].read_text() == "watching\n"
    assert "GET /segment" in logs["video-server-origin-stderr.log"].read_text()
    assert "GET /page.html" in logs["video-player-page-stderr.log"].read_text()
    assert logs["video-player-browser-page"].read_text() == "<p>a page</p>\n"
    assert logs["video-player-browser-script"].read_text() == "play();\n"
    assert not [name for name in logs if "shared" in name or "helpers" in name], "what they share is not kept"
    assert trial["flows"]["video"]["received_bytes"] > 40_000
    assert events(trial, "loaded")
    provenance = json.loads((Path(trial["directory"]) / "provenance.json").read_text())
    started = {one["name"]: one["started_s"] for one in provenance["processes"]}
    assert list(started) == ["prepare", "page", "packager", "logger", "origin", "browser"]
    assert started["prepare"] + 1 <= started["packager"] and started["packager"] + 1 <= started["origin"] < 0
    assert started["page"] < 0 <= started["browser"]


def several(name: str, server: str, player: str, more: str = "") -> str:
    """A flow of processes, each side's as the inside of a mapping."""
    return f"  {name}: {{role: subject, system: {{server: {{{server}}}, player: {{{player}}}}}{more}}}"


READY = "sh -c 'touch $STREAMGAUGE_READY; exec sleep 60'"
DIES = "sh -c 'sleep 2; echo no more >&2; exit 3'"
KILLED = "sh -c 'touch $STREAMGAUGE_READY; sleep 2; kill -9 $$'"
DYING = [
    several("packs", f"packager: {DIES}, origin: {READY}", "main: sleep 60"),
    several("serves", f"packager: sleep 60, origin: {KILLED}", "main: sleep 60"),
    several("loads", f"main: {READY}", "page: sh -c 'sleep 1; kill -11 $$', browser: sleep 60"),
    # Whose packager has packaged all, whose logger nobody needs, whose player is done.
    several(
        "is_well",
        f"packager: 'true', logger: {{command: 'false', essential: off}}, origin: {READY}",
        "page: sleep 1, browser: sleep 2",
    ),
    several(
        "stops", f"packager: sleep 60, main: {READY}", "page: sleep 60, browser: sleep 60", ", stop: 2 s"
    ),
]
SAID = {
    "packs": "the server's packager of flow packs ended with status 3 (no more), ",
    "serves": "the server's origin of flow serves was killed by SIGKILL, ",
    "loads": "the player's page of flow loads was killed by SIGSEGV, ",
}


def test_the_one_that_died_is_named(anybody: Person) -> None:
    trial = run(anybody, "\n".join(DYING), "dying")
    for flow, said in SAID.items():
        of_it = [why for why in trial["why"] if f"flow {flow}" in why and "processor" not in why]
        assert len(of_it) == 1 and of_it[0].startswith(said), trial["why"]
    for flow in ("is_well", "stops"):
        assert not [why for why in trial["why"] if f"flow {flow}" in why and "processor" not in why], trial[
            "why"
        ]
    provenance = json.loads((Path(trial["directory"]) / "provenance.json").read_text())
    ended = {one["name"]: one["ended_s"] for one in provenance["processes"] if one["flow"] == "stops"}
    assert ended["page"] >= 2 and ended["browser"] >= 2, "a stop ends all of a player"
    assert ended["packager"] is None and ended["main"] is None


@pytest.mark.parametrize(
    ("packager", "said"),
    [
        (
            "sh -c 'echo no such clip >&2; exit 3'",
            "the server's packager of flow media ended with status 3 (no such clip) before the trial began.",
        ),
        (
            "{command: 'true', ready: $STREAMGAUGE_SHARED/live.m3u8}",
            "packager of flow media ended with status 0 before the trial began, and did not write",
        ),
    ],
    ids=["with an error", "with nothing done"],
)
def test_one_that_dies_before_the_trial_is_named(anybody: Person, packager: str, said: str) -> None:
    # Dead before the one behind it is ready, which never is.
    slow = "slow: {command: sleep 60, ready: file}"
    flow = several("media", f"packager: {packager}, {slow}, origin: {READY}", "main: sleep 60")
    (why,) = run(anybody, flow, f"early-{len(packager)}")["why"]
    assert said in why


def test_one_that_cannot_says_so(anybody: Person) -> None:
    unable = "sh -c 'echo no codec >&2; exit 127'"
    flow = several("media", f"packager: {unable}, origin: {READY}", "main: sleep 60")
    file = anybody.scenario(scenario(flow), "unable")
    done = anybody.run("run", file, "--mode", "emu", "--seed", "1", "--out", str(anybody.home / "unable"))
    assert done.returncode == 4, done.stderr
    said = " ".join(done.stderr.split())
    assert (
        "the server's packager of flow media cannot do what the scenario asks" in said and "no codec" in said
    )


def test_ctrl_c_leaves_none_of_them(person: Person) -> None:
    with_a_page(person)
    file = person.scenario(scenario(PACKAGED, until="60 s"))
    watched = Watched(person.popen("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.out)))
    try:
        for which in ("packager", "origin"):
            watched.find(which)
        time.sleep(0.5)
        watched.look()
        watched.popen.send_signal(signal.SIGINT)
        _, said = watched.popen.communicate(timeout=60)
    finally:
        end(watched.popen)
    watched.assert_gone()
    assert "Traceback" not in said
    assert not list(person.out.rglob(".seed=*.partial"))
