"""Commands and their help, as the program has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import typer

__all__ = ["HelpPanel", "reflowed", "register"]

HelpPanel = Literal["Run experiments", "Compare and report", "Look up", "Stream", "Instrument"]
"""Purposes of commands: the parts of the program's help, in its order."""


def register(
    app: typer.Typer,
    panel: HelpPanel,
    name: str,
    command: Callable[..., Any],
    **more: Any,
) -> None:
    """Adds a command to `app`; its docstring is its help."""
    app.command(name, help=reflowed(command.__doc__ or ""), rich_help_panel=panel, **more)(command)


def reflowed(text: str) -> str:
    """Help with each paragraph on one line, which the terminal's width then breaks. Indented lines stay."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else " ".join(part.splitlines()) for part in paragraphs)
