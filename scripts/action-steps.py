#!/usr/bin/env python3
"""Runs the commands of `action.yml`, or of a job of a workflow, on this machine, step by step.

    scripts/action-steps.py action.yml --input scenario=video.yaml --input base=HEAD~1
    scripts/action-steps.py .github/workflows/wheel.yml --job build

Steps that use another action are named and left out. The variables of GitHub's runner point into a temporary
folder, and its `sudo` runs the command as the current user. The exit status is that of the first step that
fails, if any. An action's outputs are printed at the end. It needs ruamel.yaml, a dependency of streamgauge.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
#: sudo as a user without it has it: options and the command.
_SUDO = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


def filled(text: str, values: Mapping[str, str]) -> str:
    """Returns a text with its expressions replaced: a name, or the first of several that is not empty."""

    def value(found: re.Match[str]) -> str:
        names = [name.strip() for name in found[1].split("||")]
        known = [values[name] for name in names if name in values]
        if not known:
            sys.exit(f"action-steps: no value for {found[1]!r}; give it as --input NAME=VALUE")
        return next((one for one in known if one), "")

    return _EXPRESSION.sub(value, text)


def steps_of(document: Mapping[str, Any], job: str) -> list[Mapping[str, Any]]:
    """Returns the steps of an action, or of a workflow's job."""
    if "runs" in document:
        return list(document["runs"]["steps"])
    if job not in document["jobs"]:
        sys.exit(f"action-steps: no job {job!r}; the jobs are {', '.join(document['jobs'])}")
    return list(document["jobs"][job]["steps"])


def main() -> int:
    """Runs the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--job", default="", metavar="NAME", help="a job of a workflow")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help="of an action")
    asked = parser.parse_args()
    document = YAML(typ="safe").load(asked.file.read_text(encoding="utf-8"))
    inputs = {name: str(one.get("default", "")) for name, one in document.get("inputs", {}).items()}
    inputs |= {name: value for name, _, value in (one.partition("=") for one in asked.input)}
    values = {f"inputs.{name}": value for name, value in inputs.items()}
    with tempfile.TemporaryDirectory(prefix="streamgauge-action-") as folder:
        temp = Path(folder)
        (temp / "bin").mkdir()
        (temp / "bin" / "sudo").write_text(_SUDO, encoding="utf-8")
        (temp / "bin" / "sudo").chmod(0o755)
        output = temp / "output"
        runner = {
            "RUNNER_TEMP": folder,
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
            "GITHUB_WORKSPACE": str(Path.cwd()),
            "PATH": f"{temp / 'bin'}:{os.environ['PATH']}",
        }
        status = 0
        for step in steps_of(document, asked.job):
            name = step.get("name") or step.get("uses") or step["run"].splitlines()[0]
            if "run" not in step:
                print(f"action-steps: left out: {step['uses']}", flush=True)
                continue
            print(f"action-steps: {name}", flush=True)
            own = {key: filled(str(value), values) for key, value in step.get("env", {}).items()}
            status = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", filled(step["run"], values)],
                env=os.environ | runner | own,
                check=False,
            ).returncode
            if status:
                print(f"action-steps: {name}: status {status}", flush=True)
                break
        if output.exists():
            found = ", ".join(output.read_text(encoding="utf-8").split())
            print(f"action-steps: outputs: {found}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
