"""Archives that a kernel starts from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.emu.machine.cpio import archive

NAMES = st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)


def entries(data: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each entry, read by the format's own description."""
    found, at = {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        length, name_length = fields[6], fields[11]
        name = data[at + 110 : at + 110 + name_length - 1].decode()
        begin = at + 110 + name_length
        begin += -begin % 4
        if name == "TRAILER!!!":
            return found
        assert name not in found
        found[name] = (fields[1], data[begin : begin + length])
        at = begin + length + -length % 4


@given(st.dictionaries(NAMES, st.binary(max_size=100), max_size=6))
def test_what_goes_in_comes_out(files: dict[str, bytes]) -> None:
    clash = any(f"{one}/" == other[: len(one) + 1] for one in files for other in files)
    if clash:
        return  # a file cannot be a folder
    found = entries(archive(dict(files)))
    assert {name: content for name, (mode, content) in found.items() if mode & 0o100000} == files
    for name in files:
        for above in Path(name).parents[:-1]:
            assert found[str(above)][0] & 0o040000


@given(st.dictionaries(NAMES, st.binary(max_size=20), min_size=2, max_size=4))
def test_the_same_files_are_the_same_bytes(files: dict[str, bytes]) -> None:
    backwards = dict(reversed(files.items()))
    assert archive(dict(files)) == archive(backwards)


def test_cpio_itself_reads_it(tmp_path: Path) -> None:
    if shutil.which("cpio") is None:
        pytest.skip("cpio is not here")
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to("program")
    data = archive({"bin/program": program, "bin/link": link, "empty": None})
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["cpio", "-idm", "--quiet"], input=data, cwd=out, check=True)
    assert (out / "bin" / "link").readlink() == Path("program")
    assert (out / "bin" / "program").stat().st_mode & 0o777 == 0o755
    assert (out / "empty").is_dir()
