"""Messages between the two sides of a flow before time runs: the agreement of the ends of a call.

They cross neither the path nor any network: the trial reads them from one side's folder, and writes them to
the ``control`` of the other side's process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.process import Running
from streamgauge.systems.adapter import SIGNALS
from streamgauge.systems.player_files import FileRefusedError, read_in

__all__ = ["Signals"]

LARGEST_BYTES = 1 << 20
"""The messages of a process, all together."""


class Signals:
    """The messages of a trial that have been carried so far."""

    def __init__(self) -> None:
        #: Bytes that were carried, by the label of their writer.
        self._carried: Counter[str] = Counter()

    def carry(self, running: Sequence[Running]) -> None:
        """Carries the whole lines that are new to each process of the other side that takes them.

        Raises TrialBrokenError for a line that is no JSON, and for too many of them.
        """
        for one in running:
            others = [
                other
                for other in running
                if other.flow is one.flow and other.spec.side != one.spec.side and other.spec.signals
            ]
            if one.spec.signals and others:
                for message in self._new(one):
                    for other in others:
                        other.command({"cmd": "signal", "signal": message})

    def _new(self, one: Running) -> list[object]:
        try:
            found = read_in(one.out, SIGNALS, LARGEST_BYTES)
        except FileRefusedError as error:
            raise TrialBrokenError(f"the {one.label}: {SIGNALS} {error}.") from None
        if found is None:
            return []
        if found.is_cut:
            raise TrialBrokenError(f"the {one.label} wrote more than {LARGEST_BYTES} B to {SIGNALS}.")
        whole, newline, _ = found.data.rpartition(b"\n")
        new = (whole + newline)[self._carried[one.label] :]
        self._carried[one.label] += len(new)
        try:
            return [json.loads(line) for line in new.splitlines()]
        except ValueError:
            raise TrialBrokenError(f"the {one.label} wrote a line to {SIGNALS} that is no JSON.") from None
