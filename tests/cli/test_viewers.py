"""What ``run`` prints of viewers: their numbers of whatever shows pictures, and nothing of live on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

LADDER = ("bit rate shown", "switches", "stalls", "stalled", "start-up", "QoE")


@pytest.mark.parametrize(
    ("scenario", "heads", "live"),
    [
        ("dash/lte-bola", LADDER, False),
        ("today/demo-rtsp-udp-medium", ("bit rate shown", "stood still", "start-up", "frames lost"), True),
    ],
)
def test_a_viewer_s_numbers_are_printed(
    scenario: str, heads: tuple[str, ...], live: bool, cli: Cli, tmp_path: Path
) -> None:
    end = ("--set", "until.time=150s") if scenario.startswith("dash") else ()
    ran = cli("run", scenario, "--mode", "sim", "--repeat", "2", "--out", str(tmp_path / "r"), *end)
    (head,) = [line for line in ran.out.splitlines() if line.startswith("  viewer of")]
    assert all(one in head for one in heads)
    (row,) = [
        line for line in ran.out.splitlines() if line.startswith("  video  ") and line.count("bit/s") < 3
    ][-1:]
    assert "bit/s" in row
    assert ("behind live" in ran.out) == live


def test_a_download_has_no_viewer(cli: Cli, tmp_path: Path) -> None:
    ran = cli("run", "hessler/ftp-no", "--mode", "sim", "--repeat", "2", "--out", str(tmp_path / "r"))
    assert ran.status == 0 and "viewer of" not in ran.out
