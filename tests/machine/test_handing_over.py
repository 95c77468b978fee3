"""What host and guest hand each other: heads, words, archives, requests."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.machine import run as run_module
from streamgauge.emu.machine.guest_files import GuestFiles
from streamgauge.emu.machine.parcel import HEAD, PARCEL_JOB, PARCEL_RESULT, head_of, read_head
from streamgauge.emu.machine.run import _take, _write_job
from streamgauge.emu.machine.snapshot import EVERY_NS, set_clock
from streamgauge.emu.machine.virtual import as_guest_sees
from streamgauge.emu.machine.words import GuestWords
from streamgauge.emu.trial_request import TrialRequest
from streamgauge.errors import CannotRunError


@given(st.integers(0, 2**40))
def test_a_head_says_its_length(length: int) -> None:
    head = head_of(PARCEL_JOB, length)
    assert len(head) == HEAD
    assert read_head(head, PARCEL_JOB) == length
    with pytest.raises(ValueError, match="SGDONE01"):
        read_head(head, PARCEL_RESULT)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers()), max_size=8), st.data())
def test_words_are_whole_lines_however_they_arrive(words: list[dict[str, int]], data: st.DataObject) -> None:
    text = b"".join(json.dumps(word).encode() + b"\n" for word in words)
    said, console = os.memfd_create("words"), os.memfd_create("console")
    try:
        reader, found, at = GuestWords(said, console), [], 0
        while at < len(text):
            size = data.draw(st.integers(1, len(text) - at))
            os.write(said, text[at : at + size])
            at += size
            found += list(reader.new())
        assert found == words
    finally:
        os.close(said)
        os.close(console)


def test_a_console_tells_why_it_is_the_last() -> None:
    console = os.memfd_create("console")
    try:
        assert GuestWords(console, console).last_of_console() == "it said nothing"
        os.write(console, b"booting\nKernel panic - not syncing: no root\nat all\n")
        assert "no root" in GuestWords(console, console).last_of_console()
    finally:
        os.close(console)


def request(folder: Path) -> TrialRequest:
    program = folder / "programs" / "server"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n", encoding="ascii")
    (folder / "clip.mp4").write_bytes(b"clip")
    (folder / "beside.txt").write_text("beside", encoding="ascii")
    helper = folder / "helpers" / "one.py"
    helper.parent.mkdir(exist_ok=True)
    helper.write_text("", encoding="ascii")
    line = {"command": "./programs/server --port $STREAMGAUGE_PORT beside.txt -x y", "helpers": [str(helper)]}
    flow = {
        "name": "a",
        "index": 3,
        "system": "command",
        "parameters": {},
        "media": str(folder / "clip.mp4"),
        "commands": {"server": [line]},
        "environment": {},
        "working_folder": str(folder),
    }
    return TrialRequest(
        plan={},
        directory=str(folder / "out"),
        engine="/somewhere/engine",
        way="root",
        fifo_priority=50,
        spin=False,
        capture=False,
        sabotage=[],
        flows=[flow],
    )


def test_a_guest_sees_nothing_of_this_machines_folders(tmp_path: Path) -> None:
    seen, files = as_guest_sees(request(tmp_path))
    assert str(tmp_path) not in seen.to_json()
    assert "/somewhere" not in seen.to_json()
    named = {file.relative_to(tmp_path).as_posix(): str(place) for place, file in files.files.items()}
    assert named == {
        "clip.mp4": "/job/files/3/media.mp4",
        "programs/server": "/job/files/3/folder/programs/server",
        "beside.txt": "/job/files/3/folder/beside.txt",
        "helpers/one.py": "/job/files/3/helpers/0/one.py",
    }


def test_a_words_program_is_no_file(tmp_path: Path) -> None:
    """A text of more than 255 bytes without a slash names no file that there could be."""
    asked = request(tmp_path)
    text = "print(1)\n" * 100
    asked.flows[0]["commands"]["server"][0]["command"] = f"python3 -c '{text}' beside.txt"
    seen, files = as_guest_sees(asked)
    assert text in seen.flows[0]["commands"]["server"][0]["command"]
    assert tmp_path / "beside.txt" in files.files.values()


def test_two_flows_have_the_same_files_each(tmp_path: Path) -> None:
    """The clip once, for nobody writes into it; programs where each flow looks for them."""
    asked = request(tmp_path)
    asked.flows.append({**asked.flows[0], "name": "b", "index": 4})
    seen, files = as_guest_sees(asked)
    wanted = [Path(flow["media"]) for flow in seen.flows]
    wanted += [Path(f"/job/files/{index}/folder/programs/server") for index in (3, 4)]
    wanted += [Path(f"/job/files/{index}/helpers/0/one.py") for index in (3, 4)]
    assert set(wanted) <= set(files.files)
    assert list(files.files.values()).count(tmp_path / "clip.mp4") == 1


def test_a_job_is_the_same_wherever_it_is_run_from(tmp_path: Path) -> None:
    jobs = []
    for name in ("here", "there"):
        seen, files = as_guest_sees(request(tmp_path / name))
        job = os.memfd_create("job")
        _write_job(job, {"line": seen.to_json(), "seed": 1}, files)
        jobs.append(os.pread(job, 1 << 20, 0))
        os.close(job)
    assert jobs[0] == jobs[1]
    length = read_head(jobs[0][:HEAD], PARCEL_JOB)
    with tarfile.open(fileobj=io.BytesIO(jobs[0][HEAD : HEAD + length])) as tar:
        assert tar.getnames()[0] == "job.json"
        assert "files/job/files/3/media.mp4" in tar.getnames()


def test_a_job_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(bytes(200_000))
    monkeypatch.setattr(run_module, "JOB_BYTES", 100_000)
    job = os.memfd_create("job")
    with pytest.raises(CannotRunError, match="--machine host, or shorter media"):
        _write_job(job, {}, GuestFiles({Path("/job/files/clip.mp4"): clip}))
    os.close(job)


def test_a_job_takes_nothing_where_the_guest_has_its_own(tmp_path: Path) -> None:
    job = os.memfd_create("job")
    with pytest.raises(CannotRunError, match="a /run of its own"):
        _write_job(job, {}, GuestFiles({Path("/run/program"): tmp_path}))
    os.close(job)


def result(members: list[tuple[str, bytes | None, str]]) -> int:
    """What a guest might hand over: files, folders (no content) and links."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content, link in members:
            member = tarfile.TarInfo(name)
            if link:
                member.type, member.linkname = tarfile.SYMTYPE, link
            elif content is None:
                member.type = tarfile.DIRTYPE
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content or b""))
    descriptor = os.memfd_create("result")
    os.write(descriptor, head_of(PARCEL_RESULT, len(data.getvalue())) + data.getvalue())
    return descriptor


def test_a_record_comes_out(tmp_path: Path) -> None:
    answer = json.dumps({"done": {"rows": 1}}).encode()
    descriptor = result(
        [
            ("answer.json", answer, ""),
            ("files", None, ""),
            ("files/logs", None, ""),
            ("files/logs/a", b"x", ""),
        ]
    )
    assert _take(descriptor, tmp_path) == {"done": {"rows": 1}}
    assert (tmp_path / "logs" / "a").read_bytes() == b"x"
    os.close(descriptor)


@pytest.mark.parametrize("name", ["files/../outside", "files/logs/../../outside"])
def test_a_guest_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    descriptor = result([("answer.json", b"{}", ""), (name, b"x", "")])
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(TrialBrokenError, match="outside"):
        _take(descriptor, inside)
    assert not (tmp_path / "outside").exists()
    os.close(descriptor)


def test_links_of_a_guest_are_left_there(tmp_path: Path) -> None:
    descriptor = result([("answer.json", b"{}", ""), ("files/link", b"", "/etc/passwd")])
    _take(descriptor, tmp_path)
    assert list(tmp_path.iterdir()) == []
    os.close(descriptor)


@given(st.integers(0, 10**14), st.integers(0, 10**13))
def test_a_clock_is_set_to_the_next_round_time(
    tmp_path_factory: pytest.TempPathFactory, bias: int, count: int
) -> None:
    file = tmp_path_factory.mktemp("clock") / "state"
    head = b"before \x05\x0ctimer/icount" + struct.pack(">I", 1)
    file.write_bytes(head + struct.pack(">qq", bias, count) + b"after timer/icount")
    for _ in range(2):  # setting it again changes nothing
        set_clock(file)
        set_to, still = struct.unpack_from(">qq", file.read_bytes(), len(head))
        assert still == count
        assert (set_to + still) % EVERY_NS == 0
        assert 0 <= set_to + still - (bias + count) < EVERY_NS


def test_a_state_without_a_clock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"nothing")
    with pytest.raises(TrialBrokenError, match="no clock"):
        set_clock(tmp_path / "state")


def test_a_folder_that_is_brought_stays_in_its_place(tmp_path: Path) -> None:
    asked, mine = request(tmp_path / "scenario"), tmp_path / "mine"
    (mine / "bin").mkdir(parents=True)
    (mine / "bin/server").write_text("#!/bin/sh\n", encoding="ascii")
    asked.flows[0]["commands"]["server"][0]["command"] = f"{mine}/bin/server beside.txt"
    seen, files = as_guest_sees(asked, [mine])
    assert files.brought == [mine]
    # Once: with its folder.
    assert mine / "bin/server" not in files.files.values()
    assert tmp_path / "scenario/beside.txt" in files.files.values()
    assert seen.flows[0]["commands"]["server"][0]["command"] == f"{mine}/bin/server beside.txt"
    # Alone it goes along without what lies beside it.
    assert mine / "bin/server" in as_guest_sees(asked)[1].files.values()
