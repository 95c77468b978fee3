"""Doubts about input, as lines on stderr."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from streamgauge.errors import DoubtWarning

__all__ = ["doubts_remarked"]


@contextmanager
def doubts_remarked() -> Iterator[None]:
    """Prints each `DoubtWarning` as a line, once; other warnings stay as they are."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            from streamgauge.cli.output import remark

            if issubclass(category, DoubtWarning):
                return remark(f"warning: {' '.join(str(message).split())}")
            return usual(message, category, *where, **more)

        warnings.showwarning = show
        warnings.simplefilter("default", DoubtWarning)
        yield
