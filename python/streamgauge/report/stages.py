"""The stages of a path in words, from the plan of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.claims.dimension import DATA, PERCENT, RATE, TIME, plain, say, say_exactly
from streamgauge.metrics.queueing import limit_of_queue
from streamgauge.scenario.path.capacity import mean_bps
from streamgauge.scenario.path.words import DISCIPLINES, ports_in_words

__all__ = ["queue_words", "rate_words", "stage_words"]

NS = 1e9


def _time(ns: float) -> str:
    return say_exactly(float(ns) / NS, TIME)


def _share(probability: float) -> str:
    return say_exactly(float(probability), PERCENT)


def rate_words(setting: Mapping[str, Any]) -> str:
    """Returns a bottleneck's rate over time, and the shaper that keeps to it."""
    return _rate(setting["rate"]) + _shaper(setting.get("shaper") or "serial")


def _rate(rate: Mapping[str, Any]) -> str:
    if "constant" in rate:
        return say_exactly(float(rate["constant"]), RATE)
    if "square" in rate:
        square = rate["square"]
        first, second = say_exactly(float(square["first"]), RATE), say_exactly(float(square["second"]), RATE)
        return f"{first} and {second} in turn, every {_time(square['period'] / 2)}"
    if "opportunities" in rate:
        trace = rate["opportunities"]
        mean = mean_bps(rate, trace["period"])
        of = "" if mean is None else f" of {say(mean, RATE)} on the mean"
        return f"a trace{of}, repeated every {_time(trace['period'])}"
    steps = rate.get("steps") or []
    if not steps:
        return "a rate that is not known"
    shown = [f"{say_exactly(float(bps), RATE)} from {_time(at)}" for at, bps in steps[:6]]
    more = f" and {len(steps) - 6} more steps" if len(steps) > 6 else ""
    return ", ".join(shown) + more


def _shaper(shaper: str | Mapping[str, Any]) -> str:
    if isinstance(shaper, str):
        return ""
    if "token_bucket" in shaper:
        return f" by a token bucket of {shaper['token_bucket']['burst']} B"
    if "cbq" in shaper:
        device = shaper["cbq"].get("device_rate", 100_000_000)
        return f" by CBQ on a device of {say_exactly(float(device), RATE)}"
    if "sleeping" in shaper:
        return f" by a program whose sleeps end each {_time(shaper['sleeping']['tick'])}"
    return " by " + ", ".join(shaper)


def queue_words(queue: Mapping[str, Any]) -> str:
    """Returns a queue's discipline, limit and target."""
    ((name, settings),) = queue.items()
    said = [DISCIPLINES.get(name, name)]
    limit = limit_of_queue(queue)
    if "bytes" in limit:
        said.append(say_exactly(8.0 * limit["bytes"], DATA))
    elif "packets" in limit:
        said.append(f"{limit['packets']} packets")
    elif "time" in limit:
        said.append(_time(limit["time"]))
    if name == "red":
        low, high = (next(iter(settings[key].values())) for key in ("min", "max"))
        said.append(f"thresholds {low} and {high} {next(iter(settings['min']))}")
    if name == "drd":
        said.append(f"drops from {settings['min_packets']} to {settings['max_packets']} packets")
    if name in ("codel", "fq_codel", "pie", "dualpi2"):
        said.append(f"target {_time(settings['target'])}")
    if name in ("codel", "fq_codel"):
        said.append(f"interval {_time(settings['interval'])}")
    if settings.get("ecn"):
        said.append("ECN")
    return ", ".join(said)


def stage_words(stage: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns a stage as (kind, settings); None for a plain wire."""
    kind = stage.get("kind") or {}
    if not kind:
        return None
    ((what, setting),) = kind.items()
    if what == "bottleneck":
        return what, f"{rate_words(setting)}; {queue_words(setting['queue'])}"
    if what == "delay":
        said = _delay(setting)
        return (what, said) if said else None
    switches = "".join(
        f", {'on' if on else 'off'} at {_time(at)}" for at, on in setting.get("switches") or ()
    )
    return what, _element(what, setting) + switches


def _element(what: str, setting: Mapping[str, Any]) -> str:
    if what == "loss":
        return _loss(setting.get("model") or {})
    if what == "block":
        ports = f" of {ports_in_words(setting['ports'])}" if setting.get("ports") else ""
        return f"no {str(setting['protocol']).upper()}{ports}"
    if what == "mtu":
        return f"{setting['bytes']} B"
    if what == "reorder":
        every = setting.get("every")
        which = f"every {every}th packet" if every else _share(setting["probability"])
        return f"{which} by {_time(setting['extra'])}"
    return _share(setting.get("probability", 0))


def _loss(model: Mapping[str, Any]) -> str:
    if "gilbert" in model:
        runs = model["gilbert"]
        good, bad = runs["good_packets"], runs["bad_packets"]
        share = say(bad / (good + bad), PERCENT)
        return f"Gilbert, runs of {plain(good)} and {plain(bad)} packets ({share})"
    if "gilbert_elliott" in model:
        stays = model["gilbert_elliott"]
        good, bad = stays["good_packets"], stays["bad_packets"]
        return (
            f"Gilbert-Elliott, {_share(stays['loss_good'])} for {plain(good)} packets and "
            f"{_share(stays['loss_bad'])} for {plain(bad)} packets"
        )
    if "list" in model:
        return f"{len(model['list']['packets'])} packets by number"
    return _share(model.get("bernoulli", {}).get("probability", 0))


def _delay(setting: Mapping[str, Any]) -> str | None:
    delay, steps = setting.get("delay", 0), setting.get("steps") or []
    jitter, flows = setting.get("jitter"), setting.get("flows") or []
    if not delay and not steps and not jitter and not flows:
        return None
    said = _time(delay) + "".join(f", {_time(value)} from {_time(at)}" for at, value in steps)
    if jitter:
        ((name, values),) = jitter["distribution"].items()
        size = values.get("spread", values.get("deviation", values.get("scale")))
        kept = "" if jitter.get("keep_order", True) else ", may reorder"
        said += f", {name} jitter" + (f" of {_time(size)}" if size is not None else "") + kept
    return said + (f", longer for {len(flows)} flows" if flows else "")
