"""The commands of the README and of each page, run as they are printed, by somebody with a fresh checkout.

Each command is in one class of the table in `page_commands`; a new one fails the test until it is. Those that
take seconds run here, those that need namespaces among the tests of emu, long ones with `make test-long`. The
program itself parses at least the options, scenarios and settings of commands that do not run here.
"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from driving import Person
from page_commands import COMMANDS, HERE, LONGER, READERS, How, When
from pages import PAGES, Page
from stranger import Stranger
from streamgauge.cli import spelt_out
from streamgauge.cli.app import command
from streamgauge.paper import papers
from streamgauge.scenario import find

# Links are interfaces of this machine.
pytestmark = pytest.mark.xdist_group("machine")

#: Pages that name commands and leave their output to the guides.
WITHOUT_OUTPUT = ("README.md", "first-trial.md", "tour.md")
READ = [Page.read(file) for file in PAGES]
BY_NAME = {page.name: page for page in READ}


def bare(line: str) -> str:
    """A command as the table has it: a page that is read in a checkout may say where the program is."""
    return line.removeprefix(".venv/bin/")


def pages_with(*when: When) -> list[str]:
    return [
        page.name for page in READ if any(COMMANDS.get(bare(c), HERE).when in when for c in page.commands)
    ]


def test_every_command_is_in_a_class_and_every_class_is_of_a_command() -> None:
    printed = {bare(line) for page in READ for line in page.commands}
    assert sorted(printed - set(COMMANDS)) == [], "say in COMMANDS when these run"
    assert sorted(set(COMMANDS) - printed) == [], "no page has these any more"
    for line, how in COMMANDS.items():
        for page in READ:
            if line in map(bare, page.commands) and how.shows and page.name not in WITHOUT_OUTPUT:
                assert all(re.search(shown, page.text) for shown in how.shows), (
                    f"{page.name} does not show it"
                )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in LONGER else ())
        for name in pages_with("here", "serving")
    ],
)
def test_a_page_as_printed(name: str, tmp_path: Path) -> None:
    """From top to bottom, in one folder."""
    page, stranger = BY_NAME[name], Stranger.in_a_checkout(tmp_path)
    page.save_files(tmp_path)
    served: list[subprocess.Popen[str]] = []
    try:
        for line in page.commands:
            how = COMMANDS[bare(line)]
            if how.when == "here":
                run(stranger, line, how)
            elif how.when == "serving":
                served.append(serve(stranger, line))
        for server in served:
            end(server)
    finally:
        for server in served:
            server.kill()
            server.wait()


@pytest.mark.parametrize("name", sorted({*pages_with("in namespaces", "long", "never"), *LONGER}))
def test_what_does_not_run_here_is_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, stranger = BY_NAME[name], Stranger.in_a_checkout(tmp_path)
    page.save_files(tmp_path)
    monkeypatch.chdir(stranger.folder)
    for line in page.commands:
        how = COMMANDS[bare(line)]
        if (name in LONGER or how.when in ("in namespaces", "long", "never")) and how.why != READERS:
            read(shlex.split(bare(line), comments=True))


@pytest.mark.parametrize("name", pages_with("in namespaces"))
def test_a_page_in_namespaces(name: str, anyone: Person, tmp_path: Path) -> None:
    page, stranger = BY_NAME[name], Stranger.in_a_checkout(tmp_path)
    for line in page.commands:
        how = COMMANDS[bare(line)]
        if how.when == "in namespaces":
            run(stranger, line, how)


@pytest.mark.long
@pytest.mark.parametrize("name", pages_with("long"))
def test_a_page_that_takes_long(name: str, anyone: Person, tmp_path: Path) -> None:
    page, stranger = BY_NAME[name], Stranger.in_a_checkout(tmp_path)
    page.save_files(tmp_path)
    for line in page.commands:
        how = COMMANDS[bare(line)]
        if how.when == "long":
            run(stranger, line, how, timeout_s=6 * 3600)


def run(stranger: Stranger, line: str, how: How, timeout_s: float = 300) -> None:
    done = stranger.run(line, timeout_s)
    assert done.status == how.status, f"{line}\n{done.stderr}\n{done.stdout}"
    for shown in how.shows:
        assert re.search(shown, done.stdout + done.stderr), f"{line}\n{done.stderr}\n{done.stdout}"


def serve(stranger: Stranger, line: str) -> subprocess.Popen[str]:
    """A server that stays, in another terminal or in the background, once it says that it serves."""
    server = stranger.popen(f"exec {line.removesuffix('&')}")
    assert server.stdout is not None
    said = server.stdout.readline()
    assert said.startswith(("serving ", "answering ")), f"{line}\n{said}{server.communicate()}"
    return server


def end(server: subprocess.Popen[str]) -> None:
    server.send_signal(signal.SIGINT)
    said = server.communicate(timeout=30)
    assert server.returncode == 0, said


def read(words: list[str]) -> None:
    """The program reads its options, scenarios and settings, and does not run."""
    words = words[1:] if words[0] == "sudo" else words
    if words[0] != "streamgauge":
        return
    group: Any = command()
    context = group.make_context("streamgauge", spelt_out(words[1:]))
    name, one, rest = group.resolve_command(context, [*context._protected_args, *context.args])
    parameters = one.make_context(name, list(rest), parent=context).params
    if name in ("run", "reproduce", "show"):
        names = parameters.get("names") or [parameters["name"]]
        if not (len(names) == 1 and names[0] in papers()):
            assert find(names, settings=parameters.get("settings") or [])
    if name == "link":
        read(list(parameters["command"]))
