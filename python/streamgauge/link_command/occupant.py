"""Users of a link other than a command of the caller's: the parts of a gateway."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from streamgauge.link_command.running import Ended
from streamgauge.link_command.testbed import Far, Testbed

__all__ = ["Occupant"]


class Occupant(Protocol):
    """Sends its traffic through a link for as long as `use` lasts."""

    @property
    def far(self) -> Far:
        """Returns the kind of link that it needs."""
        ...

    @property
    def network(self) -> int | None:
        """Returns a descriptor of the network namespace that has both ends of a segment; None is the
        caller's."""
        ...

    def use(
        self, testbed: Testbed, stack: ExitStack, watch: Callable[[], None], remark: Callable[[str], None]
    ) -> Ended:
        """Uses the started link until it is to end; `watch` raises if the link has died.

        `stack` undoes the changes after the link's end.
        """
        ...
