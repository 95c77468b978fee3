"""Two Chromiums as a call: the requested programs, what their counters prove, and what goes wrong."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from streamgauge.errors import CannotRunError
from streamgauge.scenario import load
from streamgauge.systems.adapter import ACTIONS, PROGRAMS, Clock, FlowSetup
from streamgauge.systems.adapters import check_programs, has_camera
from streamgauge.systems.events import event
from streamgauge.systems.processes import check_processes
from streamgauge.systems.webrtc_chromium import SYSTEM, WebrtcChromium

sys.path.insert(0, str(PROGRAMS))
import browser_call
from devtools import Browser, BrowserGoneError, PageError

CHROMIUM = next(filter(None, map(shutil.which, browser_call.NAMES)), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (make setup-browsers)")
PAGE = PROGRAMS / "call" / "page.html"


def flow(folder: Path, **parameters: str) -> FlowSetup:
    return FlowSetup(
        name="v",
        index=0,
        system="webrtc-chromium",
        parameters=parameters,
        media=folder / "clip.mp4",
        server_ip="10.0.0.1",
        player_ip="10.0.0.2",
        port=6000,
        folder=folder,
        plan={"start": 0},
        trial={"duration": 10**9},
    )


def read(folder: Path, events: list[dict[str, Any]], **parameters: str) -> tuple[list[Any], list[str]]:
    """The events and faults of a call whose two ends said that."""
    from streamgauge.systems.adapter import Collected

    found = Collected(events=events)
    clock = Clock(t0_monotonic_ns=0, t0_realtime_ns=0, started={}, ended_monotonic_ns=10**12)
    WebrtcChromium().read(flow(folder, **parameters), clock, found)
    return found.events, found.faults


MET = event(0, "connected", 0.1, "s")


def sent(packets: int, marked: int) -> list[dict[str, Any]]:
    return [
        MET,
        event(1, "packets_sent", packets, "packets"),
        event(1, "packets_sent_with_ect1", marked, "packets"),
    ]


def test_each_side_has_a_browser_and_the_server_a_camera(tmp_path: Path) -> None:
    processes = WebrtcChromium().processes(flow(tmp_path, controller="scream", most_rate="900 kbit/s"))
    check_processes(processes)
    assert [(one.side, one.name) for one in processes] == [
        ("server", "camera"), ("server", "browser"), ("player", ""),
    ]  # fmt: skip
    camera, *ends = processes
    assert camera.command[0] == "ffmpeg" and camera.ready == "end"
    for one in ends:
        assert one.signals and one.control and one.early
        assert one.files["settings.json"]["controller"] == "scream"  # type: ignore[index]
        assert one.files["settings.json"]["most_rate_bps"] == 900_000  # type: ignore[index]
    assert SYSTEM.actions("emu", {}) == ACTIONS


def test_the_clip_is_a_camera_whose_rate_is_not_the_flows() -> None:
    assert has_camera({"system": "webrtc-chromium"})
    assert not has_camera({"system": "rtsp"}) and not has_camera({"system": "call"})


@pytest.mark.parametrize(
    ("controller", "packets", "marked", "fault"),
    [
        ("gcc", 500, 0, None),
        ("scream", 500, 500, None),
        ("scream", 500, 0, "no packet was sent with ECT(1)"),
        ("gcc", 500, 500, "500 packets were sent with ECT(1)"),
        ("gcc", 0, 0, "sent no packet of media"),
    ],
)
def test_the_counter_of_ect1_proves_the_controller(
    tmp_path: Path, controller: str, packets: int, marked: int, fault: str | None
) -> None:
    _, faults = read(tmp_path, sent(packets, marked), controller=controller)
    assert len(faults) == (fault is not None)
    assert fault is None or fault in faults[0]


def test_ends_that_never_met_are_a_fault_with_its_reason(tmp_path: Path) -> None:
    _, (fault,) = read(tmp_path, [event(5, "call_failed", None, "", "ICE is failed")])
    assert fault == "the two ends of the call never met: ICE found no path (ICE is failed)"


def test_pictures_are_numbered_by_their_times_in_rtp_across_its_wrap(tmp_path: Path) -> None:
    ms, step = 10**6, 90_000 // 25
    first = 2**32 - step
    encoded = [
        event((100 + 40 * n + late) * ms, name, 900, "B", f"rtp {(first + n * step) % 2**32}")
        for n, (name, late) in enumerate([("key_frame", 6), ("frame_encoded", 2), ("frame_encoded", 4)])
    ]
    shown = [
        event(at * ms, "frame_shown", None, "1", f"rtp {rtp}") for at, rtp in ((180, first), (262, step))
    ]
    told, faults = read(tmp_path, [event(0, "camera", 25, "1/s"), *sent(9, 0), *encoded, *shown])
    assert faults == []
    assert [one["value"] for one in told if one["name"] == "frame_shown"] == [0, 2]
    # The second picture left the encoder first: captured at 102 + 40 n ms.
    latencies = [one["value"] for one in told if one["name"] == "live_latency"]
    assert latencies == pytest.approx([0.078, 0.080])


def test_a_file_that_is_no_film_is_refused_by_name(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.y4m", tmp_path / "bad.y4m"
    good.write_bytes(b"YUV4MPEG2 W640 H360 F30000:1001 Ip A1:1\nFRAME\n")
    assert browser_call.header_of(good) == {
        "width": 640, "height": 360, "frame_rate": pytest.approx(29.97, abs=0.001),
    }  # fmt: skip
    for content in (b"", b"RIFF....AVI ", b"YUV4MPEG2 W640 H360\n", b"YUV4MPEG2 W640 H360 F25:0\n"):
        bad.write_bytes(content)
        with pytest.raises(browser_call.CannotCallError, match=r"bad\.y4m is no Y4M"):
            browser_call.header_of(bad)


def test_addresses_are_parted_from_descriptions() -> None:
    udp = "candidate:1 1 udp 2122 10.0.0.1 5000 typ host generation 0"
    lines = ["v=0", f"a={udp}", "a=candidate:2 1 tcp 15 10.0.0.1 9 typ host", "a=mid:0"]
    lines += ["a=candidate:3 1 udp 2122 fd00::2 5001 typ host", "a=end-of-candidates"]
    assert browser_call.parted("\r\n".join(lines)) == ("v=0\r\na=mid:0\r\n", [udp])


def test_a_machine_without_chromium_says_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunError, match=r"chromium is missing; install it .*apt-get install chromium"):
        check_programs(flow(tmp_path))


def test_in_sim_str0m_stands_in_with_the_rate_of_the_browsers() -> None:
    (scenario,) = load("today/call-chromium-medium", mutants=False)
    stand_in = scenario.flows["video"].in_mode("sim")
    assert stand_in.system == "webrtc" and stand_in.clip is None
    assert str(stand_in.parameters["most_rate"]) == "1.5 Mbit/s"


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    assert CHROMIUM is not None
    monkeypatch.setenv("STREAMGAUGE_EVENTS", str(tmp_path / "events.jsonl"))
    # Chromium binds a socket there, whose path may have 108 bytes.
    with tempfile.TemporaryDirectory() as own:
        folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), own)
        command = [CHROMIUM, *browser_call.FLAGS, f"--user-data-dir={own}/profile"]
        one = Browser(
            command, log=tmp_path / "chromium.log", environment={"PATH": "/usr/bin:/bin", **folders}
        )
        yield one
        one.end()


@needs_chromium
def test_a_real_browser_without_the_field_trials_is_refused(browser: Browser, tmp_path: Path) -> None:
    """It is started without them, as is another version that does not have them."""
    browser.open(PAGE, ready="offer")
    zero_ns, error_ns = browser.page_clock()
    assert zero_ns > 0 and 0 < error_ns < 10**9
    with pytest.raises(PageError, match="NotFoundError"):
        browser.call('offer({"width": 64, "height": 64, "frame_rate": 25, "codec": "vp8"})')
    told = browser.call(
        "(async () => { newConnection(); pc.addTransceiver('video'); "
        "await pc.setLocalDescription(await pc.createOffer()); return gathered(); })()"
    )
    description, _ = browser_call.parted(told)
    assert "m=video" in description
    end = browser_call.End({"side": "server", "controller": "scream"}, browser)
    with pytest.raises(
        browser_call.CannotCallError, match=r"^\S*Chrome/\d+\.\S* has no feedback by RFC 8888"
    ):
        end.check(description, ["candidate"])
    with pytest.raises(browser_call.CannotCallError, match="found no address"):
        end.check(description, [])
    browser_call.End({"side": "server", "controller": "gcc"}, browser).check(description, ["candidate"])
    browser.process.kill()
    with pytest.raises(BrowserGoneError, match="killed by SIGKILL"):
        browser.call("1")
