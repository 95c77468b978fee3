"""Progress goes to stderr, says the time left, and keeps quiet about what takes no time."""

from __future__ import annotations

import pytest
from streamgauge.campaign import Progress
from streamgauge.cli import progress
from streamgauge.cli.progress import Bar, clock


def test_clock() -> None:
    assert clock(None) == ""
    assert clock(5.4) == "0:05 left"
    assert clock(125) == "2:05 left"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: times[0])
    return times


def test_nothing_is_said_within_the_first_second(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with Bar() as bar:
        now[0] += 0.5
        bar.update(Progress(done=1, total=2, left_s=0.5, now="a"))
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_a_line_now_and_then(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        for second in range(60):
            now[0] += 1
            bar.update(Progress(done=1 + second // 30, total=3, left_s=90 - second, now=f"{second} of 60 s"))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 4
    assert lines[0] == "1/3 trials, 1:16 left 14 of 60 s"


def test_what_is_waited_for_is_said_at_once(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        now[0] += 0.1
        bar.update(Progress(done=0, total=1, left_s=46, now="preparing media"))
        bar.update(Progress(done=0, total=1, left_s=45, now="1 of 40 s"))
        bar.update(Progress(done=0, total=1, left_s=44, now="2 of 40 s"))
    assert capsys.readouterr().err.splitlines() == [
        "0/1 trials, 0:46 left preparing media",
        "0/1 trials, 0:45 left 1 of 40 s",
    ]
