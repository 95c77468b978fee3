"""Controls that can be evaluated: by name, or a class in a file."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.evaluate.trials import flow_of
from streamgauge.input_files import UnfitInputError
from streamgauge.scenario.flow import Flow
from streamgauge.scenario.functions import function_problems, top_names
from streamgauge.scenario.values import nearest
from streamgauge.systems.parameter import function_of
from streamgauge.systems.registry import Mode
from streamgauge.systems.tcp import SIM_CONGESTION_CONTROLS, kernel_congestion_controls

__all__ = ["known_controls", "resolved"]


def known_controls(mode: Mode) -> Sequence[str]:
    """Returns those with a name: of sim's TCP, or of this machine's kernel as it lists them now."""
    if mode == "emu":
        return kernel_congestion_controls()
    return [name for name in SIM_CONGESTION_CONTROLS if name != "fixed"]


def resolved(text: str, mode: Mode) -> str:
    """Returns the control's name in a scenario; a file's path is made absolute.

    Raises:
        ScenarioError: if there is no such control or class.
        CannotRunError: if this machine's kernel lacks it.
    """
    if text.endswith(".py") or function_of(text) is not None:
        if mode == "emu":
            raise ScenarioError(f"{text}: emu runs the kernel's controls alone", hint="leave --mode out")
        return _of_file(text)
    known = known_controls(mode)
    if text in known:
        return text
    close = nearest(text, known)
    hint = f"did you mean '{close}'?" if close else "or name a class, FILE.py:NAME"
    if mode == "emu":
        raise CannotRunError(f"this kernel has no congestion control '{text}'; it lists {', '.join(known)}.")
    raise ScenarioError(f"there is no congestion control '{text}'; sim has {', '.join(known)}", hint=hint)


def _of_file(text: str) -> str:
    file, _, name = text.partition(".py")
    path = Path(f"{file}.py").absolute()
    name = name.removeprefix(":") or _only_class(path, text)
    control = f"{path}:{name}"
    flow = Flow.model_validate(flow_of("long", role="subject", congestion_control=control))
    for problem in function_problems({"mine": flow}):
        raise ScenarioError(problem.why, hint=problem.hint)
    return control


def _only_class(path: Path, text: str) -> str:
    """Returns the file's one class; its name need not be given then."""
    try:
        names = top_names(path, (ast.ClassDef,))
    except UnfitInputError as error:
        raise ScenarioError(f"{text} {error}", hint="name a file of Python") from None
    except OSError as error:
        raise ScenarioError(f"{text}: {error.strerror}", hint="give a file that is there") from None
    except ValueError as error:
        raise ScenarioError(f"{text} is no Python: {error}", hint="mend it") from None
    if len(names) != 1:
        raise ScenarioError(
            f"{text} has {len(names) or 'no'} classes at its top", hint=f"name one, such as {text}:NAME"
        )
    return names[0]
