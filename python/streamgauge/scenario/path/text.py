"""One direction of a path in one line, ``rate 1 Mbit/s, queue 10 kB, delay 20 ms, jitter 5 ms``, and back."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from streamgauge.errors import ScenarioError
from streamgauge.scenario.path.commas import KEYS, queue_in_full, split_pairs, split_values
from streamgauge.scenario.path.common import Settings
from streamgauge.scenario.path.delay import DelaySettings
from streamgauge.scenario.path.direction import Direction
from streamgauge.scenario.path.elements import Blocking, Corruption, Duplication, MtuLimit, Reordering
from streamgauge.scenario.path.loss import LOSSES, loss_words
from streamgauge.scenario.path.queue import QUEUES, queue_words
from streamgauge.scenario.path.rate import RateSteps, Square
from streamgauge.scenario.path.shaper import SHAPERS, shaper_words
from streamgauge.scenario.path.trace import Trace
from streamgauge.scenario.problems import problems_of
from streamgauge.scenario.values import nearest
from streamgauge.units import Quantity, Time

__all__ = ["KEYS", "direction_of_text", "spelt_out", "text_of_direction"]

EXAMPLE = "rate 1 Mbit/s, queue droptail 10 kB, delay 20 ms"


def direction_of_text(text: str, *, source: str = "", base: Direction | None = None) -> Direction:
    """Returns the direction that a line describes.

    ``text`` is ``KEY VALUE`` pairs in any order, joined by commas, with the values of the shorthand:
    ``rate 1 Mbit/s``, ``trace NAME`` or ``trace FILE``, ``csv FILE``, ``queue codel 100 packets``,
    ``queue 10 kB`` (drop-tail), ``shaper token_bucket 1600 B``, ``loss 1 %``, ``delay 20 ms``,
    ``jitter 5 ms`` (or ``jitter normal 5 ms``), ``mtu 1400 B``, ``reorder 1 % 5 ms``, ``duplicate 0.1 %``,
    ``corrupt 0.01 %``, ``block udp``, ``layer ip``. An empty text is a plain wire. Settings follow the value:
    ``queue codel 100 packets target 10 ms ecn on``. A rate without a queue gets drop-tail of 100 packets, as
    deep as a Linux interface's queue was for decades.

    ``source`` is the origin of the text, such as ``--down``; errors begin with it. ``base``, a direction
    without stages, supplies the keys that the text lacks; ``jitter`` without ``delay`` varies the delay
    there.

    Raises ScenarioError with the key, the expected value and the nearest spelling, as for a scenario file.
    """
    try:
        return _read(text, source, base)
    except ScenarioError as error:
        meant = _with_commas(text)
        try:
            _read(meant, source, base)
        except ScenarioError:
            raise error from None
        for part in split_pairs(text):
            pairs = split_values(*part.strip().partition(" ")[::2])
            if len(pairs) > 1:
                raise ScenarioError(
                    f"a comma is missing before '{' '.join(pairs[1])}'",
                    file=source or None,
                    key=pairs[0][0],
                    hint=f"write '{meant}'",
                ) from None
        raise


def _with_commas(text: str) -> str:
    pairs = [split_values(*part.strip().partition(" ")[::2]) for part in split_pairs(text)]
    return ", ".join(" ".join(pair) for several in pairs for pair in several)


def _read(text: str, source: str, base: Direction | None) -> Direction:
    def refuse(why: str, key: str | None = None, hint: str | None = None) -> ScenarioError:
        return ScenarioError(why, file=source or None, key=key, hint=hint)

    said: dict[str, Any] = {}
    for part in split_pairs(text):
        key, _, value = part.strip().partition(" ")
        value = value.strip()
        if not key:
            if text.strip():
                raise refuse("a comma with nothing before or behind it", hint=f"expected such as '{EXAMPLE}'")
            continue
        if key not in KEYS:
            close = nearest(key, KEYS)
            hint = f"did you mean '{close} {value}'?" if close else f"expected such as '{EXAMPLE}'"
            raise refuse(f"unknown key '{key}'; expected one of {', '.join(KEYS)}", key, hint)
        if not value:
            raise refuse(f"'{key}' has no value", key, f"expected such as '{EXAMPLE}'")
        if key in said:
            raise refuse(f"'{key}' is said twice", key)
        said[key] = value
    rates = [key for key in ("rate", "trace", "csv") if key in said]
    if len(rates) > 1:
        raise refuse(f"'{rates[0]}' and '{rates[1]}' exclude each other", rates[1])
    for key in ("trace", "csv"):
        if key in said:
            said["rate"] = {key: said.pop(key)}
    if "jitter" in said:
        below = base.delay if base is not None else None
        if "delay" in said:
            said["delay"] = {"constant": said["delay"]}
        elif below is None:
            raise refuse("jitter varies a delay, and none is said", "jitter", "add such as 'delay 20 ms'")
        elif isinstance(below, DelaySettings):
            said["delay"] = {name: getattr(below, name) for name in DelaySettings.model_fields}
        else:
            said["delay"] = {"constant": below}
        said["delay"]["jitter"] = said.pop("jitter")
    if "queue" in said:
        said["queue"] = queue_in_full(said["queue"])
    if base is not None:
        said = {name: getattr(base, name) for name in Direction.model_fields} | said
    if said.get("rate") is not None and said.get("queue") is None:
        said["queue"] = "droptail 100 packets"
    try:
        return Direction.model_validate(said)
    except ValidationError as error:
        problem = problems_of(error)[0]
        names = {"constant": "delay"}
        path = [str(part) for part in problem.path] or ["path"]
        if path[:2] == ["rate", "trace"]:
            path = path[1:2]
        if path[0] == "delay" and len(path) > 1:
            path = path[1:]
        key = ".".join(names.get(part, part) for part in path)
        raise refuse(problem.why, key, problem.hint) from None


def text_of_direction(direction: Direction) -> str:
    """Returns the line that `direction_of_text` reads back to an equal direction.

    Raises ValueError for keys that no line can express: stages, rates and delays in steps, switches, lists of
    losses, delays of single flows.
    """
    parts: list[str] = []
    if direction.stages is not None:
        raise ValueError("stages have no one-line form")
    for key in ("block", "loss", "corrupt", "duplicate", "mtu", "rate", "queue", "shaper"):
        value = getattr(direction, key)
        if value is not None:
            parts += _said(key, value)
    if direction.layer != "ethernet":
        parts.append(f"layer {direction.layer}")
    if direction.delay is not None:
        parts += _delay(direction.delay)
    if direction.reorder is not None:
        parts += _said("reorder", direction.reorder)
    return ", ".join(parts)


def _said(key: str, value: Any) -> list[str]:
    if isinstance(value, Quantity):
        return [f"{key} {value}"]
    if isinstance(value, Trace):
        written = f" format {value.trace.format}" if value.trace.format is not None else ""
        return [f"trace {value.trace.file}{written}"]
    if isinstance(value, RateSteps | Square):
        raise ValueError("a rate that changes has no one-line form, unless it is a trace")
    return [f"{key} {_settings(value)}".rstrip()]


def _settings(model: BaseModel) -> str:
    """Returns ``codel 100 packets target 7 ms``: values other than the defaults, the first without its
    key."""
    first = getattr(type(model), "first", None)
    fields = type(model).model_fields
    words: list[str] = []
    # Switches of an element and the order of a jitter are fields of a base: the fields that they qualify
    # precede them.
    names = sorted(fields, key=lambda name: (name != first, name in ("switch", "keep_order")))
    for name in names:
        value = getattr(model, name)
        if value == fields[name].default:
            continue
        if isinstance(value, tuple) and name != "ports":
            raise ValueError(f"{name} has no one-line form")
        if isinstance(value, tuple):
            said = " ".join(map(str, value))
        elif isinstance(value, bool):
            said = "on" if value else "off"
        else:
            said = _settings(value) if isinstance(value, BaseModel) else str(value)
        words.append(said if name == first else f"{name} {said}".rstrip())
    return " ".join(words)


def _delay(delay: Time | DelaySettings) -> list[str]:
    if isinstance(delay, Time):
        return [f"delay {delay}"]
    if delay.constant is None or delay.flows:
        raise ValueError("a delay in steps or for single flows has no one-line form")
    parts = [f"delay {delay.constant}"]
    if delay.jitter is not None:
        parts.append(f"jitter {_settings(delay.jitter)}")
    return parts


def spelt_out(key: str, text: str, parts: list[str]) -> Any:
    """Returns the long form of ``text`` under ``key`` of a direction, a mapping in which ``parts`` can be
    set; ``text`` itself if there is none.

    Under ``queue``, ``codel 10 kB`` becomes ``{codel: {limit: 10 kB}}``.
    """
    tables: dict[str, dict[str, Any]] = {"queue": QUEUES, "shaper": SHAPERS, "loss": LOSSES}
    elements: dict[str, type[Settings]] = {
        "block": Blocking,
        "corrupt": Corruption,
        "duplicate": Duplication,
        "reorder": Reordering,
        "mtu": MtuLimit,
    }
    try:
        if key in tables:
            words = {"queue": queue_words, "shaper": shaper_words, "loss": loss_words}[key]
            made = words(text)
            if made is None:
                return {}
            name = next(iter(made))
            settings = tables[key][name].model_fields[name].annotation
            if len(parts) > 1 and isinstance(settings, type) and issubclass(settings, Settings):
                made[name] = settings.from_words(made[name])
            return made
        if key in elements:
            return elements[key].from_words(text)
        if key == "delay":
            return {"constant": text}
    except PydanticCustomError:
        pass  # validation of the scenario rejects invalid values
    return text
