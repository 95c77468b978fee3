"""Pages in a real Chromium, that of the machine: nothing is downloaded. Without it, or without playwright,
these tests say so and are left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamgauge.campaign import run
from streamgauge.cli import main as run_app
from streamgauge.report import LoadedTrial, build, load
from streamgauge.scenario import load as scenarios

Open = Callable[..., Any]

DEMO = ("today/demo-rtsp-udp-medium", "today/demo-rtsp-tcp-medium")
HUNDRED = "today/demo-rtsp-*"
TEN = (
    "dashjs-dynamic", "bba-2", "bola-e", "hlsjs", "shaka", "exoplayer", "robust-mpc", "throughput", "fixed",
    "bola",
)  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred trials in virtual time, and those of a paper's table: a second or two."""
    out = tmp_path_factory.mktemp("browser")
    chosen = [one for pattern in (HUNDRED, "hessler/ftp-*") for one in scenarios(pattern)]
    run(chosen, {one.id: ["sim"] for one in chosen}, out)
    return out


def emulated(trial: LoadedTrial, **changes: Any) -> LoadedTrial:
    """A trial as if it had been emulated: a page does not look behind what trials say of themselves."""
    metrics = trial.metrics
    assert metrics is not None
    validity = {
        "valid": True, "why": [], "bounds": {"lateness_p99_s": 5e-4},
        "measured": {f"measured_{name}_s": 1e-6 * place for place, name in enumerate("abcdefghijkl")},
    }  # fmt: skip
    header = {**trial.header, "mode": "emu", "validity": validity | changes}
    held = dataclasses.replace(metrics, mode="emu", valid=bool((validity | changes)["valid"]))
    provenance = {
        "kernel": "6.1",
        "processes": [{"flow": "video", "command": ["/usr/bin/player"], "status": 0}],
    }
    return LoadedTrial(header, provenance, held)


@pytest.fixture(scope="session")
def demo(runs: Path) -> Path:
    """The demo's page: both modes, one emulated trial of which is invalid."""
    trials = [one for one in load(runs) if one.scenario in DEMO or one.scenario.startswith("hessler/")]
    others = [emulated(one) for one in trials if one.scenario in DEMO and one.seed in (2, 3)]
    broken = next(one for one in trials if one.scenario == DEMO[1] and one.seed == 4)
    others.append(emulated(broken, valid=False, why=["lateness p99 is 612 µs, at most 500 µs"]))
    return build([*trials, *others], runs / "demo.html")


@pytest.fixture(scope="session")
def hundred(runs: Path) -> Path:
    """Five scenarios of two subjects, a hundred trials."""
    return build([one for one in load(runs) if one.scenario.startswith("today/")], runs / "hundred.html")


@pytest.fixture(scope="session")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a comparison of ten rules."""
    out = tmp_path_factory.mktemp("ten")
    axis = f"flows.video.parameters.rule={','.join(TEN)}"
    command = ["compare", "dash/lte-bola", "--over", axis, "--mode", "sim", "--repeat", "2", "--no-alone"]
    files = ["--out", str(out), "--report", str(out / "ten.html"), "--set", "until.time=60s"]
    assert run_app([*command, *files]) in (0, 1, 2)
    return out / "ten.html"


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens a page at a width; it must not complain in its console, nor ask the network. A test's pages are
    shut when it ends: a browser may stop drawing a page that others have long lain in front of, and a click,
    which waits for two frames, then waits for ever."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def look(
        file: Path, width: int = 1440, height: int = 900, *, dark: bool = False, script: bool = True
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type != "log" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith(("file:", "data:", "blob:")) else complaints.append(asked.url)
            ),
        )
        page.goto(file.as_uri())
        return page

    yield look
    for context in contexts:
        context.close()
    assert complaints == []
