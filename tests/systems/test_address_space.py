"""V8 reserves far more address space than it uses: under a limit of it (`ulimit -v`) the limit is named."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import streamgauge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")

LIMIT_BYTES = 4_000_000_000
DRAWING = """
import json
from streamgauge.report.drawers import Drawers
described = {"data": {"values": [{"a": 1}]}, "mark": "point", "encoding": {"x": {"field": "a"}}}
described["$schema"] = "https://vega.github.io/schema/vega-lite/v6.json"
with Drawers(1) as drawers:
    print(drawers.draw(json.dumps(described), {}, "a figure")[:4])
"""
PLAYER = Path(streamgauge.__file__).parent / "systems" / "programs" / "browser_player.py"


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))


def test_figures_name_the_limit_and_how_to_raise_it() -> None:
    command = [sys.executable, "-c", DRAWING]
    free = subprocess.run(command, capture_output=True, text=True, check=False)
    assert free.stdout == "<svg\n", free.stderr
    bound = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited)
    last = bound.stderr.splitlines()[-1]
    assert "V8 reserves more address space than the limit of 4000 MB allows" in last
    assert "raise it (ulimit -v unlimited)" in last
    # No trace of V8's own beside it.
    assert "Fatal" not in bound.stderr


@pytest.mark.parametrize("is_limited", [False, True])
def test_a_browser_that_ends_at_once_names_the_limit_where_there_is_one(
    is_limited: bool, tmp_path: Path
) -> None:
    browser = tmp_path / "chromium"
    browser.write_text("#!/bin/sh\nexit 133\n")
    browser.chmod(0o755)
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"flags": [], "spki": None, "player": "dashjs", "library": "none.js"}))
    (tmp_path / "presentation.json").write_text(json.dumps({"representations": []}))
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "STREAMGAUGE_SHARED": str(tmp_path),
        "STREAMGAUGE_EVENTS": str(tmp_path / "events"),
        "STREAMGAUGE_MEDIA": str(tmp_path),
    }
    ran = subprocess.run(
        [sys.executable, PLAYER, settings],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
        preexec_fn=limited if is_limited else None,
    )
    (line,) = ran.stderr.splitlines()
    assert line.startswith("Chromium ended with status 133")
    assert ran.returncode == (127 if is_limited else 1)
    assert ("raise it (ulimit -v unlimited)" in line) == is_limited
