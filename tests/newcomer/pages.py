"""The commands of a page, as a reader sees them, and the files that it has him save."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stranger import CHECKOUT

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
#: What a command begins with.
PROGRAMS = (
    "streamgauge",
    ".venv/bin/streamgauge",
    "sudo",
    "make",
    "python",
    "cargo",
    "dask",
    "ffplay",
    "mpv",
    "gst-launch-1.0",
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(r"saved as `([\w.-]+\.yaml)`.*?```yaml\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Page:
    """A page's commands in their order, without the remarks behind them."""

    name: str
    text: str
    commands: tuple[str, ...]

    @classmethod
    def read(cls, file: Path) -> Page:
        text = file.read_text(encoding="utf-8")
        found: list[str] = []
        for language, block in _BLOCK.findall(text):
            lines = [
                _without_remark(line) for line in block.replace("\\\n", " ").splitlines() if line.strip()
            ]
            # What a program prints begins with its name and a colon.
            if language in ("", "sh", "console") and lines and lines[0].split(" ")[0] in PROGRAMS:
                found += lines
        return cls(file.name, text, tuple(found))

    def save_files(self, folder: Path) -> None:
        """Does what the page says where it has the reader save an example."""
        for name, text in _SAVED.findall(self.text):
            (folder / name).write_text(text, encoding="utf-8")


def _without_remark(line: str) -> str:
    return " ".join(re.sub(r"\s+# .*", "", line).split())
