"""The walk of docs/extending.md that adds a system, as the page says: its files, its lines, its trial."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
HEADING, ENDS_AT = "## A system\n", "### What machines have at hand\n"
CRATES = ("base", "path", "plan", "python", "record", "sim", "systems", "transport", "wire")
"""What the simulator and its Python face are built from."""
#: The name stands at the end of the line before its block; a second block of the same file says none.
BLOCK = re.compile(r"(?:`(?P<name>[\w./-]+)`:\n\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A block of the page: a whole file, or what is added to one (``diff``)."""

    name: str
    kind: str
    text: str


def walk(page: str) -> list[Block]:
    """The blocks of the walk with the files that they belong to, but for its commands."""
    section = page[page.index(HEADING) : page.index(ENDS_AT)]
    found: list[Block] = []
    for block in BLOCK.finditer(section):
        if not block["kind"]:
            continue
        name = block["name"] or (found[-1].name if block["kind"] == "diff" else None)
        assert name, f"a block of the page is of no file: {block[0][:200]}"
        found.append(Block(name, block["kind"], block["text"]))
    return found


def commands(page: str) -> list[str]:
    section = page[page.index(HEADING) : page.index(ENDS_AT)]
    return [
        line for block in BLOCK.finditer(section) if not block["kind"] for line in block["text"].splitlines()
    ]


def added(text: str, diff: str) -> str:
    """`text` with the lines of `diff` that begin with ``+`` behind those that begin with a space."""
    lines = diff.splitlines()
    assert all(line[:1] in " +" for line in lines), diff
    before = "\n".join(line[1:] for line in lines if line[:1] == " ") + "\n"
    assert text.count(before) == 1, f"what the page adds to is not there, or more than once: {before}"
    return text.replace(before, "\n".join(line[1:] for line in lines) + "\n")


@pytest.fixture(scope="module")
def workspace() -> Path:
    """A copy of the crates with what the page adds. In one place, so that little is built anew each time."""
    folder = ROOT / "target" / "adding-a-system"
    shutil.rmtree(folder, ignore_errors=True)
    for crate in CRATES:
        shutil.copytree(ROOT / "crates" / crate, folder / "crates" / crate)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy2(ROOT / name, folder)
    for block in walk(PAGE.read_text(encoding="utf-8")):
        file = folder / block.name
        if block.kind == "diff":
            file.write_text(added(file.read_text(encoding="utf-8"), block.text), encoding="utf-8")
        else:
            assert not file.exists(), f"the page's {block.name} is there already"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
    return folder


def cargo(workspace: Path, *arguments: str) -> str:
    """Runs cargo there, with the repository's own build folder and without the network; its output."""
    rust = (ROOT / ".venv" / ".rust-bin").read_text(encoding="utf-8").strip()
    own = {"PATH": f"{rust}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(ROOT / "target")}
    # Both in the dev profile: what they build of other people's crates they share.
    done = subprocess.run(
        ["cargo", *arguments, "--offline"],
        cwd=workspace,
        env={**os.environ, **own, "CARGO_INCREMENTAL": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "generated" not in done.stderr, f"warnings: {done.stderr[-5000:]}"
    return done.stdout


def test_the_page_names_every_file_and_nothing_but_what_it_needs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [block.name for block in walk(page)]
    own = [name for name in names if name.startswith("crates/systems/src/push/")]
    assert len(own) == 4
    # A system is one room and one line; the crate's `mod` is Rust's.
    assert sorted({*names} - {*own}) == [
        "crates/systems/src/lib.rs",
        "crates/systems/src/registry.rs",
        "push.yaml",
    ]
    for name in ("crates/systems/src/lib.rs", "crates/systems/src/registry.rs"):
        (text,) = {(ROOT / name).read_text(encoding="utf-8")}
        for block in (block for block in walk(page) if block.name == name):
            assert len(added(text, block.text).splitlines()) == len(text.splitlines()) + 1
    assert commands(page)[-1].endswith("streamgauge run push.yaml --mode sim")


def test_its_machine_does_what_the_page_says(workspace: Path) -> None:
    ran = cargo(workspace, "test", "-p", "streamgauge-systems", "--lib", "push")
    assert "every_frame_is_shown_and_late_where_the_stream_is_too_slow ... ok" in ran
    ran = cargo(workspace, "test", "-p", "streamgauge-systems", "--lib", "registry")
    assert "every_parameter_of_every_system_takes_what_it_says ... ok" in ran


def test_a_trial_with_it_is_one_of_any_system(workspace: Path, tmp_path: Path) -> None:
    cargo(workspace, "build", "-p", "streamgauge-python")
    package = tmp_path / "streamgauge"
    # The folders of data may be links into the repository.
    shutil.copytree(ROOT / "python" / "streamgauge", package, ignore=shutil.ignore_patterns("_bin", "*.so"))
    shutil.copy2(ROOT / "target" / "debug" / "lib_native.so", package / "_native.abi3.so")

    def streamgauge(*arguments: str) -> str:
        command = [sys.executable, "-m", "streamgauge", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    told = streamgauge("systems", "push")
    assert "from GStreamer's rtspsrc" in " ".join(told.split()) and "hold" in told
    out = tmp_path / "runs"
    ran = json.loads(streamgauge("run", "push.yaml", "--mode", "sim", "--out", str(out), "--json"))
    assert all(trial["valid"] for trial in ran["trials"]), ran
    trials = [json.loads(file.read_text(encoding="utf-8")) for file in out.glob("*/*/*/trial.json")]
    assert len(trials) == 2 and all(one["systems"]["push"] == {"machine": 1} for one in trials)
