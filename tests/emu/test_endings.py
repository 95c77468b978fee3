"""Which processes that end before their trial harm it, each beside one that does not."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from streamgauge.emu.endings import deaths


def ended(
    side: str,
    status: int = 0,
    at_s: float = 5.0,
    *,
    may_end: bool | None = None,
    name: str = "",
    essential: bool = True,
    is_main: bool = True,
) -> dict[str, Any]:
    how = f"ended with status {status}" if status >= 0 else f"was killed by {signal.Signals(-status).name}"
    may = side == "player" if may_end is None else may_end
    row = {"flow": "web", "side": side, "at_s": at_s, "status": status, "how": how, "may_end": may}
    return row | {"name": name, "essential": essential, "is_main": is_main}


def trial(
    *endings: dict[str, Any], stop_s: float | None = None, first_s: float | None = 1.0
) -> dict[str, Any]:
    actions = [] if stop_s is None else [{"flow": "web", "action": "stop", "at_s": stop_s, "late_s": 0.0}]
    return {"endings": list(endings), "actions": actions, "first_packets_s": {"web": first_s}}


HARMLESS = {
    "nobody ended": trial(),
    "a player that is done": trial(ended("player")),
    "a server after its player": trial(ended("player", at_s=4.0), ended("server")),
    "a server that has sent all, before its player": trial(ended("server"), ended("player", at_s=6.0)),
    "a server whose player was stopped": trial(ended("server"), stop_s=4.0),
    "and that says so": trial(ended("server", 1), stop_s=4.0),
    "and that found out by a write": trial(ended("server", -signal.SIGPIPE), stop_s=4.0),
    "a packager that has packaged all": trial(ended("server", name="packager", may_end=True, is_main=False)),
    "one that is not needed": trial(ended("server", -11, name="logger", essential=False, is_main=False)),
    "a server that has sent all, beside a page that is not the player": trial(
        ended("server"), ended("player", name="page", is_main=False), ended("player", at_s=6.0)
    ),
    "a transfer of so many bytes": trial(ended("server", may_end=True), ended("player")),
}
HARMFUL = {
    "before any player came": (trial(ended("server", at_s=0.5), ended("player", at_s=2.0)), "had come"),
    "before any packet": (trial(ended("server"), first_s=None), "had come"),
    "while its player waits": (trial(ended("server")), "its player did not end with status 0"),
    "and its player fails": (
        trial(ended("server"), ended("player", 1, 6.0)),
        "its player did not end with status 0",
    ),
    "while its player waits for its stop": (trial(ended("server"), stop_s=6.0), "its player did not"),
    "with another status": (trial(ended("player", at_s=4.0), ended("server", 1)), "ended with status 1"),
    "by a signal": (trial(ended("player", at_s=4.0), ended("server", -signal.SIGSEGV)), "SIGSEGV"),
    "and only its player's page ends": (
        trial(ended("server"), ended("player", name="page", is_main=False)),
        "its player did not end with status 0",
    ),
    "a packager": (
        trial(ended("server", 1, name="packager", may_end=True, is_main=False)),
        "the server's packager of flow web ended with status 1",
    ),
    "by a signal after a stop": (trial(ended("server", -signal.SIGKILL), stop_s=4.0), "SIGKILL"),
}


@pytest.mark.parametrize("measured", HARMLESS.values(), ids=HARMLESS)
def test_harmless(measured: dict[str, Any]) -> None:
    assert deaths(measured) == []


@pytest.mark.parametrize(("measured", "word"), HARMFUL.values(), ids=HARMFUL)
def test_harmful(measured: dict[str, Any], word: str) -> None:
    assert any(word in why for why in deaths(measured)), deaths(measured)
    assert all("of flow web" in why and "s into the trial" in why for why in deaths(measured))
