"""The whole of it, sim against sim: a system is equivalent to itself, wrong ones are not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import EmuSettings
from streamgauge.crosscheck import CrosscheckRequest, crosscheck
from streamgauge.crosscheck.explain import explain
from streamgauge.crosscheck.rows import rows_of
from streamgauge.crosscheck.run import select
from streamgauge.crosscheck.systems import patterns_of, systems_matter
from streamgauge.crosscheck.systems.matter import MUTANTS, varied
from streamgauge.crosscheck.systems.page import PAGE
from streamgauge.crosscheck.systems.quantities import QUANTITIES
from streamgauge.crosscheck.trials import Bench
from streamgauge.systems.compared import COMPARED

DOCS = Path(__file__).parent.parent.parent / "docs" / "fidelity-systems.md"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The first two conditions of each, and where a mutant needs it a third: mutants included, 20 s."""
    return crosscheck(
        CrosscheckRequest(
            out=tmp_path_factory.mktemp("systems"),
            matter=systems_matter(),
            patterns=[*patterns_of(None, 2), "realvideo-udp/03"],
            reference="sim",
        )
    )


def test_a_system_is_equivalent_to_itself(document: dict[str, Any]) -> None:
    assert document["schema"] == "streamgauge.crosscheck-systems/1"
    verdicts = [row["verdict"] for row in document["rows"]]
    assert len(verdicts) > 230 and set(verdicts) <= {"equivalent", "inconclusive", "explained", "unexplained"}
    # Three trials that happen to agree leave no margin to a system that does one thing or another.
    assert verdicts.count("equivalent") >= 0.93 * len(verdicts)
    assert verdicts.count("unexplained") + verdicts.count("explained") <= 0.01 * len(verdicts)


def test_every_mutant_of_every_system_is_rejected(document: dict[str, Any]) -> None:
    rejected = {one["name"]: one["rejected"] for one in document["mutants"]}
    assert rejected == {mutant.name: True for mutant in MUTANTS}
    for subject in COMPARED:
        assert sum(name.startswith(f"{subject}: ") for name in rejected) >= 3
    by = {one["name"]: one["cases"] for one in document["mutants"]}
    plain = {row["metric"] for rows in by["darwin: plain"].values() for row in rows}
    assert {"up_bps", "retransmitted_percent"} <= plain


def test_what_a_system_never_tells_has_no_row(document: dict[str, Any]) -> None:
    assert all(row["sim"] is not None or row["emu"] is not None for row in document["rows"])
    metrics = {subject: set() for subject in COMPARED}
    for row in document["rows"]:
        metrics[row["case"].partition("/")[0]].add(row["metric"])
    assert "level_bps" not in metrics["rtp"] and "level_bps" in metrics["dash"]
    assert all("beside_bps" in found for found in metrics.values())
    assert all(found <= set(QUANTITIES) for found in metrics.values())


def test_the_page_is_filled_from_the_document(document: dict[str, Any], tmp_path: Path) -> None:
    PAGE.check(DOCS)
    text = DOCS.read_text(encoding="utf-8")
    assert all(f"<!-- measured: {name} -->" in text for name in PAGE.blocks)
    page = tmp_path / "page.md"
    page.write_text(
        "".join(f"\nprose {name}\n<!-- measured: {name} -->\nold\n<!-- end -->\n" for name in PAGE.blocks)
    )
    written = PAGE.write(document, page)
    filled = page.read_text()
    assert "old" not in filled and all(f"prose {name}\n" in filled for name in PAGE.blocks)
    assert [file.name for file in written] == ["page.md", "fidelity-systems.png"]
    assert "**windows-media-tcp** (sim / emu)" in filled
    assert "Not measured, 71 conditions: 03 to 10 of `rtp`, `darwin`" in filled
    assert "| `rtp/01` | 446 kbit/s | 12 ms | 6.2 kB | 1.2 % | reno from 3.1 s | 3 |" in filled


def test_a_tcp_without_proportional_rate_reduction_is_found_and_explained(tmp_path: Path) -> None:
    matter = systems_matter()
    (case,) = select(matter, ["http/08"])
    bench = Bench(matter, tmp_path, EmuSettings(), reference="sim")
    real = bench.simulate("real", [varied(case, {"tcp.without": ["prr"]})])[case.id]
    found = {case.id: (bench.simulate("sim", [case])[case.id], real)}
    rows = {row.metric: row for row in explain(bench, [case], found, rows_of(matter, case, *found[case.id]))}
    assert rows["packet_bytes"].verdict == rows["startup_s"].verdict == "equivalent"
    row = rows["sent_bps"]
    assert row.verdict == "explained" and row.explained is not None
    assert row.explained["switch"] == "without prr"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "streamgauge", "crosscheck", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def test_json_and_resuming_with_more_conditions(tmp_path: Path) -> None:
    arguments = ["systems", "--quick", "--systems", "rtp", "--against", "sim", "--json", "--out", "here"]
    data = json.loads(run(*arguments, "--conditions", "1", cwd=tmp_path).stdout)
    assert {row["case"] for row in data["rows"]} == {"rtp/01"}
    assert json.loads((tmp_path / "here" / "crosscheck-systems.json").read_text()) == data
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("trial.json")}
    assert times
    more = json.loads(run(*arguments, "--conditions", "2", cwd=tmp_path).stdout)
    assert [row for row in more["rows"] if row["case"] == "rtp/01"] == data["rows"]
    assert {row["case"] for row in more["rows"]} == {"rtp/01", "rtp/02"}
    assert {file: file.stat().st_mtime_ns for file in times} == times


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("systems", "--systems", "rpt"), "did you mean 'rtp'?"),
        (("systems", "--systems", "rtp", "--case", "rtp/01"), "does not go with --case"),
        (("systems", "--conditions", "0"), "--conditions"),
        (("systems", "--case", "rtp/99"), "no case has such an id"),
        (("tcp", "--systems", "rtp"), "leave it out of crosscheck tcp"),
        (("abr", "--conditions", "3"), "leave it out of crosscheck abr"),
        (("systems", "--with", "ns3"), "has nothing to compare in crosscheck systems"),
        (("systems", "--quick", "--docs", "page.md"), "leave --quick"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
