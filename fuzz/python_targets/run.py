"""Fuzzes one Python target: run.py TARGET [LIBFUZZER-OPTION | CORPUS]...

A target is a file beside this one with ``target(data: bytes)``. An error of ours (`StreamGaugeError`) is an
answer; any other exception breaks the target.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))

name = sys.argv[1]
with atheris.instrument_imports(include=["streamgauge"]):
    target = import_module(name).target

from streamgauge.errors import StreamGaugeError  # noqa: E402


def answered(data: bytes) -> None:
    try:
        target(data)
    except StreamGaugeError as error:
        assert str(error), "an error without a word"


atheris.Setup([sys.argv[0], *sys.argv[2:]], answered)
atheris.Fuzz()
