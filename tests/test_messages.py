"""The table of messages (scripts/messages.py) has those of Python, Rust and templates, each at its place."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
messages: Any = importlib.import_module("messages")

RUST = r"""
//! "not a message of course"
/// Documents nothing that is printed.
#[derive(Debug, Args)]
pub struct Given {
    /// The folder with the files, and
    /// their names.
    #[arg(long)]
    folder: String,
}

#[error("the {object} declares {bytes} B, fewer than its header")]
fn refuse<'a>(name: &'a str) -> String {
    assert!(name.len() < 9, "the name is too long");
    let mark = '"'; // a lone quote "and a comment"
    let bytes = (b"no message in bytes", r"no message in raw text", c"no message in C");
    let url = "https://example.net/one-word";
    format!("cannot open {name:?}: \
             the folder is \"full\" of {{braces}}")
}

#[cfg(test)]
mod tests {
    fn message() -> &'static str { "a message of a test only" }
}

const LAST: &str = "the line after the tests";
"""


def test_messages_of_rust_are_its_literals_and_the_help_of_commands() -> None:
    assert messages.of_rust(RUST) == [
        (6, "The folder with the files, and their names."),
        (12, "the CODE declares CODE B, fewer than its header"),
        (18, 'cannot open CODE: the folder is "full" of {braces}'),
        (27, "the line after the tests"),
    ]


PYTHON = """raise ScenarioError(
    f"{name}: no such file",
    hint="name another file",
)
x = "one two three four"
"""
TEMPLATE = """<h1>{{ title }}</h1>
{% if one %}
<p>The <i>mean</i> over {{ n }} trials.</p>
{% endif %}<svg>no text of this</svg>
"""


def test_messages_of_python_are_printed_raised_or_hints() -> None:
    assert messages.of_python(PYTHON) == [(2, "CODE: no such file"), (3, "name another file")]
    assert (5, "one two three four") in messages.of_python(PYTHON, every=True)
    assert messages.of_python('"""One two three."""\n', every=True) == []


def test_text_of_a_template_is_without_marks() -> None:
    assert messages.of_template(TEMPLATE) == [(3, "The mean over CODE trials.")]


def test_every_message_is_in_the_table_at_its_place() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/messages.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    table = done.stdout.splitlines()
    for known in (
        "no such video file. Correct the clip's path",
        "too many clients; try again later",
        "A check is decided on the 95 % interval",
    ):
        (line,) = (one for one in table if known in one)
        file, number, _ = line.split(":", 2)
        near = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(number) - 1 : int(number) + 2]
        assert known.split()[0] in " ".join(near), line
    assert {Path(line.partition(":")[0]).suffix for line in table} == {".py", ".rs", ".j2"}
