"""`benches/simulators.py`: what it reads, how it counts, and ns-3's program where there is one."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulators_bench", ROOT / "benches" / "simulators.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rounds", "0"], "--rounds 0: give 1 or more"),
        (["--flows", "2", "10001"], "--flows 10001: give 1 to 10000"),
        (["--flows", "two"], "invalid int value: 'two'"),
    ],
)
def test_bad_options_are_refused(
    bench: ModuleType, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        bench.parse(arguments)
    assert said in capsys.readouterr().err


def test_ratios_are_of_one_round_and_medians_of_all(bench: ModuleType) -> None:
    rounds = [
        bench.Round(1.0, 2.0, 10.0, 5.0),
        bench.Round(2.0, 4.0, 60.0, 10.0),
        bench.Round(4.0, 5.0, 48.0, None),
    ]
    line = bench.result(20, rounds, {})
    assert (line["record_off_us"], line["record_on_us"], line["ns3_dumbbell_us"]) == (2.0, 4.0, 48.0)
    assert line["ns3_dumbbell_to_off"] == 12.0  # of 10, 30 and 12
    assert line["ns3_one_link_to_on"] == 2.5
    alone = bench.result(2, [bench.Round(1.0, 2.0, None, None)], {})
    assert not [key for key in alone if key.startswith("ns3")]


def test_without_ns3_the_reason_is_told(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "HEADER", tmp_path / "none.h")
    assert bench.build_ns3(tmp_path) == (None, "libns3-dev is not installed")
    assert "apt-get install libns3-dev" in bench.NO_NS3.format(why="x")


def test_ns3_has_less_to_simulate_the_more_flows_there_are(bench: ModuleType) -> None:
    assert [bench.ns3_seconds(n, False) for n in (1, 20, 21, 2000, 10_000)] == [60.0, 60.0, 10.0, 4.0, 4.0]
    assert bench.ns3_seconds(2000, True) == 2.0


@pytest.fixture(scope="module")
def dumbbell(bench: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not bench.HEADER.exists() or shutil.which("g++") is None:
        pytest.skip("ns-3 is not installed, and CI does without it; apt-get install libns3-dev g++")
    program, why = bench.build_ns3(tmp_path_factory.mktemp("ns3"))
    assert program is not None, why
    return Path(program)


@pytest.mark.parametrize("hosts", [-1, 0])
def test_ns3s_flows_fill_the_link(dumbbell: Path, hosts: int) -> None:
    done = subprocess.run(
        [dumbbell, "--flows=2", "--seconds=5", f"--hosts={hosts}"], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    most = 10e6 * 1448 / 1514
    assert 0.97 * most < told["goodput_bps"] <= most
    # A frame of 1514 B takes 1.2112 ms: from the first to the last, the link is hardly ever idle.
    assert 0.97 <= told["packets"] * 1.2112e-3 / 5 <= 1
    assert 0 < told["drops"] < 0.05 * told["packets"]
    assert told["tcp"] == "TcpLinuxReno"
    assert told["cpu_s"] > 0 and told["us_per_packet"] == pytest.approx(1e6 * told["cpu_s"] / told["packets"])


@pytest.mark.parametrize("option", ["--flows=0", "--seconds=1", "--hosts=3", "--tcp=TcpNone"])
def test_ns3s_program_refuses_what_it_cannot_do(dumbbell: Path, option: str) -> None:
    done = subprocess.run([dumbbell, option], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("dumbbell: ") and done.stderr.count("\n") == 1
