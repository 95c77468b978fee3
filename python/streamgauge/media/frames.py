"""Sizes of coded frames without coding anything: from shipped figures, scaled to the asked rate."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from streamgauge.errors import MediaError
from streamgauge.media.clip import BUILT_IN, Clip

SCHEMA = "streamgauge.clip/1"


def frame_sizes(clip: Clip) -> list[int]:
    """Bytes of each coded frame over one pass of the shipped sequence, in order, every one at least 1: 10 s
    at a constant rate, 20 s at a variable one.

    Scaled so that a pass has `clip.bit_rate_bps` on average, sound counted in; at a variable rate that is
    shipped they are those of the file that `prepare` makes. The same on every machine. A user's own file has
    no shipped figures: MediaError says so.
    """
    shipped = _shipped(clip)
    sizes: list[int] = shipped["frame_bytes"]
    if shipped["exact"]:
        return list(sizes)
    # Integers throughout, the remainder carried on: the mean is exact and no platform rounds apart.
    target = clip.bit_rate_bps * len(sizes) * frame_interval_ns(clip) // 8_000_000_000
    total, carried, scaled = sum(sizes), 0, []
    for size in sizes:
        carried += size * target
        scaled.append(max(1, carried // total))
        carried %= total
    return scaled


def key_frames(clip: Clip) -> list[int]:
    """Which frames of the pass of `frame_sizes` are key frames, counted from 0. Raises MediaError as that
    does."""
    keys: list[int] = _shipped(clip)["key_frames"]
    return list(keys)


def frame_interval_ns(clip: Clip) -> int:
    """Nanoseconds between frames of `frame_sizes`."""
    interval: int = _file(_built_in(clip))["frame_interval_ns"]
    return interval


def _built_in(clip: Clip) -> str:
    if not clip.is_built_in:
        raise MediaError(
            f"{clip.source}: sim knows the frame sizes of built-in content only ({', '.join(BUILT_IN)}); "
            "name one as the clip, or run in mode emu."
        )
    return clip.source


def _shipped(clip: Clip) -> dict[str, Any]:
    """The shipped pass whose rate is nearest to the asked one by ratio: the weight of key frames depends on
    it."""
    data = _file(_built_in(clip))
    passes = data["encodings"] if clip.rate_control == "constant" else data["variable"][clip.codec]
    rate = min(passes, key=lambda rate: max(int(rate), clip.bit_rate_bps) / min(int(rate), clip.bit_rate_bps))
    if clip.rate_control == "variable":
        return {**passes[rate], "exact": int(rate) == clip.bit_rate_bps}
    # Encoded with a key frame at the start of each group and nowhere else.
    sizes, group = passes[rate], max(1, round(clip.gop_s * 1e9 / data["frame_interval_ns"]))
    return {"frame_bytes": sizes, "key_frames": list(range(0, len(sizes), group)), "exact": False}


@cache
def _file(source: str) -> dict[str, Any]:
    file = resources.files("streamgauge.media") / "clips" / f"{source}.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if data["schema"] != SCHEMA:
        raise MediaError(f"{file}: schema is {data['schema']}, expected {SCHEMA}; reinstall the package.")
    return data
