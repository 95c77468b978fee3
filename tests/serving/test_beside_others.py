"""What fails while other tests run beside these (scripts/real-players.sh) is judged after them."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import starved
from starved import again_if_starved


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What these tests' tests tell, on a machine with nothing else to do."""
    found: list[str] = []
    monkeypatch.setattr(starved, "STARVED", found)
    monkeypatch.setattr(starved, "_waited_s", lambda: 0.0)
    return found


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Run until the event is set."""
    held = tmp_path / "held"
    monkeypatch.setenv("STREAMGAUGE_TESTS_BESIDE", str(held))
    there, over = threading.Event(), threading.Event()

    def hold() -> None:
        with held.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            there.set()
            over.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    there.wait()
    yield over
    over.set()
    thread.join()


def test_one_that_load_spoilt_passes_after_them(others: threading.Event, told: list[str]) -> None:
    tries: list[bool] = []

    @again_if_starved
    def test() -> None:
        tries.append(others.is_set())
        threading.Timer(0.2, others.set).start()
        assert others.is_set(), "too late"

    test()
    assert tries == [False, True]
    assert len(told) == 1 and "beside other tests: too late" in told[0]


def test_one_that_is_wrong_fails_after_them(others: threading.Event, told: list[str]) -> None:
    tries: list[bool] = []

    @again_if_starved
    def test() -> None:
        tries.append(others.is_set())
        threading.Timer(0.2, others.set).start()
        raise AssertionError("wrong")

    with pytest.raises(AssertionError, match="wrong"):
        test()
    assert tries == [False, True]


@pytest.mark.usefixtures("told")
def test_without_them_it_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMGAUGE_TESTS_BESIDE", raising=False)
    tries: list[int] = []

    @again_if_starved
    def test() -> None:
        tries.append(1)
        raise AssertionError("wrong")

    with pytest.raises(AssertionError):
        test()
    assert len(tries) == 1
