"""What is asked to be compared: operands, axes, systems in a scenario's place, commits; what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from streamgauge.compare.commits import build_commits, subjects_of_builds
from streamgauge.compare.running import looks
from streamgauge.compare.subjects import subjects_of
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario.commands import Command
from streamgauge.scenario.over import parse_overs


def test_scenarios_are_called_by_what_tells_them_apart() -> None:
    found = subjects_of(["today/demo-rtsp-udp-medium", "today/demo-rtsp-tcp-medium"])
    assert [one.label for one in found] == ["udp", "tcp"]
    found = subjects_of(["today/rtsp-udp", "today/rtsp-tcp"])
    assert [len(one.asked) for one in found] == [5, 5]


def test_a_lone_family_is_a_subject_a_scenario_where_nothing_else_differs() -> None:
    for operand in ("dash/lte-*", "dash/lte"):
        found = subjects_of([operand], apart=True)
        labels = [one.label for one in found]
        assert {"bola", "bola-e", "dynamic", "dynamic-dash", "vlc-3", "vlc-3-rate"} <= set(labels)
        assert all([asked.scenario.id for asked in one.asked] == [f"dash/lte-{one.label}"] for one in found)
    assert len(subjects_of(["dash/lte-*"])) == 1
    # One scenario, and globs side by side, whose scenarios are paired.
    assert len(subjects_of(["hessler/ftp-medium"], apart=True)) == 1
    assert [len(one.asked) for one in subjects_of(["today/rtsp-udp", "today/rtsp-tcp"], apart=True)] == [5, 5]


def test_an_axis_is_a_subject_a_value_and_its_scenario_s_conditions_stay() -> None:
    axes = parse_overs(
        ["path.down.queue=droptail 20 kB,codel 20 kB", "flows.ftp.congestion_control=reno,cubic"]
    )
    found = subjects_of(["hessler/ftp-medium"], axes=axes)
    assert [one.label for one in found] == [
        "queue droptail 20 kB, congestion_control reno", "queue droptail 20 kB, congestion_control cubic",
        "queue codel 20 kB, congestion_control reno", "queue codel 20 kB, congestion_control cubic",
    ]  # fmt: skip
    assert len({one.asked[0].place for one in found}) == 4
    assert len({one.asked[0].base.id for one in found}) == 1
    assert all(one.asked[0].base == found[0].asked[0].base for one in found)


def test_settings_behind_an_operand_are_its_own() -> None:
    found = subjects_of(
        ["hessler/ftp-medium", "hessler/ftp-medium path.down.queue=codel 20 kB start_phase=9 ms"]
    )
    assert [one.label for one in found] == ["as it is", "queue codel 20 kB, start_phase 9 ms"]
    assert found[1].asked[0].settings == ("path.down.queue=codel 20 kB", "start_phase=9 ms")


def test_a_system_takes_the_place_of_the_one_under_test() -> None:
    found = subjects_of(["rtp", "bulk"], inside="today/demo-rtsp-udp-medium")
    video, bulk = (one.asked[0].scenario.in_mode("sim").flows["video"] for one in found)
    assert video.system == "rtp" and bulk.traffic == "bulk" and bulk.clip is None
    assert found[0].asked[0].base.flows["video"].system == "rtsp"


def test_modes_are_subjects() -> None:
    found = subjects_of(["hessler/ftp-medium"], axes=parse_overs(["mode=sim,emu"]))
    assert [(one.label, one.mode) for one in found] == [("sim", "sim"), ("emu", "emu")]


@pytest.mark.parametrize(
    ("operands", "more", "why"),
    [
        (["nonsense"], {}, "no scenario 'nonsense'"),
        (["rtx"], {"inside": "today/demo-rtsp-udp-medium"}, "no system or traffic is called 'rtx'"),
        (["hessler/ftp-medium", "hessler/ftp-medium"], {}, "asked for twice"),
        (["hessler/ftp-medium path.down.rat=1Mbit/s"], {}, "rat"),
        (["."], {"settings": ["path.down.rate=1Mbit/s"]}, "folder of records"),
    ],
)
def test_slips_are_refused(operands: list[str], more: dict[str, str], why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        subjects_of(operands, **more)  # type: ignore[arg-type]


def test_looks_double_and_end_at_the_most() -> None:
    assert looks(5, 40) == [5, 10, 20, 40]
    assert looks(3, 40) == [3, 6, 12, 24, 40]
    assert looks(10, None) == [10] and looks(10, 4) == [4]


SCENARIO = """\
id: my/player
title: Our own player
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows:
  ours:
    role: subject
    system: {server: ./serve, player: ./play --fast}
until: {time: 4 s}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits of a program, the second of which does not build."""
    here = tmp_path / "program"
    here.mkdir()

    def git(*words: str) -> None:
        who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"]
        subprocess.run(["git", *who, *words], cwd=here, check=True, capture_output=True)

    git("init", "--quiet", "--initial-branch=main")
    (here / "bed.yaml").write_text(SCENARIO)
    for name in ("serve", "play"):
        (here / name).write_text("#!/bin/sh\nexec true\n")
        (here / name).chmod(0o755)
    (here / "build.sh").write_text("echo built > made\n")
    git("add", "-A")
    git("commit", "--quiet", "-m", "one")
    git("tag", "v1")
    (here / "build.sh").write_text("echo no compiler here >&2\nexit 3\n")
    git("commit", "--quiet", "-am", "two")
    return here


def test_commits_are_built_apart_and_their_commands_run_there(repository: Path, tmp_path: Path) -> None:
    file = repository / "bed.yaml"
    (one,) = build_commits(["v1"], file, tmp_path / "out", command="sh build.sh")
    assert (one.folder / "made").read_text() == "built\n" and not (repository / "made").exists()
    assert one.label.startswith("v1 (")
    (found,) = subjects_of_builds([one], subjects_of([str(file)]))
    system = found.asked[0].scenario.flows["ours"].system
    assert isinstance(system, Command) and system.folder == str(one.folder)
    assert found.asked[0].place.name == f"commit={one.commit[:12]}"
    # Built once: the same again touches nothing.
    (one.folder / "made").write_text("as it was\n")
    build_commits(["v1"], file, tmp_path / "out", command="sh build.sh")
    assert (one.folder / "made").read_text() == "as it was\n"
    status = subprocess.run(["git", "status", "--porcelain"], cwd=repository, capture_output=True, check=True)
    assert not status.stdout


def test_a_build_that_fails_says_where_and_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match="does not build") as caught:
        build_commits(["main"], repository / "bed.yaml", tmp_path / "out", command="sh build.sh")
    assert "no compiler here" in str(caught.value) and ".log" in str(caught.value)
    assert [path.suffix for path in (tmp_path / "out" / "builds").iterdir()] == [".log"]


def test_commits_that_are_not_there_are_refused(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no commit 'v9'"):
        build_commits(["v9"], repository / "bed.yaml", tmp_path / "out")
    with pytest.raises(ScenarioError, match="asked for already"):
        build_commits(["v1", "main~1"], repository / "bed.yaml", tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ScenarioError, match="no git repository"):
        build_commits(["v1"], tmp_path / "elsewhere", tmp_path / "out")
