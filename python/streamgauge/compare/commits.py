"""Commits of a compared program: each is checked out and built apart, and its commands run there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from streamgauge.compare.subjects import AskedScenario, ComparedSubject
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario import Scenario

__all__ = ["BUILDS", "Build", "build_commits", "subjects_of_builds"]

BUILDS = "builds"
"""Folder in a comparison's: a checkout for each commit, and the output of its build."""
_TOLD_LINES = 5


@dataclass(frozen=True)
class Build:
    """A commit, checked out and built."""

    revision: str
    """As it was asked for."""
    commit: str
    """Its whole name."""
    folder: Path
    root: Path
    """The top of the working tree that it is a commit of."""

    @property
    def label(self) -> str:
        """Returns ``v1.2 (3f2a91c)``, or the short name alone where it was asked for so."""
        short = self.commit[:7]
        return short if self.commit.startswith(self.revision) else f"{self.revision} ({short})"


def build_commits(
    revisions: Sequence[str],
    near: Path,
    out: Path,
    *,
    command: str | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Build]:
    """Checks out each commit of the repository in which `near` lies and builds it, below ``out/builds``.

    A commit that has been built there by the same command is not built again. Submodules are not fetched.

    Args:
        revisions: names of commits for git: branches, tags, ``HEAD~1``.
        near: a file or folder of the working tree.
        out: the comparison's folder.
        command: run by a shell in the top of each checkout; nothing is built if None.
        say: receives the current action.

    Raises:
        ScenarioError: if there is no repository or no such commit.
        CannotRunError: if git is missing, or a build fails; its last lines and its log are named.
    """
    if shutil.which("git") is None:
        raise CannotRunError("--commit needs git; install it: apt-get install git")
    folder = near if near.is_dir() else near.parent
    root = Path(_git(folder, "rev-parse", "--show-toplevel", hint=f"{folder} lies in no git repository"))
    found: list[Build] = []
    for revision in revisions:
        commit = _git(
            root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
            hint=f"{root} has no commit '{revision}'",
        )  # fmt: skip
        build = Build(revision, commit, (out / BUILDS / commit[:12]).absolute(), root)
        if build.commit not in {one.commit for one in found}:
            _prepare(build, command, say)
            found.append(build)
            continue
        raise ScenarioError(f"'{revision}' is {commit[:7]}, which is asked for already", key="--commit")
    return found


def subjects_of_builds(builds: Sequence[Build], subjects: Sequence[ComparedSubject]) -> list[ComparedSubject]:
    """Returns each subject for each build: the paths of its commands that lie in the working tree lie in the
    build's checkout instead. Raises ScenarioError if none of a scenario's do."""
    found = []
    for subject in subjects:
        for build in builds:
            asked = tuple(_moved(one, build) for one in subject.asked)
            label = build.label if len(subjects) == 1 else f"{subject.label}, {build.label}"
            found.append(replace(subject, label=label, asked=asked))
    return found


def _prepare(build: Build, command: str | None, say: Callable[[str], None]) -> None:
    """Leaves a built checkout, or nothing of it but its log."""
    done, log = build.folder.with_suffix(".built"), build.folder.with_suffix(".log")
    if build.folder.is_dir() and done.is_file() and done.read_text(encoding="utf-8") == (command or ""):
        return
    shutil.rmtree(build.folder, ignore_errors=True)
    done.unlink(missing_ok=True)
    build.folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        say(f"checking out {build.label}")
        # A clone of its own, so that nothing is left in the user's repository.
        _git(build.root, "clone", "--quiet", "--shared", "--no-checkout", str(build.root), str(build.folder))
        _git(build.folder, "checkout", "--quiet", "--detach", build.commit)
        if command is not None:
            say(f"building {build.label}: {command}")
            with log.open("wb") as output:
                status = subprocess.run(
                    command,
                    shell=True,
                    cwd=build.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                ).returncode
            if status:
                last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_TOLD_LINES:]
                raise CannotRunError(
                    f"{build.label} does not build: '{command}' ended with status {status}; log: {log}"
                    + "".join(f"\n  {line}" for line in last)
                )
    except BaseException:
        shutil.rmtree(build.folder, ignore_errors=True)
        raise
    done.write_text(command or "", encoding="utf-8")


def _git(folder: Path, *arguments: str, hint: str = "") -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if ran.returncode:
        said = " ".join(ran.stderr.split())
        raise ScenarioError(
            hint or f"git {arguments[0]}: {said}", key="--commit", hint=said if hint else None
        )
    return ran.stdout.strip()


def _moved(asked: AskedScenario, build: Build) -> AskedScenario:
    scenario, count = _relocated(asked.scenario, build.root, build.folder)
    if not count:
        raise ScenarioError(
            f"no command of {asked.scenario.id} runs in {build.root}, whose commits are to be compared",
            key="--commit",
            hint="a system is given as commands in a scenario's file that lies in the repository",
        )
    return replace(asked, scenario=scenario, place=asked.place / f"commit={build.commit[:12]}")


def _relocated(scenario: Scenario, root: Path, to: Path) -> tuple[Scenario, int]:
    """With all paths of commands below `root` below `to` instead, and how many there were."""
    data: dict[str, Any] = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    count = 0

    def moved(value: Any) -> Any:
        nonlocal count
        if isinstance(value, dict):
            return {key: moved(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [moved(inner) for inner in value]
        if isinstance(value, str) and Path(value).is_absolute() and Path(value).is_relative_to(root):
            count += 1
            return str(to / Path(value).relative_to(root))
        return value

    for flow in data["flows"].values():
        for place in (flow, flow.get("sim"), flow.get("emu")):
            if isinstance(place, dict) and isinstance(place.get("system"), dict):
                place["system"] = moved(place["system"])
    try:
        return Scenario.model_validate(data), count
    except ValidationError as error:
        said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        raise ScenarioError(f"{scenario.id} cannot run in {to}: {said}", key="--commit") from None
