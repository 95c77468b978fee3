"""Files for a virtual machine: how they are packed, and which folders may be brought."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from streamgauge.cli import main
from streamgauge.emu.machine import guest_files as guest_files_module
from streamgauge.emu.machine.guest_files import GuestFiles, brought_by, digest_of
from streamgauge.errors import CannotRunError


def laid(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, said in contents.items():
        (folder / name).write_bytes(said)
    return folder


def test_one_within_another_goes_once(tmp_path: Path) -> None:
    inner, other = laid(tmp_path / "a/b", {}), laid(tmp_path / "ab", {})
    assert brought_by([inner, other, tmp_path / "a", inner]) == (tmp_path / "a", other)


def packed(files: GuestFiles) -> tarfile.TarFile:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", dereference=True) as tar:
        files.add_to(tar)
    archive.seek(0)
    return tarfile.open(fileobj=archive)


def test_what_is_brought_is_as_it_was(tmp_path: Path) -> None:
    """Links are links, to what is there and to what is not; two names of a file are two files."""
    mine = laid(tmp_path / "mine", {"a": b"1"})
    (mine / "empty").mkdir()
    (mine / "link").symlink_to("a")
    (mine / "within").symlink_to(mine)
    (mine / "nowhere").symlink_to("/usr/bin/of-the-guest")
    (mine / "b").hardlink_to(mine / "a")
    with packed(GuestFiles(brought=[mine])) as tar:
        found = {one.name.removeprefix(f"files{mine}"): one for one in tar}
        assert set(found) == {"", "/a", "/b", "/empty", "/link", "/nowhere", "/within"}
        assert [found[name].isreg() for name in ("/a", "/b")] == [True, True]
        assert found["/empty"].isdir() and found["/link"].linkname == "a"
        assert found["/nowhere"].linkname == "/usr/bin/of-the-guest"


def test_a_folder_is_brought_by_the_name_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a link to it, and from the folder beside it."""
    laid(tmp_path / "real", {"a": b"1"})
    (tmp_path / "mine").symlink_to("real")
    laid(tmp_path / "work", {})
    monkeypatch.chdir(tmp_path / "work")
    (mine,) = brought_by([Path("../mine")])
    assert mine == tmp_path / "mine"
    with packed(GuestFiles(brought=[mine])) as tar:
        assert tar.getmember(f"files{mine}").isdir()
        assert tar.getmember(f"files{mine}/a").isreg()
    with pytest.raises(CannotRunError, match=r"none: is not there"):
        packed(GuestFiles(brought=[tmp_path / "none"]))


def test_what_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = laid(tmp_path / "mine", {"a": b"1"})

    def refused(tar: tarfile.TarFile, name: Path, *_: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied", str(name))

    monkeypatch.setattr(tarfile.TarFile, "add", refused)  # root may read everything
    with pytest.raises(CannotRunError, match=r"mine/a: may not be read"):
        packed(GuestFiles(brought=[mine]))


def test_a_named_link_is_a_file_and_an_empty_folder_is_there(tmp_path: Path) -> None:
    laid(tmp_path, {"a": b"1"})
    (tmp_path / "link").symlink_to("a")
    with packed(GuestFiles({Path("/job/x"): tmp_path / "link"}, made=[Path("/job/folder")])) as tar:
        assert tar.getmember("files/job/x").isreg()
        assert tar.getmember("files/job/folder").isdir()
    with pytest.raises(CannotRunError, match=r"none: is not there"):
        packed(GuestFiles({Path("/job/x"): tmp_path / "none"}))


def test_what_cannot_be_brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotRunError, match=f"--with {tmp_path}/none: there is no such folder"):
        brought_by([tmp_path / "none"])
    with pytest.raises(CannotRunError, match=r"--with .*/file: there is no such folder"):
        brought_by([laid(tmp_path, {"file": b""}) / "file"])
    for folder in ("/", "/usr", "/usr/bin", "/etc"):
        with pytest.raises(CannotRunError, match=r"has a /.* of its own. Copy .* such as /opt/mine"):
            brought_by([Path(folder)])
    monkeypatch.setattr(guest_files_module, "JOB_BYTES", 10)
    laid(tmp_path / "small", {"a": bytes(10)})
    assert brought_by([tmp_path / "small"]) == (tmp_path / "small",)
    with pytest.raises(CannotRunError, match=r"room for .* GB; bring the programs alone"):
        brought_by([laid(tmp_path / "small", {"b": b"1"})])


def test_without_a_virtual_machine_it_means_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "hessler/ftp-no", "--with", str(tmp_path)]) == 3
    assert "remove --with, or add --machine virtual" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["contents", "name", "gone", "program", "link", "folder"])
def test_the_digest_is_that_of_what_is_there(tmp_path: Path, change: str) -> None:
    one, two = (laid(tmp_path / name, {"a": b"1", "b": b"2", "c": b""}) for name in ("one", "two"))
    for file in two.iterdir():
        os.utime(file, (1, 1))
    assert digest_of(one) == digest_of(two)
    changed = two / "a"
    match change:
        case "contents":
            changed.write_bytes(b"3")
        case "name":
            changed.rename(two / "d")
        case "gone":
            changed.unlink()
        case "program":
            changed.chmod(0o755)
        case "folder":
            (two / "d").mkdir()
        case _:
            changed.unlink()
            changed.symlink_to("1")
    assert digest_of(one) != digest_of(two)
