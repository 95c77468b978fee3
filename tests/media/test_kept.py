"""Encodings that several make at once: one of them is kept, for all."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamgauge.media.encode import _kept


def test_of_two_that_encode_the_same_the_first_is_kept_for_both(tmp_path: Path) -> None:
    kept, begun, first_done = tmp_path / "clips/one.mp4", threading.Barrier(2), threading.Event()

    def encode(name: str) -> str:
        def write(part: Path) -> None:
            begun.wait(10)  # both have seen that it is not there
            if name == "second":
                first_done.wait(10)
            part.write_text(name)

        # What a campaign's worker reads of it, and names by its digest.
        read = _kept(kept, write).read_text()
        first_done.set()
        return read

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(encode, ["first", "second"])) == ["first", "first"]
    assert kept.read_text() == "first" and [one.name for one in kept.parent.iterdir()] == ["one.mp4"]


def test_on_a_file_system_without_links_it_is_kept_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    kept = _kept(tmp_path / "clips/one.mp4", lambda part: part.write_text("it") and None)
    assert kept.read_text() == "it" and [one.name for one in kept.parent.iterdir()] == ["one.mp4"]
