"""Functions of the user's own that parameters name, such as a rule of adaptive bit rate."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from streamgauge.scenario.flow import Flow
from streamgauge.scenario.values import Problem
from streamgauge.systems.parameter import function_of

__all__ = ["function_problems", "functions"]


def functions(flow: Flow) -> Iterator[tuple[str, str, str]]:
    """Parameter, file and name of each function that a flow's parameters name."""
    for key, value in flow.parameters.items() if flow.registered is not None else ():
        if (found := function_of(value)) is not None:
            yield (key, *found)


def function_problems(flows: dict[str, Flow]) -> Iterator[Problem]:
    """What is wrong with the functions that flows name, each at its key. Nothing of theirs is run."""
    for name, whole in flows.items():
        for where, flow in (((), whole), (("sim",), whole.in_mode("sim"))):
            if where and whole.sim is None:
                continue
            for key, file, function in functions(flow):
                if (why := _wrong(Path(file), function)) is not None:
                    yield Problem(("flows", name, *where, "parameters", key), *why)


def _wrong(file: Path, function: str) -> tuple[str, str] | None:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        return f"{file}: {error.strerror}", "paths are relative to the scenario's file"
    except (SyntaxError, ValueError) as error:
        return f"{file} is no Python: {error}", "mend it"
    kinds = (ast.FunctionDef, ast.ClassDef)
    named = [node.name for node in tree.body if isinstance(node, kinds)]
    if function in named:
        return None
    return f"{file} has no function '{function}' at its top", f"it has {', '.join(named) or 'none'}"
