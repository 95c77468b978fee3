"""Bounds the connections of the page's server. The others share its descriptors with the trial."""

from __future__ import annotations

from typing import Any

__all__ = ["MOST_CONNECTIONS", "bounded_protocol"]

MOST_CONNECTIONS = 64
"""Connections at once. The oldest without a request gives way to a newcomer."""


def bounded_protocol() -> type[Any]:
    """Returns the protocol of one server, a class for uvicorn."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    there: dict[Any, None] = {}

    class Bounded(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            there[self] = None
            if len(there) > MOST_CONNECTIONS:
                oldest = next((one for one in there if one.is_idle), self)
                there.pop(oldest, None)
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            there.pop(self, None)
            super().connection_lost(exc)

        @property
        def is_idle(self) -> bool:
            """Returns whether no request of it is being answered."""
            return self.cycle is None or bool(self.cycle.response_complete)

    return Bounded
