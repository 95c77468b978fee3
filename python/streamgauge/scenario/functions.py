"""Programs of the user's own that a flow names: a rule of adaptive bit rate, a congestion control."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from streamgauge.input_files import UnfitInputError, read_bytes
from streamgauge.scenario.flow import Flow
from streamgauge.scenario.values import PATHS, Problem
from streamgauge.systems.parameter import function_of
from streamgauge.systems.tcp import bpf_object

_HEAD_BYTES = 20
_LARGEST_PROGRAM_BYTES = 4_000_000
_EM_BPF = 247
"""The machine of a BPF object in its ELF header (linux/elf-em.h)."""

__all__ = ["function_problems", "functions", "top_names"]


def functions(flow: Flow) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Key, file and name of each function that a flow names."""
    for key, value in flow.parameters.items() if flow.registered is not None else ():
        if (found := function_of(value)) is not None:
            yield (("parameters", key), *found)
    if (found := function_of(flow.congestion_control)) is not None:
        yield (("congestion_control",), *found)


def function_problems(flows: dict[str, Flow]) -> Iterator[Problem]:
    """Yields the faults of the functions that flows name, each at its key. Runs none of them."""
    for name, whole in flows.items():
        for where, flow in (((), whole), (("sim",), whole.in_mode("sim"))):
            if where and whole.sim is None:
                continue
            for key, file, function in functions(flow):
                if (why := _wrong(Path(file), function)) is not None:
                    yield Problem(("flows", name, *where, *key), *why)
        for where, flow in (((), whole), (("emu",), whole.in_mode("emu"))):
            if where and whole.emu is None:
                continue
            named = bpf_object(flow.congestion_control)
            if named is not None and (why := _no_object(Path(named))) is not None:
                yield Problem(("flows", name, *where, "congestion_control"), *why)


def _no_object(file: Path) -> tuple[str, str] | None:
    """Returns why a file cannot be a BPF object, and the remedy; whether its program is sound the kernel
    decides."""
    try:
        if not file.is_file():
            return f"{file}: not a file", "build it with `clang -O2 -g -target bpf -c FILE.c`"
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError as error:
        return f"{file}: {error.strerror}", PATHS
    machine = int.from_bytes(head[18:20], "big" if head[5:6] == b"\x02" else "little")
    if not head.startswith(b"\x7fELF") or machine != _EM_BPF:
        return f"{file} is no BPF object", "build it with `clang -O2 -g -target bpf -c FILE.c`"
    return None


def top_names(file: Path, kinds: tuple[type[ast.FunctionDef | ast.ClassDef], ...]) -> list[str]:
    """Returns the names of the functions or classes at the top of a file of Python, which is not run.

    Raises UnfitInputError for a path that is no file, OSError, and ValueError for a text that is no Python.
    """
    try:
        tree = ast.parse(read_bytes(file, _LARGEST_PROGRAM_BYTES), str(file))
    except SyntaxError as error:
        raise ValueError(str(error)) from None
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply") from None
    return [node.name for node in tree.body if isinstance(node, kinds)]


def _wrong(file: Path, function: str) -> tuple[str, str] | None:
    try:
        named = top_names(file, (ast.FunctionDef, ast.ClassDef))
    except UnfitInputError as error:
        return f"{file} {error}", "name a file of Python"
    except OSError as error:
        return f"{file}: {error.strerror}", PATHS
    except ValueError as error:
        return f"{file} is no Python: {error}", "mend it"
    if function in named:
        return None
    return f"{file} has no function '{function}' at its top", f"it has {', '.join(named) or 'none'}"
