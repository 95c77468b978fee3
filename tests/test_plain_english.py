"""The check of plain English (docs/style.md) finds faults, and its list of exempt texts can only shrink."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
words: Any = importlib.import_module("words")

AT_FIRST = Path(__file__).with_name("words_exempt_at_first.txt")


def a_page(*pieces: str, kind: str = "docs") -> Any:
    return words.Text("a", kind, pieces)


def test_pages_help_and_messages_are_plain_or_on_the_list() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/words.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[:5000] + done.stderr


def test_the_list_of_exempt_texts_can_only_shrink() -> None:
    at_first = {line for line in AT_FIRST.read_text("utf-8").splitlines() if not line.startswith("#")}
    assert len(at_first) > 100
    assert sorted(set(words.exempt()) - at_first) == [], "new texts follow docs/style.md"
    assert len(words.exempt()) == len(set(words.exempt()))


def test_an_exempt_text_that_passes_must_leave_the_list() -> None:
    plain, not_plain = a_page("The server closes idle clients."), a_page("What is here is here.")
    assert words.check([plain], []) == []
    (excuse,) = words.check([plain], ["a"])
    assert "a passes: remove it from scripts/words-exempt.txt" in excuse
    assert words.check([not_plain], ["a"]) == [] and words.check([not_plain], [])
    assert "does not exist" in words.check([], ["a"])[0]


@pytest.mark.parametrize("opening", words.OPENINGS)
def test_an_opening_is_found(opening: str) -> None:
    (fault,) = words.faults(a_page(f"All is well. {opening} trials ran."))
    assert f"begins with {opening!r}" in fault


def test_a_sentence_has_an_end() -> None:
    one, two = " ".join(["word"] * 31) + ".", " ".join(["word"] * 26) + "."
    assert "31 words, at most 30" in words.faults(a_page(one))[0]
    # One in twenty, and one in any page, may be a little longer.
    assert words.faults(a_page(two)) == [] and len(words.faults(a_page(two, two))) == 2
    assert words.faults(a_page(" ".join(["word"] * 21) + ".", kind="help"))


def test_habits_are_counted_by_length() -> None:
    habit = "The file says it."
    assert words.faults(a_page(habit)) == []
    assert "2 counted habits, at most 1" in words.faults(a_page(habit, habit))[0]
    assert words.faults(a_page(habit, habit, *["The queue drops it."] * 250)) == []
    assert "write cross traffic" in words.faults(a_page("The rival sends."))[0]


def test_sentences_are_split_where_they_end() -> None:
    text = "It has 1.5 Mbit/s, e.g. by RFC 3550 (see No. 4). `a.b` is one. (Two!) Is it? CODE runs."
    assert words.sentences(words.of_markdown(text)[0]) == [
        "It has 1.5 Mbit/s, e.g. by RFC 3550 (see No. 4).",
        "CODE is one.",
        "(Two!)",
        "Is it?",
        "CODE runs.",
    ]


def test_prose_of_a_page_is_without_code_and_addresses() -> None:
    text = "# Head\n\nSee [a *b*](c.md) and `x`.\n\n```\nWhat is code\n```\n\n- one\n  more\n- two\n"
    text += "\n| a | yes `b` |\n|---|---|\n"
    assert words.of_markdown(text) == ["Head", "See a *b* and CODE.", "one   more", "two", "yes CODE"]


def test_messages_of_python_rust_and_templates_are_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (package := tmp_path / "python/streamgauge/report").mkdir(parents=True)
    (package / "a.py").write_text('raise ReportError("What is here is here.")\n')
    (package / "b.html.j2").write_text("<p>What is here is here.</p>\n")
    (crate := tmp_path / "crates/a/src").mkdir(parents=True)
    (crate / "lib.rs").write_text('#[error("What is here is here.")]\nenum Fault { A }\n')
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words.messages, "ROOT", tmp_path)
    monkeypatch.setattr(words.messages, "PACKAGE", tmp_path / "python/streamgauge")
    found = words.check([text for file in words.messages.files() for text in words.messages_of(file)], [])
    assert {fault.partition(": ")[0].rpartition("/")[2] for fault in found} == {"a.py", "b.html.j2", "lib.rs"}
    assert any("begins with 'What'" in fault for fault in found)


def test_comments_of_python_rust_and_scripts_are_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    for name, text in {
        "python/streamgauge/a.py": 'x = 1\n"""Of a value.\n\nArgs:\n    what: a name.\n"""\n',
        "crates/a/src/lib.rs": "/// A sentence.\n///\n/// What is here.\nfn a() {}\n",
        "scripts/a.sh": "#!/bin/sh\n# A test.\n# What is here.\n",
        "Makefile": "# The files say it.\n\n# They say `what` they are.\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read = {text.name.rpartition("/")[2]: text for text in map(words.comments_of, words.commented())}
    assert read["a.py"].pieces[0] == "Of a value." and "what" not in " ".join(read["a.py"].pieces)
    found = {name: words.faults(text) for name, text in read.items()}
    assert [len(found[name]) for name in ("a.py", "lib.rs", "a.sh")] == [1, 1, 1]
    assert "2 counted habits" in found["comments of Makefile"][0]
    # A comment may be as long as its reason.
    assert words.faults(a_page(" ".join(["word"] * 99), kind="comments")) == []


def test_help_of_every_command_is_read() -> None:
    names = {text.name for text in words.of_help()}
    assert {"help", "help run", "help compare", "help link"} <= names and len(names) > 20


def test_the_readme_is_one_page() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 60 and text.count("](") <= 8, "details belong to docs/"
