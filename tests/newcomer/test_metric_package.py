"""A package of one's own, examples/metric-package: installed, it brings metrics, a figure and a system."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from installing import install, write_metadata
from stranger import CHECKOUT

PACKAGE = CHECKOUT / "examples" / "metric-package"
USE = """
import json, sys
from pathlib import Path
import streamgauge as sg
from streamgauge.campaign.stored import load_metrics
from streamgauge.compare import COMPARED
from streamgauge.report import for_entry, gather, load
from streamgauge.scenario import Scenario, load_file
from streamgauge.systems.adapters import ADAPTERS

runs = sg.run(sys.argv[1], mode="sim", out=sys.argv[2])
(entry,) = gather(load(Path(sys.argv[2])))
(trial, _) = entry.groups[0].valid
metrics = trial.metrics
kept = load_metrics(trial.directory, trial.header["scenario"]["measure"])
figures = {figure.title: figure for figure in for_entry(entry)}
pages = Scenario.model_validate({
    "id": "my/pages", "title": "Pages", "path": {"down": {"delay": "10 ms"}, "up": {}},
    "flows": {"web": {"role": "subject", "traffic": "pages", "parameters": {"count": 3}}},
    "until": {"time": "5 s"},
})
print(json.dumps({
    "verdicts": {check.id: check.verdict for check in entry.checks},
    "json": metrics.to_json(),
    "kept": kept is not None and kept.to_json(),
    "packages": metrics.packages,
    "column": entry.groups[0].values("longest_outage", "ftp").tolist(),
    "of_trial": entry.groups[0].values("all_goodput", "").tolist(),
    "frame": sorted(runs.metrics("longest_outage")["flow"].to_list()),
    "rows": [list(row) for row in figures["Outages of each trial"].rows],
    "compared": COMPARED["longest_outage"].short,
    "after_our_own": list(COMPARED).index("longest_outage") - list(COMPARED).index("rate_variation"),
    "system": pages.flows["web"].registered.title,
    "programs": [one.name for one in ADAPTERS["pages"].programs],
}))
"""


def python(target: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the packages in `target` beside those of the environment."""
    env = {**os.environ, "PYTHONPATH": str(target)}
    return subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, encoding="utf-8"
    )


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    install(PACKAGE, folder)
    return folder


@pytest.fixture(scope="module")
def found(target: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("runs") / "out"
    done = python(target, "-c", USE, str(PACKAGE / "outage.yaml"), str(out))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_its_metrics_are_measured_checked_and_kept(found: dict[str, Any]) -> None:
    assert found["verdicts"] == {"short-outages": "pass", "link-is-used": "pass"}
    flows = found["json"]["flows"]
    assert 0 < flows["ftp"]["longest_outage_s"] < 1
    assert sum(flow["goodput_bps"] for flow in flows.values()) == pytest.approx(
        found["json"]["all_goodput_bps"]
    )
    assert found["kept"] == found["json"]
    assert found["packages"] == ["streamgauge-outages 0.1.0"]


def test_its_metrics_are_in_frames_reports_and_comparisons(found: dict[str, Any]) -> None:
    assert found["column"][0] == found["json"]["flows"]["ftp"]["longest_outage_s"]
    assert found["of_trial"][0] == found["json"]["all_goodput_bps"]
    assert found["frame"] == ["cbr", "cbr", "ftp", "ftp"]
    assert (found["compared"], found["after_our_own"]) == ("longest outage", 1)


def test_its_figure_is_drawn_from_all_trials(found: dict[str, Any]) -> None:
    drawn = [value for mode, flow, value in found["rows"] if flow == "ftp" and mode == "sim"]
    assert drawn == pytest.approx(found["column"], abs=1e-6) and len(drawn) == 2


def test_its_system_is_known_to_scenarios_and_adapters(found: dict[str, Any]) -> None:
    assert found["system"] == "A page fetched again and again"
    assert found["programs"] == ["python3", "curl"]


def test_without_it_its_names_are_unknown() -> None:
    command = ["-m", "streamgauge", "show", str(PACKAGE / "outage.yaml")]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 3
    assert "longest_outage" in done.stderr and "'outages' is not known" in done.stderr


def test_a_package_that_fails_ends_a_command_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("from streamgauge.metrics import Nothing\n")
    write_metadata(tmp_path, "bad-metrics", "2.0", {"streamgauge.metrics": {"bad": "bad:METRIC"}})
    done = python(tmp_path, "-m", "streamgauge", "show", str(PACKAGE / "outage.yaml"))
    assert done.returncode == 3 or done.returncode == 4
    assert "package bad-metrics 2.0" in done.stderr and "pip uninstall bad-metrics" in done.stderr
    assert "Traceback" not in done.stderr


PAGES = """
id: my/pages
title: Pages of a package's own system
path: {down: {rate: 5 Mbit/s, queue: droptail 50 kB, delay: 10 ms}, up: {delay: 10 ms}}
flows:
  web: {role: subject, traffic: pages, parameters: {count: 100}}
until: {time: 4 s}
"""


@pytest.mark.long
@pytest.mark.emu
def test_its_system_runs_in_namespaces(target: Path, tmp_path: Path) -> None:
    (tmp_path / "pages.yaml").write_text(PAGES)
    command = ["-m", "streamgauge", "run", str(tmp_path / "pages.yaml"), "--mode", "emu", "--seed", "1"]
    done = python(target, *command, "--json", "--out", str(tmp_path / "runs"))
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    assert trial["valid"], trial
    web = trial["flows"]["web"]
    assert web["longest_outage_s"] > 0 and web["events"]["page_received"]["count"] > 5
