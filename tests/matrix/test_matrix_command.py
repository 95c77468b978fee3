"""``compare matrix`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_matrix import OWN, write
from streamgauge.cli import main as run_app

SOME = [
    "--kind",
    "cross-no",
    "--kind",
    "cross-burst",
    "--kind",
    "tcp-reno",
    "--system",
    "rtp-udp",
    "--system",
    "http",
]
SHORT = ["--set", "until.time=45s", "--set", "measure.window=[0 s, 45 s]"]


def told(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = run_app(["compare", "matrix", *command])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_it_runs_ranks_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = str(write(tmp_path, OWN, "mine.yaml"))
    status, out, _ = told(capsys, mine, *SOME, *SHORT, "--repeat", "3", "--out", "here", "--json")
    assert status == 0
    found = json.loads(out)
    assert [one["name"] for one in found["systems"]] == ["rtp-udp", "http", "mine"]
    assert found["trials"] == 27 and Path("here/matrix.html").stat().st_size > 100_000
    status, again, _ = told(capsys, mine, *SOME, *SHORT, "--repeat", "3", "--out", "here", "--json")
    assert json.loads(again) == found
    status, out, _ = told(capsys, mine, *SOME, *SHORT, "--repeat", "3", "--out", "here", "--report", "p.html")
    assert status == 0 and "all 2 kinds with congestion" in out and "A system of my own" in out
    assert Path("p.html").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["--over", "path.down.rate=1Mbit/s,2Mbit/s"], "--over: the matrix has no such option"),
        (["--baseline", "http"], "--baseline: the matrix has no such option"),
        (["--kind", "tcp-rneo"], "did you mean 'tcp-reno'"),
        (["--system", "flash"], "the matrix has no 'flash'"),
        (["nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["--set", "path.down.rate=1 Mbps", "--kind", "cross-no"], "'Mbps' is not a unit of a bit rate"),
    ],
)
def test_slips(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = told(capsys, *command)
    assert status == 3 and said in err and err.count("streamgauge:") == 1 and not out


@pytest.mark.parametrize("option", ["--kind", "--system"])
def test_its_options_are_not_of_other_comparisons(capsys: pytest.CaptureFixture[str], option: str) -> None:
    capsys.readouterr()
    assert run_app(["compare", "hessler/ftp-no", "hessler/ftp-medium", option, "x"]) == 3
    assert f"{option}: is of the matrix alone" in capsys.readouterr().err
