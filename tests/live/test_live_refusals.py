"""Who may not ask, and what cannot be asked: one line each, and the trial goes on."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from live_client import Shown, shown
from streamgauge.cli import main
from streamgauge.live.connections import MOST_CONNECTIONS
from streamgauge.live.session import MOST_A_SECOND

SCENARIO = "today/demo-rtsp-udp-medium"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    out = str(tmp_path_factory.mktemp("refusals"))
    with shown(["run", SCENARIO, "--mode", "sim", "--live", "--pace", "0.2", "--out", out]) as found:
        yield found
        assert found.popen.poll() is None, "the trial went on"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/events"), ("GET", "/scenario"), ("POST", "/change")]
)
@pytest.mark.parametrize("token", ["", "wrong", "\u00fcber".encode().hex()])
def test_without_the_token_nothing_is_told(live: Shown, method: str, path: str, token: str) -> None:
    body = json.dumps({"down.rate": "1 kbit/s"}) if method == "POST" else None
    status, answer = live.request(method, path, body, token=token)
    assert status == 403 and "token" in answer["error"]


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"origin": "null"}, {"host": "evil.example:80"}]
)
def test_other_hosts_and_their_pages_are_refused(live: Shown, headers: dict[str, str]) -> None:
    status, answer = live.request("POST", "/change", json.dumps({"down.rate": "1 kbit/s"}), **headers)
    assert status == 403 and "\n" not in answer["error"]


def test_the_pages_own_origin_may_ask(live: Shown) -> None:
    origin = f"http://127.0.0.1:{live.port}"
    status, answer = live.request("POST", "/change", json.dumps({"down.delay": "1 ms"}), origin=origin)
    assert status == 200 and answer["t_s"] >= 0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("no json", "no JSON"),
        ("[]", "an object with settings"),
        ("{}", "an object with settings"),
        ('{"down.rate": "500"}', "has no unit"),
        ('{"down.rate": 500}', "no unit"),
        ('{"down.rat": "5 kbit/s"}', "did you mean 'down.rate'?"),
        ('{"up.rate": "5 kbit/s"}', "up has no rate that could change"),
        ('{"down.ecn": "on"}', "never marks"),
        ('{"down.loss": "101 %"}', "more than every packet"),
        ('{"down.queue": "1 B"}', "less than any packet"),
        ('{"down.delay": "2 min 3"}', "not"),
        ('{"up.delay": "7200 s"}', "at most an hour"),
        ('{"mark": ""}', "mark"),
        ("x" * 20_000, "bytes at most"),
        ("[" * 16_000, "no JSON"),
    ],
)
def test_what_makes_no_sense_is_one_line(live: Shown, body: str, why: str) -> None:
    status, answer = live.request("POST", "/change", body)
    assert status in (400, 413)
    assert why in answer["error"] and "\n" not in answer["error"]


def test_a_flood_of_changes_is_bounded_and_told(live: Shown) -> None:
    asked = [live.change(down_jitter=f"{n % 5} ms") for n in range(4 * MOST_A_SECOND)]
    # However slowly they come, no second has more; on a slow machine none may be refused.
    refused = [answer for status, answer in asked if status == 429]
    assert all(str(MOST_A_SECOND) in answer["error"] for answer in refused)
    assert all(status in (200, 429) for status, _ in asked)


def test_connections_that_ask_for_nothing_give_way(live: Shown) -> None:
    """Each takes a descriptor from the trial."""
    opened = Path(f"/proc/{live.popen.pid}/fd")
    before = len(list(opened.iterdir()))
    with ExitStack() as held:
        for _ in range(3 * MOST_CONNECTIONS):
            one = held.enter_context(socket.create_connection(("127.0.0.1", live.port), 10))
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert live.request("GET", "/live.js")[0] == 200
        assert len(list(opened.iterdir())) <= before + MOST_CONNECTIONS + 2


def test_a_second_page_is_served_and_both_are_told(live: Shown) -> None:
    first, second = live.events(), live.events()
    assert next(first)[0] == "hello" and next(second)[0] == "hello"
    assert next(sample for name, sample in second if name == "message" and sample["pages"] == 2)
    first.close()
    second.close()


def test_a_port_that_is_taken_is_named_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status = main(["run", SCENARIO, "--mode", "sim", "--live", "--live-port", str(port)])
    assert status == 4
    assert f"--live-port {port}: Address already in use; give another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--live=paper"], "no such way"),
        (["--live", "--capture"], "--capture: a shown trial of sim keeps none"),
        (["--live", "--repeat", "3"], "leave out --repeat"),
        (["--live", "--pace", "0"], "no pace"),
        (["hessler/ftp-no", "--live"], "name one"),
    ],
)
def test_what_cannot_be_shown_is_said(more: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SCENARIO, "--mode", "sim", *more]) == 3
    assert why in capsys.readouterr().err


def test_the_terminal_has_a_line_a_second_where_it_is_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamgauge", "run", SCENARIO, "--mode", "sim"]
    command += ["--live=terminal", "--pace", "20", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("live: ")]
    assert len(lines) > 5 and "kbit/s" in lines[-1] and "valid" in lines[-1]
    assert (tmp_path / "live").is_dir()
