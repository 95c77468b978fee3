"""Sizes of coded frames: for built-in content from shipped figures, scaled to the requested rate, without
coding anything; for a user's own file from the output of `prepare`."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib import resources
from math import ceil, gcd
from typing import Any

from streamgauge.errors import MediaError
from streamgauge.media.clip import ClipEncoding
from streamgauge.media.encode import Packet, packets, prepare, source_of

SCHEMA = "streamgauge.clip/1"


def frame_sizes(clip: ClipEncoding) -> list[int]:
    """Bytes of each coded frame over one pass of the shipped sequence, in order, every one at least 1: 10 s
    at a constant rate, 20 s at a variable one; as many passes as end together with a group of pictures, or
    as the clip lasts.

    Scaled so that a pass has `clip.bit_rate_bps` on average, sound counted in; at a variable rate that is
    shipped they are those of the file that `prepare` makes. The same on every machine.

    For a user's own file they are those of all that `prepare` encodes, which is done on first use, with the
    sound's bytes shared out; as there MediaError or CannotRunError.
    """
    if not clip.is_built_in:
        sizes = [frame.size for frame in _own(clip)]
        return _scaled(sizes, clip, frame_interval_ns(clip)) if clip.audio_bps else sizes
    shipped = _shipped(clip)
    sizes = list(shipped["frame_bytes"])
    return sizes if shipped["exact"] else _scaled(sizes, clip, frame_interval_ns(clip))


def _scaled(sizes: list[int], clip: ClipEncoding, interval_ns: int) -> list[int]:
    """Sizes in the same proportions that have the clip's rate on average."""
    # Integers throughout, the remainder carried on: the mean is exact and no platform rounds apart.
    target = clip.bit_rate_bps * len(sizes) * interval_ns // 8_000_000_000
    total, carried, scaled = sum(sizes), 0, []
    for size in sizes:
        carried += size * target
        scaled.append(max(1, carried // total))
        carried %= total
    return scaled


def key_frames(clip: ClipEncoding) -> list[int]:
    """Returns which frames of the pass of `frame_sizes` are key frames, counted from 0. Raises MediaError as
    that does."""
    if not clip.is_built_in:
        return [number for number, frame in enumerate(_own(clip)) if frame.is_key]
    return list(_shipped(clip)["key_frames"])


def frame_interval_ns(clip: ClipEncoding) -> int:
    """Nanoseconds between frames of `frame_sizes`."""
    interval: int = (
        _file(clip.source)["frame_interval_ns"] if clip.is_built_in else 1_000_000_000 // clip.frame_rate
    )
    return interval


def _own(clip: ClipEncoding) -> list[Packet]:
    file = source_of(clip)
    assert file is not None
    status = file.stat()
    return _packets_of(clip, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=16)
def _packets_of(clip: ClipEncoding, _size: int, _mtime_ns: int) -> list[Packet]:
    """A campaign plans each of its trials: a file that does not change is read and hashed once."""
    return packets(prepare(clip))


def _shipped(clip: ClipEncoding) -> dict[str, Any]:
    """Returns the shipped pass with the rate nearest to the requested one by ratio: the weight of key frames
    depends on it."""
    data = _file(clip.source)
    passes = data["encodings"] if clip.rate_control == "constant" else data["variable"][clip.codec]
    rate = min(passes, key=lambda rate: max(int(rate), clip.bit_rate_bps) / min(int(rate), clip.bit_rate_bps))
    if clip.rate_control == "variable":
        return {**passes[rate], "exact": int(rate) == clip.bit_rate_bps}
    # Encoded with a key frame at the start of each group and nowhere else. The data here is repeated, and
    # must end with a whole group.
    sizes, group = passes[rate], max(1, round(clip.gop_s * 1e9 / data["frame_interval_ns"]))
    lasting = ceil(clip.duration_s * 1e9 / data["frame_interval_ns"] / len(sizes))
    sizes = sizes * min(group // gcd(len(sizes), group), max(1, lasting))
    return {"frame_bytes": sizes, "key_frames": list(range(0, len(sizes), group)), "exact": False}


@cache
def _file(source: str) -> dict[str, Any]:
    file = resources.files("streamgauge.media") / "clips" / f"{source}.json"
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if data["schema"] != SCHEMA:
        raise MediaError(f"{file}: schema is {data['schema']}, expected {SCHEMA}; reinstall the package.")
    return data
