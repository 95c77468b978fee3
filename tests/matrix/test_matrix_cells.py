"""What a matrix is made of: a file of two axes, systems of the user's own, and one clear error for a slip."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_matrix import OWN, SMALL, write
from streamgauge.errors import ScenarioError
from streamgauge.matrix import matrix_of
from streamgauge.scenario import catalogue_ids
from streamgauge.systems.registry import SYSTEMS


def test_kinds_by_systems(tmp_path: Path) -> None:
    matrix = matrix_of(write(tmp_path))
    assert [(kind.name, kind.group, kind.label) for kind in matrix.kinds] == [
        ("quiet", "quiet", "nobody beside it"),
        ("tcp-one", "tcp", "beside a download"),
        ("tcp-self", "tcp", "beside itself"),
    ]
    assert [system.label for system in matrix.systems] == ["Plain RTP", "A web server", "A download"]
    assert [cell.scenario.id for cell in matrix.cells][:4] == [
        "small/quiet-plain", "small/quiet-web", "small/quiet-file", "small/tcp-one-plain",
    ]  # fmt: skip
    assert [kind.question for kind in matrix.kinds][:2] == [
        "Which is best?",
        "Which is best beside a download?",
    ]
    both = [cell.scenario.flows for cell in matrix.of_kind("tcp-self")]
    assert [{flow.system or flow.traffic for flow in flows.values()} for flows in both] == [
        {"rtp"}, {"http"}, {"bulk"},
    ]  # fmt: skip


def test_only_some(tmp_path: Path) -> None:
    matrix = matrix_of(write(tmp_path), kinds=["tcp-*"], systems=["web", "plain"])
    assert [kind.name for kind in matrix.kinds] == ["tcp-one", "tcp-self"]
    assert [system.name for system in matrix.systems] == ["plain", "web"]
    assert len(matrix.cells) == 4


def test_a_system_of_ones_own_plays_in_every_kind(tmp_path: Path) -> None:
    matrix = matrix_of(write(tmp_path), own=[str(write(tmp_path, OWN, "mine.yaml"))])
    mine = [cell.scenario for cell in matrix.cells if cell.system == "mine"]
    assert [one.id for one in mine] == ["small/quiet-mine", "small/tcp-one-mine", "small/tcp-self-mine"]
    theirs = {cell.kind: cell.scenario for cell in matrix.cells if cell.system == "plain"}
    for one, kind in zip(mine, ("quiet", "tcp-one", "tcp-self"), strict=True):
        assert one.path == theirs[kind].path and one.until == theirs[kind].until
        assert list(one.flows) == list(theirs[kind].flows)
        film = one.flows["video"]
        # What is of the system is its own, what is of the kind is the kind's.
        assert film.parameters == {"transport": "tcp"} and film.role == "subject"
        assert film.start == theirs[kind].flows["video"].start
    assert mine[2].flows["video2"].parameters == {"transport": "tcp"}
    assert mine[2].flows["video2"].role == "rival" and mine[1].flows["tcp"].traffic == "bulk"
    assert matrix.systems[-1].own and matrix.systems[-1].label == "A system of my own"


def test_what_cannot_run_says_why(tmp_path: Path) -> None:
    commands = OWN.replace("system: rtp, parameters: {transport: tcp}", "system: {server: ./s, player: ./p}")
    for name in ("s", "p"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    matrix = matrix_of(
        write(tmp_path), own=[str(write(tmp_path, commands, "mine.yaml"))], modes=["sim", "emu"]
    )
    refused = {(cell.kind, cell.system): dict(cell.refused) for cell in matrix.cells if cell.refused}
    assert set(refused) == {("quiet", "mine"), ("tcp-one", "mine"), ("tcp-self", "mine")}
    for why in refused.values():
        assert set(why) == {"sim"} and "commands" in why["sim"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kinds": ["tpc-*"]}, "the matrix has no 'tpc-*'; there are quiet, tcp-one, tcp-self"),
        ({"systems": ["wbe"]}, "did you mean 'web'"),
        ({"own": ["nowhere/at-all"]}, "there is no scenario 'nowhere/at-all'"),
    ],
)
def test_a_slip_is_named(tmp_path: Path, change: dict[str, list[str]], said: str) -> None:
    with pytest.raises(ScenarioError) as slip:
        matrix_of(write(tmp_path), **change)  # type: ignore[arg-type]
    assert said in str(slip.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN.replace("role: rival", "role: subject"), "my/mine has 2 subjects"),
        (OWN.replace("my/mine", "my/web"), "the matrix has a system 'web' already"),
    ],
)
def test_a_system_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        matrix_of(write(tmp_path), own=[str(write(tmp_path, text, "mine.yaml"))])


def test_a_file_of_one_axis_is_no_matrix(tmp_path: Path) -> None:
    text = SMALL.replace("  - quiet:", "    quiet:").partition("  - plain:")[0]
    with pytest.raises(ScenarioError, match=r"is no matrix.*kinds of scenario and then systems"):
        matrix_of(write(tmp_path, text))


def test_the_one_that_ships_has_every_system_of_ours_in_every_kind() -> None:
    matrix = matrix_of()
    assert len(matrix.kinds) >= 34 and len(matrix.systems) >= 14
    assert len(matrix.cells) == len(matrix.kinds) * len(matrix.systems)
    assert {cell.scenario.id for cell in matrix.cells} <= set(catalogue_ids())
    assert not any(cell.refused for cell in matrix.cells)
    played = {
        flow.system
        for cell in matrix.cells
        for flow in cell.scenario.flows.values()
        if flow.role == "subject"
    }
    # Of a film: what makes its media as it sends them has a family of its own.
    ours = {name for name, one in SYSTEMS.items() if one.clips and one.written_by_us("sim", {})}
    # SRT's and RIST's latency is a choice for each link: `streamgauge latency-table` has it.
    assert ours - {"rist", "srt"} <= played
    # Whatever is beside a system, it is beside all of them.
    for kind in matrix.kinds:
        rivals = [
            {name for name, flow in cell.scenario.flows.items() if flow.role == "rival"}
            for cell in matrix.of_kind(kind.name)
        ]
        assert all(one == rivals[0] for one in rivals), kind.name
