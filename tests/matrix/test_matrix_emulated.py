"""Emulated cells beside simulated ones: which kinds, whose trials, and how the two are held together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_matrix import write
from streamgauge.compare import SubjectTrials
from streamgauge.matrix import (
    QUARTER,
    JudgedMatrix,
    MatrixTrials,
    agreements,
    judged,
    matrix_of,
    run_matrix,
    to_json,
)
from streamgauge.matrix.beside import beside_part
from streamgauge.matrix.emulated import emulated_of, with_quarter
from streamgauge.matrix.page import render

DOCS = Path(__file__).parent.parent.parent / "docs" / "matrix.md"
SIM = {"plain": 300e3, "web": 200e3, "file": 100e3}
"""Bit rate seen, of each system in every kind."""


def made(
    tmp_path: Path, emu: dict[str, float], kinds: tuple[str, ...] = ("tcp-one", "tcp-self")
) -> JudgedMatrix:
    """The small matrix, simulated eight times in each cell and emulated once in some kinds."""
    matrix = matrix_of(write(tmp_path))
    by_kind: dict[str, list[SubjectTrials]] = {}
    for cell in matrix.cells:
        for mode, n in (("sim", 8), ("emu", 1)):
            if mode == "emu" and cell.kind not in kinds:
                continue
            value = SIM[cell.system] if mode == "sim" else emu[cell.system]
            trials = {seed: {"shown_rate": value + 100.0 * (seed - 1)} for seed in range(1, n + 1)}
            case = SubjectTrials(
                subject=cell.system,
                id=cell.scenario.id,
                scenario=cell.scenario.normalised(),
                mode=mode,
                trials=trials,
                base={"path": {"kind": cell.kind}},
                of=cell.kind,
            )
            by_kind.setdefault(cell.kind, []).append(case)
    return judged(MatrixTrials(matrix=matrix, by_kind=by_kind, machines=dict.fromkeys(kinds, "virtual")))


def test_a_quarter_of_the_kinds_and_one_of_each_group() -> None:
    matrix = matrix_of()
    asked, quarter = with_quarter(matrix)
    assert len(QUARTER) == len(matrix.kinds) // 4
    assert list(QUARTER) == [kind.name for kind in quarter.kinds]
    assert {kind.group for kind in quarter.kinds} == {kind.group for kind in matrix.kinds}
    assert len(quarter.cells) == len(QUARTER) * len(matrix.systems) and len(asked.cells) == len(matrix.cells)
    # None of ours is without sockets, so whatever is asked for is emulated.
    assert not any(cell.refused for cell in asked.cells)
    text = DOCS.read_text(encoding="utf-8")
    assert all(f"| `{name}` | {why} |" in text for name, why in QUARTER.items())


def test_cells_alike_and_orders(tmp_path: Path) -> None:
    """300, 200 and 100 kbit/s simulated: emulation agrees of one, has two level, and one far away."""
    (one,) = agreements(made(tmp_path, {"plain": 301e3, "web": 103e3, "file": 101e3}))
    assert one.about.name == "shown_rate" and len(one.pairs) == 6
    # The margin is 5 %: web's 200 is not 103.
    assert one.alike == 4 and {pair.system for pair in one.pairs if not pair.is_alike} == {"web"}
    assert (one.orders, one.same, one.level, one.turned) == (6, 4, 2, 0)
    assert one.tau == pytest.approx(1.0)
    (one,) = agreements(made(tmp_path, {"plain": 100e3, "web": 200e3, "file": 300e3}))
    assert (one.same, one.level, one.turned) == (0, 0, 6) and one.tau == pytest.approx(-1.0)
    assert one.middle_gap == pytest.approx(200e3 - 350)


def test_one_more_simulated_trial_would_lie_there(tmp_path: Path) -> None:
    """Trials 0 to 700 above a value: mean 350, s = 244.9, t(0.975, 7) = 2.3646; 614 with n = 8 and m = 1."""
    (one,) = agreements(made(tmp_path, dict(SIM), kinds=("tcp-one",)))
    assert {round(pair.half or 0.0) for pair in one.pairs} == {614}
    assert all(pair.gap == pytest.approx(-350) for pair in one.pairs)


def test_the_page_shows_both_and_frames_what_is_apart(tmp_path: Path) -> None:
    found = made(tmp_path, {"plain": 301e3, "web": 103e3, "file": 101e3})
    part = beside_part(found)
    assert part is not None and part.brief == (
        "Bit rate seen: 4 of 6 cells alike, of 6 orders beyond doubt 4 the same and 0 turned"
    )
    (map_,) = part.maps
    assert [row.kind for row in map_.rows] == ["tcp-one", "tcp-self"]
    assert [(cell.sim, cell.emu, cell.alike) for cell in map_.rows[0].cells if cell] == [
        ("300", "301", True), ("200", "103", False), ("100", "101", True)
    ]  # fmt: skip
    page = render(found).replace("\N{NO-BREAK SPACE}", " ")
    assert page.count('class="apart"') == 2 and part.brief in page
    assert "emulated in a virtual machine: 2 kinds" in page and "emulated in a virtual machine, n = 1" in page
    told = to_json(found)
    assert told["emulated"] == {"tcp-one": "virtual", "tcp-self": "virtual"}
    (said,) = told["agreement"]
    assert said["metric"] == "shown_rate" and (said["cells"], said["alike"], said["same"]) == (6, 4, 4)


def test_without_emulated_trials_nothing_is_said_of_them(small: JudgedMatrix) -> None:
    assert beside_part(small) is None and "Simulated and emulated" not in render(small)
    assert to_json(small)["emulated"] == {} and to_json(small)["agreement"] == []


def as_emulated(simulated: Path, place: Path) -> None:
    """A simulated trial's record, as one that was emulated."""
    shutil.copytree(simulated, place)
    header = json.loads((place / "trial.json").read_text())
    (place / "trial.json").write_text(json.dumps({**header, "mode": "emu"}))


def test_of_a_kind_lies_what_has_more_cells_and_of_one_machine(tmp_path: Path) -> None:
    matrix = matrix_of(write(tmp_path))
    out = tmp_path / "runs"
    run_matrix(matrix, out, repeat=1)

    def emulate(folder: Path, kind: str, systems: str) -> None:
        for system in systems.split():
            scenario = f"scenario=small%2F{kind}-{system}"
            as_emulated(out / scenario / "mode=sim" / "seed=1", folder / scenario / "mode=emu" / "seed=1")

    emulate(out, "tcp-one", "plain")
    emulate(out, "quiet", "plain web")
    emulate(out / "machine-virtual", "tcp-one", "plain web")
    emulate(out / "machine-virtual", "quiet", "file")
    # Those of the same name on another path are no cells of this matrix.
    other = matrix_of(write(tmp_path), settings=["path.down.rate=500kbit/s"])
    elsewhere = tmp_path / "other"
    run_matrix(other, elsewhere, repeat=1)
    for system in ("plain", "web", "file"):
        place = Path(f"scenario=small%2Ftcp-self-{system}")
        as_emulated(elsewhere / place / "mode=sim" / "seed=1", out / place / "mode=emu" / "seed=1")
    ran = run_matrix(matrix, out, repeat=1)
    assert ran.machines == {"tcp-one": "virtual", "quiet": "host"}
    emulated = {
        kind: sorted(case.subject for case in cases if case.mode == "emu")
        for kind, cases in ran.by_kind.items()
    }
    assert emulated == {"tcp-one": ["plain", "web"], "quiet": ["plain", "web"], "tcp-self": []}
    found = judged(ran)
    beside = found.of("tcp-one", "emu")
    assert beside is not None and beside.machine == "virtual" and beside.n == 1
    assert emulated_of(out / "machine-virtual-2") == "virtual" and emulated_of(out) == "host"


def test_slips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from streamgauge.cli import main as run_app

    monkeypatch.chdir(tmp_path)

    def refused(*command: Any) -> str:
        capsys.readouterr()
        assert run_app(["compare", *command]) == 3
        return capsys.readouterr().err

    assert "none of these kinds is emulated" in refused("matrix", "--kind", "tcp-reno", "--emulate", "1")
    assert "--mode emulates every kind" in refused("matrix", "--mode", "both", "--emulate", "1")
    assert "--emulate: is of the matrix alone" in refused(
        "hessler/ftp-no", "hessler/ftp-medium", "--emulate", "1"
    )
    assert not list(tmp_path.iterdir())
