"""The other end of a trial's socket: the samples so far, and requests to it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from streamgauge.errors import StreamGaugeError
from streamgauge.live.controls import Control, controls_of, read_change
from streamgauge.live.verdict import Verdict
from streamgauge.scenario.path import preset, preset_names
from streamgauge.scenario.path.changes import make_steerable
from streamgauge.scenario.path.plan import path_plan

__all__ = ["MOST_SAMPLES", "LiveSession", "Refused"]

MOST_SAMPLES = 6000
"""Ten minutes: so far a page scrolls back."""
MOST_A_SECOND = 100
"""Changes that a session passes on in a second."""
ANSWER_S = 5.0
_COUNTS = ("offered_packets", "offered_bytes", "delivered_packets", "delivered_bytes", "lost", "lost_bytes")
_SHOWN = {"buffer": "buffer_s", "level_changed": "level", "estimate": "estimate_bps"}
"""Events of players with a last value in each sample, and its name there."""


class Refused(StreamGaugeError):
    """A change that was not made."""

    status = 400


class TooMany(Refused):
    """More changes than are taken."""

    status = 429


class LiveSession:
    """One trial. `listen` and `change` may be called from any thread."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        verdict: Verdict,
        *,
        title: str,
        mode: str,
        scenario: Callable[[list[dict[str, Any]], int], str],
        say: Callable[[str], None],
    ) -> None:
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.plan, self.title, self.mode = plan, title, mode
        self.controls: dict[str, Control] = {one.name: one for one in controls_of(plan["path"])}
        self.settings = {name: one.value for name, one in self.controls.items()}
        self.samples: deque[dict[str, Any]] = deque(maxlen=MOST_SAMPLES)
        self.steered: list[dict[str, Any]] = []
        self.ended = threading.Event()
        self.pages = 0
        self._scenario, self._verdict, self._say = scenario, verdict, say
        self._ours = ours
        self._lock = threading.Lock()
        self._asked: dict[int, tuple[Future[float], list[dict[str, Any]], str | None, dict[str, str]]] = {}
        self._number = 0
        self._recent: deque[float] = deque()
        self._told_too_many = False
        self._listeners: list[Callable[[dict[str, Any]], None]] = []
        self._totals: dict[str, dict[str, int]] = {way: dict.fromkeys(_COUNTS, 0) for way in ("down", "up")}
        self._players: dict[str, dict[str, Any]] = {}
        self._thread = threading.Thread(target=self._read, name="live", daemon=True)

    def start(self) -> None:
        """Listens, once the trial's side has been handed over."""
        self._thread.start()

    def close(self) -> None:
        """Ends the reading."""
        for one in (self.theirs, self._ours):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if self._thread.is_alive():
            self._thread.join(timeout=2)
        for one in (self.theirs, self._ours):
            one.close()

    def listen(self, take: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
        """Calls `take` with each sample from now on; returns those before."""
        with self._lock:
            self._listeners.append(take)
            return list(self.samples)

    def forget(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Calls it no more."""
        with self._lock, suppress(ValueError):
            self._listeners.remove(take)

    def yaml(self) -> str:
        """Returns the trial so far as a scenario that runs, with the changes."""
        with self._lock:
            until_ns = round(1e9 * self.samples[-1]["t_s"]) if self.samples else 0
            steered = list(self.steered)
        return self._scenario(steered, until_ns)

    def change(self, asked: Any) -> float:
        """Asks for changes; returns when they take effect, s of the trial. Raises StreamGaugeError."""
        if self.ended.is_set():
            raise Refused("the trial is over; start another")
        self._bound()
        changes, mark, words = read_change(asked, self.controls, self.plan["path"])
        answer: Future[float] = Future()
        with self._lock:
            self._number += 1
            number = self._number
            self._asked[number] = (answer, changes, mark, words)
        line: dict[str, Any] = {"id": number, "changes": changes}
        if mark is not None:
            line["mark"] = mark
        try:
            self._ours.sendall(json.dumps(line).encode() + b"\n")
            return answer.result(timeout=ANSWER_S)
        except (OSError, TimeoutError):
            raise Refused("the trial does not answer; it may be over") from None

    def presets(self) -> dict[str, dict[str, str]]:
        """Returns shipped paths, as settings of this one: those of one rate, without the keys that this path
        lacks."""
        found = {}
        for name in preset_names():
            planned = path_plan(preset(name))
            links = [s["kind"]["bottleneck"] for s in planned["down"] if "bottleneck" in s["kind"]]
            if len(links) != 1 or "constant" not in links[0]["rate"]:
                continue
            make_steerable(planned)
            settings = {one.name: one.value for one in controls_of(planned) if one.name in self.controls}
            found[name] = {key: value for key, value in settings.items() if not key.endswith(".ecn")}
        return found

    def stop(self) -> None:
        """Asks the trial to end now."""
        with suppress(OSError):
            self._ours.sendall(json.dumps({"id": 0, "stop": True}).encode() + b"\n")

    def _bound(self) -> None:
        now = time.monotonic()
        with self._lock:
            while self._recent and now - self._recent[0] >= 1:
                self._recent.popleft()
            full = len(self._recent) >= MOST_A_SECOND
            first, self._told_too_many = full and not self._told_too_many, self._told_too_many or full
            if not full:
                self._recent.append(now)
        if first:
            self._say(
                f"live: more than {MOST_A_SECOND} changes in a second were asked for; the rest is refused"
            )
        if full:
            raise TooMany(f"more than {MOST_A_SECOND} changes in a second; send fewer")

    def _read(self) -> None:
        rest = b""
        while True:
            try:
                more = self._ours.recv(1 << 16)
            except OSError:
                more = b""
            if not more:
                break
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        self._over()

    def _over(self) -> None:
        self.ended.set()
        with self._lock:
            waiting, self._asked = self._asked, {}
        for answer, *_ in waiting.values():
            if not answer.done():
                answer.set_exception(Refused("the trial is over; start another"))

    def _take(self, words: dict[str, Any]) -> None:
        if "sample" in words:
            self._sample(words["sample"])
            return
        (said,) = words.values()
        with self._lock:
            found = self._asked.pop(said["id"], None)
            if found is None:
                return
            answer, changes, mark, told = found
            if "done" in words:
                self.settings |= told
                self.steered += [{"t_ns": said["t_ns"], **one} for one in changes]
                if mark is not None:
                    self.steered.append({"t_ns": said["t_ns"], "mark": mark})
        if "done" in words:
            answer.set_result(said["t_s"])
        else:
            answer.set_exception(Refused(said["why"]))

    def player_event(self, flow: str, name: str, value: float | None) -> None:
        """Handles a player's event that does not arrive by the socket."""
        with self._lock:
            self._player(flow, name, value)

    def _player(self, flow: str, name: str, value: float | None) -> None:
        seen = self._players.setdefault(flow, {"stalls": 0, "stalled_s": 0.0})
        if name in _SHOWN:
            seen[_SHOWN[name]] = value
        elif name == "stall":
            seen["stalls"] += 1
            seen["stalled_s"] += value or 0.0

    def _sample(self, sample: dict[str, Any]) -> None:
        with self._lock:
            for event in sample["events"]:
                if event["flow"] is not None:
                    self._player(event["flow"], event["name"], event["value"])
                elif event["name"] == "rate":
                    self._rate_in_force(event)
            for way, totals in self._totals.items():
                for key in _COUNTS:
                    totals[key] += sample[way][key]
            # The path's own events are passed on; players' events are in `players`.
            sample["events"] = [event for event in sample["events"] if event["flow"] is None]
            sample["verdict"] = self._verdict.of(sample)
            sample["total"] = {way: dict(totals) for way, totals in self._totals.items()}
            sample["players"] = {name: dict(seen) for name, seen in self._players.items() if len(seen) > 2}
            sample["settings"] = dict(self.settings)
            sample["changes"] = len(self.steered)
            sample["pages"] = self.pages
            self.samples.append(sample)
            listeners = list(self._listeners)
        for take in listeners:
            take(sample)
        if sample["ended"]:
            self.ended.set()

    def _rate_in_force(self, event: Mapping[str, Any]) -> None:
        from streamgauge.units import Rate

        direction = event["reason"].split(".")[1] if event["reason"].count(".") == 2 else ""
        control = self.controls.get(f"{direction}.rate")
        if control is not None and event["reason"].endswith(f".{control.stage}"):
            self.settings[control.name] = str(Rate.of(round(event["value"])))
