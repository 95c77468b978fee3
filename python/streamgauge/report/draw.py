"""Draws figures: Vega-Lite descriptions as SVG, PNG and PDF.

Also a program of its own, which draws beside others on further cores, as drawing holds Python's lock: a line
of JSON asks for a figure, a line answers (see `streamgauge.report.drawers`). It is run by its path and
imports nothing of ours, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

FORMATS = (".svg", ".png", ".pdf")


def draw(description: str, files: Mapping[str, Path], *, scale: float) -> str:
    """Writes one figure, by suffix; each file appears whole or not at all. `scale` is for PNG.

    Returns:
        The figure as SVG.
    """
    import vl_convert

    svg = _numbered(vl_convert.vegalite_to_svg(description))
    if ".svg" in files:
        _write(files[".svg"], svg.encode())
    if ".png" in files:
        _write(files[".png"], vl_convert.svg_to_png(_grounded(svg), scale=scale))
    if ".pdf" in files:
        _write(files[".pdf"], vl_convert.svg_to_pdf(svg))
    return svg


def _numbered(svg: str) -> str:
    """Returns the figure with its clip paths counted from 0, where Vega continues from the last figure of
    this process."""
    numbers: dict[str, int] = {}
    return re.sub(r"\bclip\d+\b", lambda found: f"clip{numbers.setdefault(found[0], len(numbers))}", svg)


def _grounded(svg: str) -> str:
    """On a ground of its own: thin lines would blend with whatever shows through."""
    head, _, rest = svg.partition(">")
    return f'{head}><rect width="100%" height="100%" fill="white"/>{rest}'


def _write(file: Path, data: bytes) -> None:
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _serve() -> None:
    # Ctrl-C is handled by the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, object] = {}
        try:
            files = {suffix: Path(file) for suffix, file in asked["files"].items()}
            answer["svg"] = draw(asked["description"], files, scale=asked["scale"])
        except OSError as error:
            answer = {"errno": error.errno, "strerror": error.strerror, "file": error.filename}
        except ValueError as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
