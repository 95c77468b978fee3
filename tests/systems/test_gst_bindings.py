"""Our programs on GStreamer run with its bindings of Debian 12 (1.22) and of Debian 13 (1.26)."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamgauge.systems

sys.path.insert(0, str(Path(streamgauge.systems.__file__).parent / "programs"))

from player_line import first_structure


class Given:
    """A structure as the older bindings give it."""

    def get_name(self) -> str:
        return "video/x-h264"


class Lent:
    """As the newer ones do: it can only be entered (gi/overrides/Gst.py, StructureWrapper)."""

    given_back = False

    def __enter__(self) -> Given:
        return Given()

    def __exit__(self, *_: object) -> None:
        self.given_back = True


@pytest.mark.parametrize("structure", [Given(), Lent()])
def test_a_structure_is_read_however_it_is_given(structure: Given | Lent) -> None:
    with first_structure(SimpleNamespace(get_structure=lambda index: [structure][index])) as read:
        assert read.get_name() == "video/x-h264"
    assert isinstance(structure, Given) or structure.given_back
