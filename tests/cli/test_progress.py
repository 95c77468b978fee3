"""Progress goes to stderr, says the time left, and keeps quiet about what takes no time."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from streamgauge.campaign import Progress
from streamgauge.cli import progress
from streamgauge.cli.progress import BAR, Bar, BarWithWords, clock


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


def test_without_a_terminal_ever_longer_pauses(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """A trial of ten minutes: how far it is, at once, and after 15, 30, 60, 120, 240 s more."""
    with Bar() as bar:
        for second in range(1, 600):
            now[0] += 1
            name = "today/x emu seed 2"
            told = f"{second} of 600 s"
            running = (f"{name}: {told}",)
            bar.update(Progress(done=1, total=3, left_s=900 - second, now=told, running=running))
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "1/3 trials, 14:59 left: today/x emu seed 2: 1 of 600 s"
    seconds = [int(line.rpartition(": ")[2].split()[0]) for line in lines]
    assert seconds == [1, 16, 46, 106, 226, 466]


def test_tenths_are_told_but_not_in_a_hurry(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        for done in range(1000):
            now[0] += 0.1
            bar.update(Progress(done=done, total=1000, left_s=(1000 - done) / 10, now=f"a sim seed {done}"))
    lines = capsys.readouterr().err.splitlines()
    assert 10 <= len(lines) <= 12
    shares = [int(line.partition("/")[0]) // 100 for line in lines[1:]]
    assert shares == sorted(set(shares)), "each tenth once"


def test_what_is_waited_for_is_said_at_once(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        now[0] += 0.1
        bar.update(Progress(done=0, total=1, left_s=46, now="preparing media"))
        bar.update(Progress(done=0, total=1, left_s=45, now="1 of 40 s"))
        bar.update(Progress(done=0, total=1, left_s=44, now="2 of 40 s"))
    assert capsys.readouterr().err.splitlines() == [
        "0/1 trials, 0:46 left: preparing media",
        "0/1 trials, 0:45 left: 1 of 40 s",
    ]


def test_a_wait_is_told_at_once_and_then_rarely(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Bar() as bar:
        for waited in range(0, 300, 10):
            words = f"a emu seed 1 is waiting (process 42, 'streamgauge run b'), {waited} s so far"
            bar.update(Progress(done=0, total=1, left_s=None, now=words, waits=True))
            now[0] += 10
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0/1 trials: a emu seed 1 is waiting (process 42, 'streamgauge run b'), 0 s so far"
    assert [int(line.split()[-4]) for line in lines] == [0, 20, 50, 110, 230]


@given(
    st.lists(
        st.tuples(
            st.floats(0, 40),
            st.integers(0, 20),
            st.sampled_from(["a sim seed 1", "preparing media", "3 of 40 s", "a sim seed 2"]),
            st.booleans(),
        ),
        max_size=60,
    )
)
def test_no_line_comes_twice(told: list[tuple[float, int, str, bool]]) -> None:
    at = 100.0
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as err:
        patch.setattr(progress.time, "monotonic", lambda: at)
        with Bar() as bar:
            done = 0
            for passed, more, words, waits in told:
                at += passed
                done = min(done + more, 999)
                bar.update(Progress(done=done, total=1000, left_s=5.0, now=words, waits=waits))
        lines = err.getvalue().splitlines()
    assert len(lines) == len(set(lines))
    assert len(lines) <= 4 + 10 + sum(passed for passed, *_ in told) / 15
    assert bool(lines) == bool(told)


def test_where_colours_are_forced_into_a_file_no_bar_is(
    now: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Bar() as bar:
        now[0] += 2
        bar.update(Progress(done=1, total=2, left_s=2, now="a"))
    assert capsys.readouterr().err == "1/2 trials, 0:02 left: a\n"


def test_words_for_which_there_is_no_room_beside_the_bar_stand_below() -> None:
    words = "a emu seed 1 is waiting for another emu trial (process 42, 'streamgauge run b [c]'), 20 s so far"
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, color_system=None, legacy_windows=False)
    columns = (BarColumn(BAR), TextColumn("{task.description}"))
    with BarWithWords(*columns, console=console, auto_refresh=False) as bar:
        task = bar.add_task("", total=2)
        bar.show(task, "3 of 40 s [d]", total=2, completed=1)
        bar.refresh()
        beside = screen.getvalue()
        bar.show(task, words, total=2, completed=1)
        bar.refresh()
    assert "3 of 40 s [d]" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", beside).splitlines()[-1]
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue().removeprefix(beside)).splitlines()
    assert all(len(line) <= 60 for part in lines for line in part.split("\r"))
    assert words in " ".join(" ".join(lines).split())
