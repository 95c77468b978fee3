"""Which file of a crate uses which: what `test_layout` holds of Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Module = tuple[str, ...]
"""A module's path within its crate; ``()`` is the root."""

_SKIPPED = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | r(\#*)".*?"\1 | b?"(?:\\.|[^"\\])*" | b?'(?:\\[^\n']+|[^\\'\n])'""",
    re.DOTALL | re.VERBOSE,
)
_TEST_ONLY = re.compile(r"#\[cfg\(test\)\]\s*")
_ATTRIBUTE = re.compile(r"\s*#\[[^\]]*\]")
_CHILD = re.compile(r"^\s*(?:pub(?:\([a-z:\s]+\))?\s+)?mod\s+(\w+)\s*;", re.MULTILINE)
_USE = re.compile(r"(?<![\w$])(?:pub(?:\([a-z:\s]+\))?\s+)?use\s+([^;]+);")
_RE_EXPORT = re.compile(r"\s*pub\b")
_DEFINED = re.compile(
    r"(?<!\w)(?:struct|enum|union|trait|type|fn|const|static|mod|macro_rules!)\s+(?:mut\s+)?(\w+)"
)
_INLINE = re.compile(r"(?<!\w)mod\s+\w+\s*\{")
_PATH = re.compile(r"(?<![\w:$])(\w+(?:::\w+)+)")


@dataclass
class _File:
    children: set[str]
    defined: set[str]
    uses: list[tuple[Module, str]]
    """What every ``use`` names, as written, and the name it has here; ``*`` for all of it."""
    own_uses: list[Module]
    """Those that are not ``pub use``."""
    paths: list[Module] = field(default_factory=list)
    """What its code names by a path, as written."""


def uses_between_files(src: Path) -> dict[Module, set[Module]]:
    """The modules (a file each) of the crate whose sources are in `src`, with those that each uses.

    A module uses the file in which what it names is defined: a name is followed through the ``use`` lines of
    the modules on the way, so that a re-export stands for its origin. Neither ``mod x;`` nor ``pub use`` is a
    use: a parent may have children and show what they offer. But a parent whose own code names a child's item
    uses the child, and a child that names what the parent's file defines uses the parent. Code under
    ``#[cfg(test)]`` does not count; an inline module is part of its file.
    """
    root = src / "lib.rs" if (src / "lib.rs").exists() else src / "main.rs"
    files: dict[Module, _File] = {}
    _read(root, (), src, files)
    return {module: _used_by(module, files) - {module} for module in files}


def uses_between_siblings(src: Path) -> dict[Module, dict[str, set[str]]]:
    """For each module with children, which of them, with all that is below it, uses which other.

    A module and what is below it are one thing from outside: Rust lets a child see what its parent keeps to
    itself, and the house puts a trait, its constants and the choice among its kinds in the parent's file. So
    uses between a module and one above or below it say nothing here; those across a folder do, however deep
    the two files lie.
    """
    between: dict[Module, dict[str, set[str]]] = {}
    for module, others in uses_between_files(src).items():
        for other in others:
            shared = next((i for i, (a, b) in enumerate(zip(module, other, strict=False)) if a != b), None)
            if shared is not None:
                siblings = between.setdefault(module[:shared], {})
                siblings.setdefault(module[shared], set()).add(other[shared])
    return between


def _read(path: Path, module: Module, folder: Path, files: dict[Module, _File]) -> None:
    text = _code(path.read_text(encoding="utf-8"))
    uses, own_uses = [], []
    for found in _USE.finditer(text):
        named = list(_use_tree(re.sub(r"\s+", " ", found[1])))
        uses += named
        if not _RE_EXPORT.match(found[0]):
            own_uses += [target for target, _ in named]
    read = _File(set(_CHILD.findall(text)), set(_DEFINED.findall(text)), uses, own_uses)
    read.paths = [tuple(name.split("::")) for name in _PATH.findall(_USE.sub("", text))]
    files[module] = read
    for child in read.children:
        beside, within = folder / f"{child}.rs", folder / child / "mod.rs"
        _read(beside if beside.exists() else within, (*module, child), folder / child, files)


def _code(text: str) -> str:
    """`text` without comments, strings and what is for tests alone."""
    text = _SKIPPED.sub(lambda found: " " if found[0].startswith("/") else "0", text)
    while (found := _TEST_ONLY.search(text)) is not None:
        text = text[: found.start()] + text[_end_of_item(text, found.end()) :]
    for found in reversed(list(_INLINE.finditer(text))):
        end = _end_of_item(text, found.start())
        text = text[: found.end()] + text[found.end() : end].replace("super::", "self::") + text[end:]
    return text


def _end_of_item(text: str, start: int) -> int:
    while (attribute := _ATTRIBUTE.match(text, start)) is not None:
        start = attribute.end()
    depth = 0
    for at in range(start, len(text)):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}":
            depth -= 1
            if depth < 0 or (depth == 0 and text[at] == "}" and not text.startswith(";", at + 1)):
                return at if depth < 0 else at + 1
        elif text[at] in ";," and depth == 0:
            return at + 1
    return len(text)


def _use_tree(tree: str, before: Module = ()) -> Iterator[tuple[Module, str]]:
    """Every (path, name here) of a ``use`` tree."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    prefix = (*before, *(part.strip() for part in head.split("::") if part.strip()))
    if brace:
        for branch in _branches(rest.rstrip().removesuffix("}")):
            yield from _use_tree(branch, prefix)
    elif prefix:
        *whole, last = prefix
        last, _, alias = last.partition(" as ")
        if last == "self":
            yield tuple(whole), alias or whole[-1]
        else:
            yield (*whole, last), alias or last


def _branches(text: str) -> Iterator[str]:
    depth, begin = 0, 0
    for at, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    if text[begin:].strip():
        yield text[begin:]


def _used_by(module: Module, files: dict[Module, _File]) -> set[Module]:
    read = files[module]
    named = [*read.own_uses, *read.paths]
    homes = (_home(module, name, files) for name in named)
    return {home for home in homes if home is not None}


def _home(
    at: Module, name: Module, files: dict[Module, _File], seen: frozenset[tuple[Module, Module]] = frozenset()
) -> Module | None:
    """The module that defines what `name`, written in module `at`, means; None if it is not of this crate."""
    if (at, name) in seen:
        return None
    seen |= {(at, name)}
    first, *rest = name
    if first == "crate":
        return _below((), tuple(rest), files, seen)
    if first == "self":
        return _below(at, tuple(rest), files, seen)
    if first == "super":
        return _below(at[:-1], tuple(rest), files, seen) if at else None
    own = files[at]
    if first in own.children or any(known == first for _, known in own.uses):
        return _below(at, name, files, seen)
    return None


def _below(
    at: Module, name: Module, files: dict[Module, _File], seen: frozenset[tuple[Module, Module]]
) -> Module | None:
    """The home of `name`, looked up in module `at`."""
    if not name or name[0] == "*":
        return at
    first, *rest = name
    own = files[at]
    if first == "super":
        return _below(at[:-1], tuple(rest), files, seen)
    if first in own.children:
        return _below((*at, first), tuple(rest), files, seen)
    for target, known in own.uses:
        if known == first and target != (first,):
            return _home(at, (*target, *rest), files, seen)
    if first in own.defined:
        return at
    for target, known in own.uses:
        if known == "*":
            opened = _home(at, target[:-1], files, seen)
            if opened is not None and opened != at and _offers(opened, first, files):
                return _below(opened, name, files, seen)
    return at


def _offers(module: Module, name: str, files: dict[Module, _File]) -> bool:
    own = files[module]
    return name in own.defined or name in own.children or any(known == name for _, known in own.uses)
