"""The walks of the pages: the files that they have the reader write, what is added to files that are there,
and what he types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stranger import CHECKOUT

#: The name stands at the end of the line before its block; a second block of the same file says none.
_BLOCK = re.compile(r"(?:`(?P<name>[\w./-]+)`:\n\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A block of a page: a whole file, or what is changed in one (``diff``)."""

    name: str
    kind: str
    text: str


@dataclass(frozen=True)
class Walk:
    """A section of a page."""

    blocks: tuple[Block, ...]
    commands: tuple[str, ...]

    @classmethod
    def of(cls, page: str, begins_at: str, ends_at: str = "") -> Walk:
        """That of a page of `docs` from one line to another, or to the page's end."""
        text = "\n" + (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
        begin = text.index(f"\n{begins_at}\n")
        return cls.read(text[begin : text.index(f"\n{ends_at}\n", begin + 1) if ends_at else None])

    @classmethod
    def read(cls, text: str) -> Walk:
        """Of a section's text."""
        blocks: list[Block] = []
        commands: list[str] = []
        for block in _BLOCK.finditer(text):
            if not block["kind"]:
                commands += block["text"].splitlines()
                continue
            name = block["name"] or (blocks[-1].name if block["kind"] == "diff" else None)
            assert name, f"a block of the page is of no file: {block[0][:200]}"
            blocks.append(Block(name, block["kind"], block["text"]))
        return cls(tuple(blocks), tuple(commands))

    def files(self, *, new: bool) -> list[str]:
        """The files that it makes, or those that it changes, in order."""
        return sorted({block.name for block in self.blocks if (block.kind != "diff") == new})

    def take(self, folder: Path) -> None:
        """Writes and changes in `folder` what the page says."""
        for block in self.blocks:
            file = folder / block.name
            if block.kind == "diff":
                file.write_text(changed(file.read_text(encoding="utf-8"), block.text), encoding="utf-8")
            else:
                assert not file.exists(), f"the page's {block.name} is there already"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")


def changed(text: str, diff: str) -> str:
    """`text` with the lines of `diff` that begin with ``+``, and without those that begin with ``-``, among
    those that begin with a space."""
    lines = diff.splitlines()
    assert all(line[:1] in " +-" for line in lines), diff
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in " -")
    assert text.count(before) == 1, f"what the page adds to is not there, or more than once: {before}"
    return text.replace(before, "".join(f"{line[1:]}\n" for line in lines if line[:1] in " +"))
