"""The real player against cameras: each says something in its own way, and what it sends is played."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from camera import BLOCKS, FRAMES, HEAD, SEQ, SOUND, TIME, VIDEO, Odd, camera
from starved import again_if_starved
from streamgauge.emu.engine import engine


def play(odd: Odd, *options: str) -> tuple[int, dict[str, Any], str]:
    """Status, report and errors of a player of that camera."""
    with camera(odd) as (url, _):
        command = [
            str(engine()),
            "play",
            url,
            "--json",
            "--duration",
            "20",
            *(options or ("--transport", "tcp")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def all_of(odd: dict[str, Odd], check: Callable[[str, int, dict[str, Any], str], None]) -> None:
    """Plays many at once: each takes a second."""
    with ThreadPoolExecutor(12) as pool:
        for name, played in zip(odd, pool.map(play, odd.values()), strict=True):
            check(name, *played)


def head(change: Callable[[str], str]) -> Odd:
    """A camera whose answers begin so."""
    return Odd(head=change)


PLAYED = {
    "plain": Odd(),
    # Lines of the description that no player needs.
    "port": Odd(sdp=HEAD + VIDEO.replace("video 0", "video -1353744643")),
    "port beyond all": Odd(sdp=HEAD + VIDEO.replace("video 0", "video 99999999999/7")),
    "bandwidth": Odd(sdp=HEAD + VIDEO.replace("a=rtpmap", "b=AS:-1\r\nb=\r\na=rtpmap")),
    "media alone": Odd(sdp=VIDEO),
    "no o, s, t": Odd(sdp="a=range:npt=0-1\r\nv=0\r\n" + VIDEO),
    "line feeds": Odd(sdp=(HEAD + VIDEO).replace("\r\n", "\n")),
    "zero at the end": Odd(sdp=HEAD + VIDEO + "\r\n\r\n\0"),
    "latin-1": Odd(sdp=HEAD.replace("s=x", "s=K\xfcche") + VIDEO, encoding="latin-1"),
    "garbage": Odd(sdp=HEAD + "<?xml?>\r\n=\r\nz=&\r\n" + VIDEO + "trailing"),
    "no parameter sets": Odd(
        sdp=HEAD + "m=video 0 RTP/AVP 96\r\na=rtpmap: 96  h264\r\na=control:trackID=1\r\n"
    ),
    "fmtp": Odd(sdp=HEAD + VIDEO.replace("packetization-mode=1; ", " packetization-mode = 1 ;;")),
    # Where the tracks are.
    "no control": Odd(
        sdp=(HEAD + VIDEO).replace("a=control:*\r\n", "").replace("a=control:trackID=1\r\n", "")
    ),
    "absolute control": Odd(sdp=HEAD + VIDEO.replace("control:", "control:{url}/")),
    "star": Odd(sdp=HEAD + VIDEO.replace("trackID=1", "*")),
    "no base": Odd(base=None),
    "empty base": Odd(base=""),
    "base without scheme": Odd(base="127.0.0.1/cam/"),
    "base is another scheme's": Odd(base="localhost:554/cam/"),
    # Transport and Session.
    "no transport": Odd(transport=None),
    "no channels": Odd(transport="RTP/AVP/TCP;unicast"),
    "lower case": Odd(transport="rtp/avp/tcp; Unicast; Interleaved = {a} - {b} ;"),
    "decimal ssrc": Odd(transport="RTP/AVP/TCP;unicast;interleaved={a}-{b};ssrc=3735928559"),
    "another ssrc": Odd(transport="RTP/AVP/TCP;ssrc=0;unicast;interleaved={a}-{b};mode=DANCE"),
    "one channel for both": Odd(transport="RTP/AVP/TCP;unicast;interleaved={a}-{a}"),
    "other channels": Odd(shift=4),
    "session": Odd(session=" 1234 5678 ; timeout = 60 ; x"),
    # Heads of answers.
    "small letters": head(lambda text: re.sub(r"(?m)^[A-Za-z-]+:", lambda name: name[0].lower(), text)),
    "no cseq": head(lambda text: text.replace("CSeq:", "X-CSeq:")),
    "wrong cseq": head(lambda text: text.replace("CSeq: ", "CSeq: 7")),
    "length twice": head(lambda text: re.sub(r"(Content-Length: \d+\r\n)", r"\1\1", text)),
    "odd lines": head(
        lambda text: text.replace("\r\n", "\r\nX-Odd\r\nCache-Control:\r\nServer: K\xfcche\r\n: x\r\n", 1)
    ),
    "no reason": head(lambda text: text.replace("200 OK", "200")),
    "blank lines": head(lambda text: "\r\n\r\n" + text),
    "no options": Odd(answers={"OPTIONS|GET_PARAMETER": "501 Not Implemented"}),
    "packets before the answer": Odd(before_play=b"$\x09\x00\x04abcd"),
    "it moved": Odd(answers={r"DESCRIBE \S+/cam RTSP": "302 Moved\r\nLocation: {url}2"}),
}


@again_if_starved
def test_what_a_camera_says_otherwise_does_not_stop_the_play() -> None:
    def check(name: str, status: int, report: dict[str, Any], error: str) -> None:
        assert (status, report.get("frames_shown")) == (0, FRAMES), f"{name}: {report} {error}"
        assert not report["passed_over"], name

    all_of(PLAYED, check)


def info(text: str) -> Odd:
    """A camera that says so of its packets."""
    return Odd(info=text)


PASSED_OVER = {
    "zero": info("url={url}/trackID=1;seq=0;rtptime=0"),
    "far": info(f"url={{url}}/trackID=1;seq={SEQ + 5000};rtptime={TIME + 900_000}"),
    "seq alone": info("url={url}/trackID=1;seq=0;rtptime={time}"),
    "rtptime alone": info("url={url}/trackID=1;seq={seq};rtptime=0"),
    "another track's URL": info("url={url}/trackID=9;seq=1;rtptime=2"),
    "later than the end": info(f"url={{url}}/trackID=1;seq={SEQ};rtptime={TIME - 450_000}"),
    "before the start": info(f"url={{url}}/trackID=1;seq={SEQ};rtptime={TIME + 450_000}"),
    "garbage": info("url=;seq=;rtptime="),
    "negative": info("url={url}/trackID=1;seq=-1;rtptime=-1"),
}


@again_if_starved
def test_rtp_info_that_fits_no_packet_is_passed_over_and_named() -> None:
    def check(name: str, status: int, report: dict[str, Any], error: str) -> None:
        assert (status, report.get("frames_shown")) == (0, FRAMES), f"{name}: {report} {error}"
        assert any("RTP-Info" in wrong for wrong in report["passed_over"]), f"{name}: {report}"

    all_of(PASSED_OVER, check)


@again_if_starved
def test_nothing_is_named_of_rtp_info_that_is_missing_or_right() -> None:
    def check(name: str, status: int, report: dict[str, Any], error: str) -> None:
        assert (status, report.get("frames_shown")) == (0, FRAMES), f"{name}: {report} {error}"
        assert not report["passed_over"], name

    all_of({"missing": Odd(info=None), "relative": info("url=trackID=1;seq={seq};rtptime={time}")}, check)


@again_if_starved
def test_a_server_without_ports_of_its_own_sends_all_the_same() -> None:
    for transport in (
        "RTP/AVP;unicast;client_port={port}-{rtcp}",
        "RTP/AVP/UDP;unicast;client_port={port};server_port=",
        "RTP/AVP;unicast;client_port={port}-{rtcp};server_port=x-y;source=;ssrc= 12",
    ):
        status, report, error = play(Odd(over_udp=transport), "--transport", "udp")
        assert (status, report["frames_shown"]) == (0, FRAMES), f"{transport}: {report} {error}"


@again_if_starved
def test_a_static_payload_type_needs_no_rtpmap() -> None:
    with_sound = Odd(sdp=HEAD + VIDEO + SOUND, info=None)
    status, report, _ = play(with_sound)
    assert (status, report["frames_shown"], report["packets_received"]) == (0, FRAMES, FRAMES + BLOCKS)
    assert report["left_out"] == []
    status, report, error = play(Odd(sdp=HEAD + SOUND, info=None))
    assert (status, report["packets_received"], report["left_out"]) == (0, BLOCKS, []), error


@again_if_starved
def test_a_track_that_cannot_be_played_is_left_out_by_its_name() -> None:
    metadata = (
        "m=application 0 RTP/AVP 107\r\na=rtpmap:107 vnd.onvif.metadata/90000\r\na=control:trackID=3\r\n"
    )
    refused = {"SETUP .*trackID=2": "404 Stream Not Found"}
    for sdp, answers, left_out in (
        (HEAD + VIDEO + metadata, {}, "application vnd.onvif.metadata"),
        (HEAD + VIDEO + "m=audio 0 RTP/AVP (null)\r\na=rtpmap\r\na=control:trackID=2\r\n", {}, "audio"),
        (HEAD + VIDEO + "m=audio 0 RTP/AVP 99\r\na=control:trackID=2\r\n", {}, "audio of payload type 99"),
        (HEAD + VIDEO + "m=video 0 RTP/AVP 33\r\na=control:trackID=2\r\n", {}, "video MP2T"),
        (HEAD + VIDEO + SOUND, refused, "audio PCMA (the server refused SETUP: 404"),
    ):
        status, report, error = play(Odd(sdp=sdp, answers=answers, info=None))
        assert (status, report["frames_shown"]) == (0, FRAMES), f"{left_out}: {report} {error}"
        assert report["left_out"] and report["left_out"][0].startswith(left_out), report


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (
            Odd(answers={"DESCRIBE": '401 Unauthorized\r\nWWW-Authenticate: Digest realm="cam", nonce="0"'}),
            "Digest",
        ),
        (Odd(answers={"DESCRIBE": '401 Unauthorized\r\nWWW-Authenticate: Basic realm="cam"'}), "Basic"),
        (
            Odd(answers={"DESCRIBE": "302 Moved\r\nLocation: rtsp://192.0.2.1/other"}),
            "rtsp://192.0.2.1/other",
        ),
        (Odd(answers={"DESCRIBE": "404 Not Found"}), "404 Not Found"),
    ],
    ids=["digest", "basic", "elsewhere", "absent"],
)
def test_what_is_refused_is_refused_by_name(odd: Odd, words: str) -> None:
    status, _, error = play(odd)
    assert status == 3 and words in error, error
