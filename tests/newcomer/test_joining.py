"""Files by which people join: one version, workflows that are YAML, an action whose options exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import streamgauge
from ruamel.yaml import YAML
from stranger import CHECKOUT
from streamgauge.cli.app import command

WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))


def read(file: Path) -> Any:
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == streamgauge.__version__ == str(read(CHECKOUT / "CITATION.cff")["version"])


def test_the_support_window_is_that_of_the_manifests() -> None:
    page = (CHECKOUT / "CONTRIBUTING.md").read_text("utf-8")
    rust = tomllib.loads((CHECKOUT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["rust-version"]
    python = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert f"| Rust | {rust} " in page and f"| Python | {python.removeprefix('>=')} " in page


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_is_read_and_its_targets_exist(file: Path) -> None:
    told = read(file)
    assert told["name"] == file.stem and told["permissions"] == {"contents": "read"}
    steps = [step for job in told["jobs"].values() for step in job["steps"]]
    runs = "\n".join(step["run"] for step in steps if "run" in step)
    # `make` is a package there, and no target follows it.
    runs = re.sub(r"apt-get install .*", "", runs)
    targets = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", runs)) <= targets
    assert all((CHECKOUT / name).exists() for name in re.findall(r"(?:scripts|\.ci)/[\w.-]+", runs))


def test_workflows_pass_actionlint() -> None:
    if shutil.which("actionlint") is None:
        pytest.skip("no actionlint on PATH")
    done = subprocess.run(["actionlint", *WORKFLOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_action_calls_the_program_with_options_that_it_has() -> None:
    told = read(CHECKOUT / "action.yml")
    runs = "\n".join(step["run"] for step in told["runs"]["steps"] if "run" in step)
    group: Any = command()
    compare, doctor = (
        {name for one in group.commands[name].params for name in one.opts} for name in ("compare", "doctor")
    )
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", runs.partition(" compare ")[2]))
    assert {"--commit", "--until", "--junit", "--summary"} <= used <= compare
    assert "--json" in doctor
    # Each input is used, and each variable of the environment is an input or known to GitHub.
    text = (CHECKOUT / "action.yml").read_text("utf-8")
    assert all(f"inputs.{name}" in text for name in told["inputs"])


def test_steps_of_an_action_run_in_their_order(tmp_path: Path) -> None:
    """`scripts/try-wheel.sh` runs the project's own action by this script."""
    (tmp_path / "action.yml").write_text(
        """
inputs: {word: {default: one}, other: {default: ""}}
runs:
  using: composite
  steps:
    - uses: actions/checkout@v4
    - {run: 'echo "said=$WORD" >>"$GITHUB_OUTPUT"', env: {WORD: '${{ inputs.other || inputs.word }}'}}
    - {name: Fail, run: "false | true"}
    - {run: "echo never"}
""",
        "utf-8",
    )
    command = [sys.executable, str(CHECKOUT / "scripts" / "action-steps.py"), "action.yml"]

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
        )

    done = run("--input", "word=two")
    assert done.returncode == 1 and "never" not in done.stdout
    assert [line.removeprefix("action-steps: ") for line in done.stdout.splitlines()] == [
        "left out: actions/checkout@v4",
        'echo "said=$WORD" >>"$GITHUB_OUTPUT"',
        "Fail",
        "Fail: status 1",
        "outputs: said=two",
    ]
    assert "outputs: said=three" in run("--input", "other=three").stdout


def test_issue_forms_ask_for_what_a_report_needs() -> None:
    for file in sorted((CHECKOUT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        told = read(file)
        if file.name != "config.yml":
            assert {"name", "description", "body"} <= set(told)
            assert any(one.get("validations", {}).get("required") for one in told["body"]), file.name
