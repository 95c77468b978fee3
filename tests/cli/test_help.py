"""Every help text shows all of its source: markup takes away what stands in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rich.text import Text
from streamgauge.cli.app import command

_OURS = re.compile(r"\[/?b\]")


def texts(group: Any, path: str = "streamgauge") -> Iterator[tuple[str, str]]:
    """Where a text stands, and the text."""
    yield path, group.help or ""
    for parameter in group.params:
        yield f"{path} {parameter.name}", getattr(parameter, "help", None) or ""
        yield f"{path} {parameter.name}, its value", str(parameter.metavar or "")
    for name, inner in getattr(group, "commands", {}).items():
        yield from texts(inner, f"{path} {name}")


def test_no_text_loses_what_stands_in_brackets() -> None:
    found = list(texts(command()))
    assert len(found) > 200
    for where, text in found:
        written = _OURS.sub("", text).replace("\\[", "[")
        assert Text.from_markup(text).plain == written, where
