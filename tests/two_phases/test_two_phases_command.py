"""``two-phases`` on records that it ran itself: what it shows, writes and refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamgauge.cli import main
from streamgauge.two_phases import ModelParameters, StreamInputs, predict

FIT = "windows-media/sbr-sweep-725-*"
OTHERS = "windows-media/sbr-sweep-1500-340"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two-phases") / "runs"
    names = [FIT, OTHERS, "today/tcp-reno"]
    assert main(["run", *names, "--mode", "sim", "--repeat", "1", "--out", str(folder)]) in (0, 1, 2)
    return folder


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    capsys.readouterr()
    yield capsys


def test_it_says_parameters_and_errors_and_writes_what_was_asked_for(
    runs: Path, tmp_path: Path, said: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / name for name in ("model.csv", "model.json", "model.svg")]
    out = [word for file in files for word in ("--out", str(file))]
    assert main(["two-phases", str(runs), "--fit", FIT, "--judge", OTHERS, *out]) == 0
    shown = said.readouterr().out
    assert "buffer_s" in shown and "received, filling" in shown and OTHERS in shown
    document = json.loads(files[1].read_text())
    assert document["schema"] == "streamgauge.two-phases/1"
    assert document["judged_by"] == [OTHERS]
    errors = {row["quantity"]: row for row in document["errors"]["judged"]}
    assert errors["filling.time_s"]["worst"] <= 0.2
    assert errors["filling.received_bps"]["worst"] <= 0.2
    rows = list(csv.DictReader(files[0].open()))
    # Ten rates on two links, beside a TCP and alone, at five losses.
    assert len(rows) == 10 * 2 * 2 * 5 == len(document["table"])
    row = next(one for one in rows if one["encoded_bps"] == "304000" and one["capacity_bps"] == "725000")
    window = float(row["tcp_window_bytes"])
    inputs = StreamInputs((268e3,), 36e3, 725e3, tcp_window_bytes=window, loss=float(row["loss"]))
    again = predict(inputs, ModelParameters(**document["parameters"]))
    assert float(row["filling_time_s"]) == pytest.approx(again.filling.time_s, rel=1e-3)
    assert files[2].read_text().count("<svg") == 1


def test_json_is_the_document(runs: Path, said: pytest.CaptureFixture[str]) -> None:
    assert main(["two-phases", str(runs), "--fit", FIT, "--json"]) == 0
    assert set(json.loads(said.readouterr().out)["errors"]) == {"fitted"}


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--fit", "none/*"], "holds no valid trial of none/*"),
        (["--fit", FIT, "--judge", FIT], "--judge names nothing that --fit does not"),
        (["--fit", FIT, "--out", "model.txt"], "its name must end in"),
        (["--fit", FIT, "--flow", "tcp"], "no flow tcp plays a clip"),
        (["--fit", "today/tcp-*"], "the model has one stream"),
        (["--fit", OTHERS], "at least three of different rates"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    runs: Path, more: list[str], named: str, said: pytest.CaptureFixture[str]
) -> None:
    assert main(["two-phases", str(runs), *more]) == 3
    error = " ".join(said.readouterr().err.split())
    assert named in error
    assert "Traceback" not in error
