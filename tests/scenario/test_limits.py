"""Input that stands for more than any memory holds is refused in a line, before it is expanded."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.media.own_files import unreadable
from streamgauge.scenario import from_text, load
from streamgauge.scenario.limits import MOST_DEPTH, MOST_NODES, LimitError, check_text, check_variants
from streamgauge.scenario.overrides import OverrideError, apply_override

BEGIN = "id: test/x\n"


def _bomb(*, levels: int, kind: str) -> str:
    """Ten of ten of ten ..., as lists, as mappings, or by merges."""
    if kind == "lists":
        lines = [
            "a0: &a0 [x]",
            *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)),
        ]
    else:
        lines = ["a0: &a0 {x: y}"]
        for n in range(1, levels):
            inner = ", ".join(f"k{i}: *a{n - 1}" for i in range(10))
            lines.append(f"a{n}: &a{n} {{{'<<: *a0, ' if kind == 'merges' else ''}{inner}}}")
    return BEGIN + "\n".join(lines) + "\n"


BEYOND = {
    "lists of lists": (_bomb(levels=9, kind="lists"), "aliases counted"),
    "mappings of mappings": (_bomb(levels=9, kind="mappings"), "aliases counted"),
    "merges": (_bomb(levels=9, kind="merges"), "aliases counted"),
    "a long text again and again": (
        f"{BEGIN}a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 100)}]\n",
        "aliases counted",
    ),
    "an alias within itself": (f"{BEGIN}a: &a [x, *a]\n", "contains itself"),
    "brackets": (f"{BEGIN}z: {'[' * 900}{']' * 900}\n", "levels deep"),
    "brackets without end": (f"{BEGIN}z: {'[' * 100_000}\n", "levels deep"),
    "braces": (f"{BEGIN}z: {'{a: ' * 200}1{'}' * 200}\n", "levels deep"),
    "dashes": (f"{BEGIN}z:\n  {'- ' * 300}x\n", "levels deep"),
    "indents": (BEGIN + "".join(f"{' ' * n}k:\n" for n in range(200)), "levels deep"),
    "a very long file": (BEGIN + "# \n" * 1_500_000, "characters; a scenario has at most"),
    "very many lines": (f"{BEGIN}z: [{'x, ' * 250_000}]\n", "values"),
}


@pytest.mark.parametrize("what", BEYOND)
def test_more_than_a_scenario_may_be_is_refused(what: str, tmp_path: Path) -> None:
    text, why = BEYOND[what]
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(str(file))
    assert why in str(caught.value) or "has more than 4 MB" in str(caught.value)
    assert str(file) in str(caught.value) and len(str(caught.value)) < len(str(file)) + 200


def test_what_lies_within_the_bounds_is_left_to_others() -> None:
    depth = MOST_DEPTH - 1
    check_text(f"z: {'[' * depth}{']' * depth}\n")
    check_text('a: "' + "[" * 500 + '"\n')
    check_text(_bomb(levels=4, kind="lists"))
    check_text("a: [unclosed\n" + "*b & c" * 10)
    many = MOST_NODES // 4
    check_text(f"a: &a [{', '.join('x' * many)}]\nb: [*a, *a]\n")
    with pytest.raises(LimitError):
        check_text(f"a: &a [{', '.join('x' * many)}]\nb: [*a, *a, *a, *a]\n")


def test_variants_are_counted_before_they_are_made(tmp_path: Path) -> None:
    check_variants([range(70), range(70)], 100)
    for axes, nodes in (([range(100), range(100)], 1), ([range(10)] * 30, 1), ([range(1000)], 5_000)):
        with pytest.raises(LimitError, match="variants"):
            check_variants(axes, nodes)
    axis = "{" + ", ".join(f"v{n}: {{}}" for n in range(10)) + "}"
    file = tmp_path / "scenario.yaml"
    file.write_text(f"{BEGIN}variants:\n" + f"  - {axis}\n" * 9)
    with pytest.raises(ScenarioError, match="has more than 5000 variants"):
        load(str(file))


def test_files_that_extend_one_another_are_counted(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"s{number}.yaml").write_text(f"id: test/{number}\nextends: s{number + 1}.yaml\n")
    with pytest.raises(ScenarioError, match="more than 20 files extend one another"):
        load(str(tmp_path / "s0.yaml"))


@pytest.mark.parametrize("value", ["[" * 5_000, "x" * 5_000_000, "{a: &a [*a]}"])
def test_a_value_that_is_set_has_the_same_bounds(value: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load("hessler/ftp-no", settings=[f"path.down.rate={value}"])
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("key", ["{a: {b: c}}", "[{a: 1}]"])
def test_a_key_is_no_mapping(key: str) -> None:
    with pytest.raises(ScenarioError, match="a mapping or a list is a key") as caught:
        from_text(f"id: x/keys\n? {key}\n: 1\n", file="my.yaml")
    assert str(caught.value).startswith("my.yaml: ")


def test_a_pipe_or_a_device_is_no_scenario(tmp_path: Path) -> None:
    pipe = tmp_path / "scenario.yaml"
    os.mkfifo(pipe)
    with pytest.raises(ScenarioError, match="is a pipe; expected a file"):
        load(str(pipe))
    link = tmp_path / "device.yaml"
    link.symlink_to("/dev/zero")
    with pytest.raises(ScenarioError, match="is a device; expected a file"):
        load(str(link))


def test_the_program_refuses_a_bomb_in_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(_bomb(levels=9, kind="lists"))
    program = r"""
import re, sys
from pathlib import Path
from streamgauge.cli import main
status = main(["show", sys.argv[1]])
# Not getrusage's figure, which has the memory of the process that forked this one.
print(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
sys.exit(status)
"""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    command = [sys.executable, "-c", program, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert int(done.stdout) < 200_000, "kB"


def test_a_pipe_or_a_device_is_no_clip(tmp_path: Path) -> None:
    pipe = tmp_path / "clip.mp4"
    os.mkfifo(pipe)
    found = unreadable([pipe, Path("/dev/zero")])
    assert {str(error) for error in found.values()} == {
        f"{file}: it is a pipe or a device; name a file of video." for file in (pipe, "/dev/zero")
    }


def test_an_address_has_an_end() -> None:
    with pytest.raises(OverrideError, match="has more than 60 parts"):
        apply_override({}, ".".join(["a"] * 50_000), 1)
