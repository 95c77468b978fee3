"""docs/ci.md, as somebody follows it in a folder of his own: an equal build passes, a worse one fails."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from driving import Person, skip_without_processor, tell_starved
from ruamel.yaml import YAML
from stranger import CHECKOUT, Done, Stranger
from streamgauge.cli.app import command

PAGE = (CHECKOUT / "docs" / "ci.md").read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
WRITTEN = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TRIES = 3


class Newcomer(Stranger):
    """With a name, so that he may commit."""

    def environment(self) -> dict[str, str]:
        who = {
            f"GIT_{one}_{what}": "a@b.example"
            for one in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        return {**super().environment(), **who, "GIT_CONFIG_GLOBAL": "/dev/null"}


def invalid(runs: Path) -> list[dict[str, Any]]:
    """The trials there that are."""
    found = []
    for file in runs.rglob("trial.json"):
        told = json.loads(file.read_text(encoding="utf-8"))
        if not told["validity"]["valid"]:
            why = told["validity"]["why"]
            trial = {"scenario": "mine/video", "seed": told["seed"], "valid": False, "why": why}
            found.append({**trial, "directory": str(file.parent)})
    return found


def typed(newcomer: Newcomer, block: str, folder: Path) -> Done:
    """What a block does. One that compares runs its trials at the same time, to take less; if too many of
    them were starved, it is run again, as the page advises, and those that were run one at a time."""
    lines = block.replace("\\\n", " ").splitlines()
    comparing = [line for line in lines if line.startswith("streamgauge compare")]
    if not comparing:
        return newcomer.run(f"set -e\n{block}")
    first = "\n".join(line for line in lines if line not in comparing)
    (line,) = comparing
    assert newcomer.run(f"set -e\ncd mine\n{first}").status == 0
    for jobs in (3, *[1] * (TRIES - 1)):
        done = newcomer.run(f"cd mine\n{line} --jobs {jobs}", timeout_s=600)
        if done.status != 2:
            break
    lost = invalid(folder / "mine" / "runs")
    if done.status == 2 and lost:
        skip_without_processor(lost)
    return done


def test_an_equal_build_passes_and_a_worse_one_fails(anyone: Person) -> None:
    newcomer, folder = Newcomer(anyone.home), anyone.home
    (folder / "examples").symlink_to(CHECKOUT / "examples")
    begin, equal, worse, save, against = SHELL
    assert newcomer.run(f"set -e\n{begin}").status == 0
    mine = folder / "mine"

    done = typed(newcomer, equal, folder)
    assert done.status == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("pass: No metric is worse than the baseline's")
    assert "HEAD~1" in done.stdout and "time stalled" in done.stdout
    assert not ElementTree.parse(mine / "equal.xml").findall(".//failure")
    assert (mine / "equal.md").read_text().startswith("### ✅ ")

    done = typed(newcomer, worse, folder)
    assert done.status == 1, done.stdout + done.stderr
    assert re.match(r"fail: \d metrics are worse: .*time stalled", done.stdout.splitlines()[-1])
    failures = ElementTree.parse(mine / "worse.xml").findall(".//testcase[failure]")
    assert any("spent stalled" in one.attrib["name"] for one in failures)
    summary = (mine / "worse.md").read_text()
    assert summary.startswith("### ❌ ") and "| time stalled | 0 % |" in summary and "◄" in summary

    done = typed(newcomer, save, folder)
    assert done.status == 0, done.stdout + done.stderr
    done = typed(newcomer, against, folder)
    assert done.status == 0, done.stdout + done.stderr
    assert "baseline" in done.stdout.splitlines()[-1]
    for trial in invalid(mine / "runs"):
        tell_starved(trial, "a newcomer")


def test_the_scenario_is_the_one_that_lies_there() -> None:
    (written,) = [text for text in WRITTEN if text.startswith("id: mine/video")]
    lies = (CHECKOUT / "examples" / "ci" / "video.yaml").read_text(encoding="utf-8")
    assert written == "".join(line for line in lies.splitlines(keepends=True) if not line.startswith("#"))


def scripts(data: Any) -> list[str]:
    """What a workflow has a shell do."""
    if isinstance(data, dict):
        own = [data[key] for key in ("run", "script") if isinstance(data.get(key), str | list)]
        flat = [text for one in own for text in ([one] if isinstance(one, str) else one)]
        return [*flat, *(text for value in data.values() for text in scripts(value))]
    return [text for one in data for text in scripts(one)] if isinstance(data, list) else []


@pytest.mark.parametrize("name", ["name: behaviour", "behaviour:"])
def test_a_workflow_is_yaml_and_the_program_reads_its_commands(name: str) -> None:
    """They run elsewhere; the options that they give are there."""
    (written,) = [text for text in WRITTEN if text.startswith(name)]
    lines = [line for text in scripts(YAML(typ="safe").load(written)) for line in joined(text)]
    ours = [line[line.index("streamgauge ") :] for line in lines if re.search(r"\bstreamgauge [a-z]", line)]
    assert sum(line.startswith("streamgauge compare") for line in ours) == 1
    for line in ours:
        words = shlex.split(re.split(r"\|\||[>|]", line)[0])
        group: Any = command()
        context = group.make_context("streamgauge", words[1:])
        name, one, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        parameters = one.make_context(name, list(rest), parent=context).params
        if name == "compare":
            assert len(parameters["commit"]) == 2 and parameters["at_most"] == 12 and parameters["junit"]


def joined(text: str) -> list[str]:
    return text.replace("\\\n", " ").splitlines()
